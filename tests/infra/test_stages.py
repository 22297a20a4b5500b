"""`stages/NAME.json`: the options of one stage."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from infra.options import OPTIONS
from infra.server_toml import ServerFile
from infra.settings import Settings
from infra.stages import Stage, stack_of
from tests.infra.conftest import IAM
from tests.paths import ROOT

NAMED = ServerFile.read(ROOT).stack
STAGES = sorted(file.stem for file in (ROOT / "stages").glob("*.json"))
"""Those of this repository, or of a fork."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with a stage `dev`, and one option for all stages."""
    (tmp_path / "server.toml").write_text('stack = "notes"\nname = "n"\nversion = "1"\n')
    (tmp_path / "cdk.json").write_text('{"context": {"max_tasks": 20}}')
    (tmp_path / "stages").mkdir()
    _write(tmp_path, {"auth": "iam", "principal": "role", "rate": 7})
    (tmp_path / "functions" / "tools").mkdir(parents=True)
    return tmp_path


def _write(root: Path, options: Any) -> None:
    (root / "stages" / "dev.json").write_text(json.dumps(options))


def _settings(root: Path, **given: Any) -> Settings:
    return Settings.from_context({"stage": "dev", "max_tasks": 20, **given}.get, root)


def test_a_stage_chooses_options_and_its_stack_is_called_after_it(root: Path) -> None:
    settings = _settings(root)
    assert (settings.auth, settings.iam.principal, settings.throttle.rate) == ("iam", "role", 7)
    assert settings.limits.max_open_tasks == 20
    assert settings.stack == "notes-dev"


def test_the_command_line_overrides_a_stage(root: Path) -> None:
    assert _settings(root, rate="9").throttle.rate == 9
    assert _settings(root, stack="mine").stack == "mine"


def test_a_stage_may_name_its_stack(root: Path) -> None:
    _write(root, {"auth": "none", "stack": "kept"})
    assert _settings(root).stack == "kept"
    assert stack_of("dev", root) == "kept"


def test_without_a_stage_nothing_is_read(root: Path) -> None:
    given = {"auth": "none"}
    assert Settings.from_context(given.get, root).stack == "notes"


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"rat": 7}, r"^stages/dev\.json: rat: unknown; docs/configuration\.md lists the options"),
        ({"stage": "dev"}, r"^stages/dev\.json: stage: unknown"),
        ({"profile": "local"}, r"^stages/dev\.json: profile: unknown"),
        ({"max_tasks": 3}, r"^stages/dev\.json: max_tasks: cdk\.json has it, too; keep one of"),
        ({"streaming": True}, r"^stages/dev\.json: streaming = true: a text or a whole number"),
        ({"origins": ["a"]}, r'^stages/dev\.json: origins = \["a"\]: a text or a whole number'),
        ([], r"^stages/dev\.json: it holds no JSON object of options"),
    ],
)
def test_what_a_stage_cannot_mean_is_refused(root: Path, options: Any, error: str) -> None:
    _write(root, options)
    with pytest.raises(ValueError, match=error):
        _settings(root)


def test_a_file_that_is_not_json_is_refused(root: Path) -> None:
    (root / "stages" / "dev.json").write_text("{")
    with pytest.raises(ValueError, match=r"^stages/dev\.json: Expecting property name"):
        _settings(root)


@pytest.mark.parametrize("name", ["prd", "../dev", "DEV"])
def test_a_stage_without_a_file_is_refused(root: Path, name: str) -> None:
    with pytest.raises(ValueError, match=rf"^-c stage={name}: there is no stages/.*; there is dev"):
        _settings(root, stage=name)


def test_stacks_whose_names_begin_alike_have_cells_of_their_own() -> None:
    """So do the names of their state machines. Executions are told apart by the cell."""
    stages = [Settings.from_context({"stage": name}.get, ROOT) for name in STAGES]
    stacks = {each.stack: each.cell for each in stages}
    stacks.setdefault(NAMED, OPTIONS["cell"].default)
    for name, cell in stacks.items():
        for other, its_cell in stacks.items():
            assert not other.startswith(f"{name}-") or cell != its_cell, (name, other)


@pytest.mark.parametrize("name", STAGES)
def test_every_stage_of_this_repository_can_be_deployed(name: str) -> None:
    given = json.loads((ROOT / "stages" / f"{name}.json").read_text())
    settings = Settings.from_context({"stage": name}.get, ROOT)
    assert settings.stack == given.get("stack", f"{NAMED}-{name}")


@pytest.mark.parametrize("name", STAGES)
def test_the_commands_find_the_stack_of_a_stage(name: str) -> None:
    """As `make replay stage=dev` asks for it."""
    command = [sys.executable, "-m", "infra.stages", name]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert found.stdout == f"{stack_of(name, ROOT)}\n"


def test_the_commands_name_the_stages_that_there_are() -> None:
    command = [sys.executable, "-m", "infra.stages", "no-stage"]
    none = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (none.returncode, none.stdout) == (1, "")
    assert none.stderr == (
        "error: -c stage=no-stage: there is no stages/no-stage.json; there is "
        f"{', '.join(STAGES)}\n"
    )


def test_an_option_of_no_stage_is_looked_up_as_before() -> None:
    assert Stage.read(IAM.get, ROOT).lookup("auth") == "iam"
