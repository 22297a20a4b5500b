"""The operator's commands start as `make` starts them: without the path that pytest has."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.paths import ROOT

OPERATIONS = ROOT / "operations"
COMMANDS = sorted(
    {file.parent.name for file in OPERATIONS.glob("*/__main__.py")}
    | {file.stem for file in OPERATIONS.glob("*.py") if '"__main__"' in file.read_text()}
)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_starts_by_itself(command: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    run = subprocess.run(
        [sys.executable, "-m", f"operations.{command}", "--help"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert f"operations.{command}" in run.stdout


def test_there_are_commands() -> None:
    assert {"preflight", "replay", "replay_tasks"} <= set(COMMANDS)
