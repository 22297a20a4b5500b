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

from local.environment import STATE, node_packages, python_packages, tool_environment

HERE: Final = Path(__file__).parent
FOLDER: Final = STATE / "second_opinions"
SECONDS: Final = 120.0
"""After this time, a program counts as hanging."""


def node(program: str, document: Any) -> Any:
    """What a program of `node/` answers. Raises AssertionError when it fails or hangs."""
    folder = FOLDER / "node"
    node_packages(HERE / "node", folder, "the linters, JSONata and the IAM simulator")
    return _answer(["node", HERE / "node" / program], document, folder)


def python(program: str, document: Any) -> Any:
    """What a program of `python/` answers. Raises AssertionError when it fails or hangs."""
    folder = FOLDER / "python"
    python_packages(HERE / "python", folder, "statelint and LocalStack's interpreter")
    return _answer([folder / "bin" / "python", "-P", HERE / "python" / program], document, folder)


def _answer(command: Sequence[str | Path], document: Any, folder: Path) -> Any:
    run = subprocess.run(
        command,
        input=json.dumps(document),
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        # A program is outside of the folder that its packages are in.
        env=tool_environment() | {"NODE_PATH": str(folder / "node_modules")},
        timeout=SECONDS,
    )
    assert run.returncode == 0, f"{command}: {run.stderr}"
    return json.loads(run.stdout)
