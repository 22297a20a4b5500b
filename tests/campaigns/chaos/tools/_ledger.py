"""What the tools did, in files of a folder.

An effect of a tool without durable operations is applied under the key (task, step, item), as the
README tells authors: whoever comes second with the same key changes nothing. That a step has run is
noted each time.

An effect of a durable tool is noted each time that it happens, with its step's token, and with when
the run began in which it happened: so that it can be told whether that run knew of the first time.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from mcp_tasks import AsyncTaskContext, TaskContext

AnyContext = TaskContext | AsyncTaskContext

FOLDER: Final = "CHAOS_LEDGER"
"""The environment variable that names the folder; it holds the folder `EFFECTS`, too."""
RUNS, EFFECTS, DURABLE = "runs", "effects", "durable"

HOLDING: Final = "holding"
"""What a tool reports that is to be cancelled soon."""
LEGS: Final = 7
"""Steps, and waits, of a tool that goes on in several executions."""
ITEMS: Final = 9
"""Of each map."""


def ran(task: AnyContext, mark: int, step: str, item: object = "", value: Any = None) -> None:
    """Note that a step's body runs. `mark` is the number of the call that it runs for."""
    _append(RUNS, [task.task_id, mark, step, str(item), value])


def apply(task: AnyContext, mark: int, step: str, item: object = "", value: Any = None) -> None:
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


_began = 0.0


def begin() -> None:
    """Note that a run of a durable tool begins, of which a process has one at a time."""
    global _began
    _began = time.time()


def note(task: AnyContext, mark: int, what: str, key: str = "", value: Any = None) -> int:
    """Note what a durable tool, or a step of it, does. Returns how often it has done so in a step
    of the same token.
    """
    try:
        token = task.step_token
    except LookupError:  # it is not in a step
        token = ""
    line = [task.task_id, mark, what, key, value, token, _began, time.time()]
    _append(f"{DURABLE} {task.task_id}", line)
    return sum(each[2] == what and each[5] == token for each in _noted(task)) if token else 1


def did(task: AnyContext, mark: int, key: str, item: str = "") -> str:
    """Change something in a step. Returns what tells this time from any other."""
    value = uuid4().hex
    note(task, mark, "did", f"{key} {item}".strip(), value)
    return value


def did_before(task: AnyContext) -> bool:
    """Whether the step that runs has changed something before."""
    token = task.step_token
    return any(each[2] == "did" and each[5] == token for each in _noted(task))


def _noted(task: AnyContext) -> list[list[Any]]:
    """What was noted of a task by now."""
    file = _folder() / f"{DURABLE} {task.task_id}"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def _append(name: str, line: list[Any]) -> None:
    # One write to a file that is appended to: lines of several processes do not mix.
    descriptor = os.open(_folder() / name, os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o644)
    try:
        os.write(descriptor, f"{json.dumps(line)}\n".encode())
    finally:
        os.close(descriptor)


def _folder() -> Path:
    return Path(os.environ[FOLDER])
