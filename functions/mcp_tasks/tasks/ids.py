"""Task ids: `<cell>-<128 random bits>`.

The cell names the stack that has the task: a router reads it from `Mcp-Name`. The random part makes
the id unguessable (tasks.md, "Security Considerations"). An id is plain ASCII with at most 80
characters, so that it is also the name of the task's execution (StartExecution, `name`).
"""

from __future__ import annotations

import re
import secrets
from typing import Final

_TASK_ID: Final = re.compile(r"[a-z0-9]{1,16}-[0-9a-f]{32}")


def new_task_id(cell: str) -> str:
    """A fresh id in `cell` (1 to 16 lower-case letters and digits)."""
    return f"{cell}-{secrets.token_hex(16)}"


def cell_of(value: object) -> str | None:
    """The cell of an id that could have come from `new_task_id`; None when it could not.

    Reads nothing: only the cell's own stack knows whether the task exists.
    """
    if not isinstance(value, str) or not _TASK_ID.fullmatch(value):
        return None
    return value.partition("-")[0]
