"""What the tools did, in files of a folder.

An effect is applied under the key (task, step, item), as the README tells authors: whoever comes
second with the same key changes nothing. That a step has run is noted each time.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from mcp_tasks import TaskContext

FOLDER: Final = "CHAOS_LEDGER"
"""The environment variable that names the folder; it holds the folder `EFFECTS`, too."""
RUNS, EFFECTS = "runs", "effects"


def ran(task: TaskContext, mark: int, step: str, item: object = "", value: Any = None) -> None:
    """Note that a step's body runs. `mark` is the number of the call that it runs for."""
    line = json.dumps([task.task_id, mark, step, str(item), value]) + "\n"
    # One write to a file that is appended to: lines of several processes do not mix.
    descriptor = os.open(_folder() / RUNS, os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o644)
    try:
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)


def apply(task: TaskContext, mark: int, step: str, item: object = "", value: Any = None) -> None:
    """Change something, unless it was changed under the same key before."""
    ran(task, mark, step, item, value)
    folder = _folder() / EFFECTS
    written = folder / f".{uuid4()}"
    written.write_text(json.dumps([task.task_id, mark, step, str(item), value]))
    try:
        # Whole or not at all, and once: also when the process is killed at any point.
        os.link(written, folder / f"{task.task_id} {step} {item}")
    except FileExistsError:
        pass
    finally:
        written.unlink()


def _folder() -> Path:
    return Path(os.environ[FOLDER])
