"""The official conformance suite against the deployed stack: every scenario that it has."""

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
AT_ONCE = 4
EXPECTED = HERE / "expected-failures.yml"


@dataclass(frozen=True)
class Run:
    """What one run of the suite said."""

    code: int
    output: str
    checks: dict[str, Counter[str]]
    """Scenario -> how many of its checks ended how."""

    def failing(self) -> dict[str, Counter[str]]:
        """The scenarios in which anything went wrong, or might have."""
        wrong = ("FAILURE", "WARNING")
        return {name: c for name, c in self.checks.items() if any(c[status] for status in wrong)}


@pytest.fixture(scope="session")
def suite() -> Path:
    """The suite's command line, installed from its lock file."""
    node_packages(HERE, FOLDER, "the conformance suite")
    return FOLDER / "node_modules" / ".bin" / "conformance"


@pytest.fixture(scope="module")
def server(conformance_stack: LocalStack, all_deployed: None) -> LocalStack:
    """The stack, awake: the suite waits for half a second for some answers (`server-stateless`),
    which is less than a function takes to start on a busy machine.
    """
    client = Client(conformance_stack.url)

    def call(tool: str) -> None:
        client.send(*client.compose("tools/call", {"name": tool, "arguments": {}}))

    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(call, ["test_streaming_elicitation", "test_logging_tool"] * AT_ONCE))
    return conformance_stack


def run(suite: Path, stack: LocalStack, folder: Path, *options: str) -> Run:
    """Run all scenarios that the options select."""
    done = subprocess.run(
        [str(suite), "server", "--suite", "all", "--url", stack.url, "-o", str(folder), *options],
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


def test_everything_of_2026_07_28_passes(suite: Path, server: LocalStack, tmp_path: Path) -> None:
    """No failure is expected here, and none allowed, nor any warning."""
    result = run(suite, server, tmp_path, "--spec-version", "2026-07-28")
    assert not result.failing(), result.output
    assert result.code == 0, result.output
    assert len(result.checks) == 40, sorted(result.checks)
    idle = [name for name, counter in result.checks.items() if not counter["SUCCESS"]]
    assert not idle, f"they checked nothing: {idle}"


@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18"])
def test_the_revisions_with_a_handshake_pass_but_for_what_needs_a_session(
    version: str, suite: Path, server: LocalStack, tmp_path: Path
) -> None:
    """The suite itself refuses a stale entry: one that is expected to fail and passes."""
    options = ("--spec-version", version, "--expected-failures", str(EXPECTED))
    result = run(suite, server, tmp_path, *options)
    assert result.code == 0, result.output
    assert len(result.checks) > 25, sorted(result.checks)


def test_every_scenario_passes_at_its_own_revision(
    suite: Path, server: LocalStack, tmp_path: Path
) -> None:
    """All there is, extensions included: the ten of the tasks extension, too."""
    options = ("--expected-failures", str(EXPECTED))
    result = run(suite, server, tmp_path, *options)
    assert result.code == 0, result.output
    tasks = {name: c for name, c in result.checks.items() if name.startswith("tasks-")}
    assert len(tasks) == 10, sorted(tasks)
    # This one skips itself, whatever the server does.
    assert tasks.pop("tasks-status-notifications")["SKIPPED"]
    assert all(c["SUCCESS"] and not c["FAILURE"] and not c["WARNING"] for c in tasks.values())
