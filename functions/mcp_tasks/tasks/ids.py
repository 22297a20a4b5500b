"""Task ids: `<cell>-<128 random bits>`.

The cell says which stack holds the task, so that a router can read it from `Mcp-Name`. The random
part makes the id unguessable (tasks.md, "Security Considerations"). The whole is plain ASCII, at
most 80 characters, and therefore also the name of the task's execution (StartExecution, `name`).
"""

from __future__ import annotations

import re
import secrets
from typing import Final

_TASK_ID: Final = re.compile(r"[a-z0-9]{1,16}-[0-9a-f]{32}")


def new_task_id(cell: str) -> str:
    """A fresh id in `cell` (1 to 16 lower-case letters and digits)."""
    return f"{cell}-{secrets.token_hex(16)}"


def is_task_id(value: object) -> bool:
    """Whether `value` could have come from `new_task_id`; costs no read when it could not."""
    return isinstance(value, str) and _TASK_ID.fullmatch(value) is not None
