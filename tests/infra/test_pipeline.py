"""`.github/workflows/deploy.yml` runs commands that exist, with the permissions that they need."""

from __future__ import annotations

import re
from typing import Any

import yaml  # type: ignore[import-untyped]

from tests.paths import ROOT

WORKFLOW = ROOT / ".github" / "workflows" / "deploy.yml"


def _workflow() -> dict[str, Any]:
    loaded = yaml.safe_load(WORKFLOW.read_text())
    # YAML 1.1, which this parser reads, takes the key `on` for true.
    return {"on" if key is True else key: value for key, value in loaded.items()}


def _steps(job: str) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = _workflow()["jobs"][job]["steps"]
    return steps


def _commands(job: str) -> list[str]:
    return [step["run"] for step in _steps(job) if "run" in step]


def test_every_command_is_a_target_of_make() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    commands = [command for job in _workflow()["jobs"] for command in _commands(job)]
    assert commands
    for command in commands:
        make, target, *_ = command.split()
        assert make == "make"
        assert target in targets, command


def test_what_is_deployed_was_checked_first() -> None:
    assert _commands("check") == ["make lint", "make test"]
    assert _workflow()["jobs"]["deploy"]["needs"] == "check"
    targets = [command.split()[1] for command in _commands("deploy")]
    assert targets.index("replay-check") < targets.index("deploy")
    assert targets.index("diff") < targets.index("deploy")


def test_stages_have_files() -> None:
    inputs = _workflow()["on"]["workflow_dispatch"]["inputs"]
    for stage in (inputs["stage"]["default"], "dev"):
        assert (ROOT / "stages" / f"{stage}.json").is_file()
    assert _commands("diff") == ["make diff stage=dev"]


def test_only_jobs_that_call_aws_get_a_token() -> None:
    workflow = _workflow()
    assert workflow["permissions"] == {"contents": "read"}
    for name, job in workflow["jobs"].items():
        credentials = [step for step in job["steps"] if "aws-actions" in step.get("uses", "")]
        assert ("permissions" in job) == bool(credentials), name
        for step in credentials:
            assert job["permissions"] == {"contents": "read", "id-token": "write"}
            assert set(step["with"]) == {"role-to-assume", "aws-region"}, "no stored key"


def test_no_shell_reads_what_somebody_typed() -> None:
    """GitHub Docs, "Secure use reference": an expression in a command is code."""
    for job in _workflow()["jobs"]:
        assert not any("${{" in command for command in _commands(job))
