"""All scenarios of the official conformance suite, against a deployed stack."""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from local.deployment import LocalStack
from local.environment import STATE, node_packages, tool_environment
from tests.integration.support.client import Client

HERE = Path(__file__).resolve().parent
FOLDER = STATE / "conformance"
WARM_INSTANCES = 4


@dataclass(frozen=True)
class Run:
    """The outcome of one run of the suite."""

    code: int
    output: str
    checks: dict[str, Counter[str]]
    """The number of checks of each scenario by their status."""

    def failing(self) -> dict[str, Counter[str]]:
        """The scenarios with a failure or a warning."""
        bad = ("FAILURE", "WARNING")
        return {name: c for name, c in self.checks.items() if any(c[status] for status in bad)}


@pytest.fixture(scope="session")
def suite() -> Path:
    """The suite's command line, installed from its lock file."""
    node_packages(HERE, FOLDER, "the conformance suite")
    return FOLDER / "node_modules" / ".bin" / "conformance"


@pytest.fixture(scope="module")
def server(conformance_stack: LocalStack, all_deployed: None) -> LocalStack:
    """The stack with warm functions.

    The suite waits half a second for some responses (`server-stateless`). A function's start takes
    longer on a busy machine.
    """
    client = Client(conformance_stack.url)

    def call(tool: str) -> None:
        client.send(*client.compose("tools/call", {"name": tool, "arguments": {}}))

    with ThreadPoolExecutor(WARM_INSTANCES) as pool:
        list(pool.map(call, ["test_streaming_elicitation", "test_logging_tool"] * WARM_INSTANCES))
    return conformance_stack


ALL = ("--suite", "all")


def run(suite: Path, stack: LocalStack, folder: Path, *options: str) -> Run:
    """Run all scenarios that the options select."""
    done = subprocess.run(
        [str(suite), "server", "--url", stack.url, "-o", str(folder), *options],
        env=tool_environment(),
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    checks = {}
    for file in folder.rglob("checks.json"):
        # server-<scenario>-<time of the run>
        name = re.sub(r"-\d{4}-\d\d-\d\dT[\d-]+Z$", "", file.parent.name).removeprefix("server-")
        checks[name] = Counter(check["status"] for check in json.loads(file.read_text()))
    return Run(done.returncode, done.stdout + done.stderr, checks)


def test_all_scenarios_of_2026_07_28_pass(suite: Path, server: LocalStack, tmp_path: Path) -> None:
    """Without any failure or warning."""
    result = run(suite, server, tmp_path, *ALL, "--spec-version", "2026-07-28")
    assert not result.failing(), result.output
    assert result.code == 0, result.output
    assert len(result.checks) == 40, sorted(result.checks)
    without_checks = [name for name, counter in result.checks.items() if not counter["SUCCESS"]]
    assert not without_checks, f"these scenarios checked nothing: {without_checks}"


@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18"])
def test_revisions_with_a_handshake_pass(
    version: str, suite: Path, server: LocalStack, tmp_path: Path
) -> None:
    result = run(suite, server, tmp_path, *ALL, "--spec-version", version)
    assert not result.failing(), result.output
    assert result.code == 0, result.output
    assert len(result.checks) > 25, sorted(result.checks)


def test_what_the_suite_requires_of_2025_11_25_passes(
    suite: Path, server: LocalStack, tmp_path: Path
) -> None:
    """The scenarios that the suite names in its requirements/2025-11-25.yaml."""
    result = run(suite, server, tmp_path, "--requirements", "2025-11-25")
    assert result.code == 0, result.output
    assert len(result.checks) == 33, sorted(result.checks)


def test_every_scenario_passes_at_its_own_revision(
    suite: Path, server: LocalStack, tmp_path: Path
) -> None:
    """The ten scenarios of the tasks extension are among them."""
    result = run(suite, server, tmp_path, *ALL)
    assert result.code == 0, result.output
    tasks = {name: c for name, c in result.checks.items() if name.startswith("tasks-")}
    assert len(tasks) == 10, sorted(tasks)
    # This scenario always skips itself.
    assert tasks.pop("tasks-status-notifications")["SKIPPED"]
    assert all(c["SUCCESS"] and not c["FAILURE"] and not c["WARNING"] for c in tasks.values())
