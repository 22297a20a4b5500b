"""The tools of `node/` and `python/`, which nobody here wrote. Each runs in an environment of its
own, installed by its own lock file when a test first needs it.

A program of either folder reads JSON from its standard input and prints JSON.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from local.environment import (
    EMULATOR_VENV,
    STATE,
    node_packages,
    python_packages,
    tool_environment,
)
from tests.paths import ROOT

HERE: Final = Path(__file__).parent
FOLDER: Final = STATE / "second_opinions"
NODE_MODULES: Final = FOLDER / "node" / "node_modules"
SECONDS: Final = 120.0
"""After this time, a program counts as hanging."""


def node(program: str, *documents: Any) -> list[Any]:
    """What a program of `node/` answers to each document, of which each is a line. Raises
    AssertionError when it fails or hangs."""
    node_packages(HERE / "node", FOLDER / "node", "linters, JSONata, and an IAM simulator")
    lines = "".join(json.dumps(document) + "\n" for document in documents)
    answers = _run(["node", HERE / "node" / program], lines).splitlines()
    assert len(answers) == len(documents), answers
    return [json.loads(answer) for answer in answers]


def python(program: str, document: Any) -> Any:
    """What a program of `python/` answers. Raises AssertionError when it fails or hangs."""
    node_packages(HERE / "node", FOLDER / "node", "linters, JSONata, and an IAM simulator")
    python_packages(HERE / "python", FOLDER / "python", "statelint and LocalStack's interpreter")
    interpreter = FOLDER / "python" / "bin" / "python"
    return json.loads(_run([interpreter, HERE / "python" / program], json.dumps(document)))


def in_emulator(program: str, document: Any) -> Any:
    """What a program of `python/` answers that runs in MiniStack's environment. Raises
    AssertionError when it fails or hangs."""
    interpreter = EMULATOR_VENV / "bin" / "python"
    return json.loads(_run([interpreter, HERE / "python" / program], json.dumps(document)))


def _run(command: Sequence[str | Path], lines: str) -> str:
    run = subprocess.run(
        command,
        input=lines,
        capture_output=True,
        text=True,
        check=False,
        # The programs are not in the folders that their packages are in.
        env=tool_environment() | {"NODE_PATH": str(NODE_MODULES), "PYTHONPATH": str(ROOT)},
        timeout=SECONDS,
    )
    assert run.returncode == 0, f"{command}: {run.stderr}"
    return run.stdout
