"""A payload pointer: the JSON object that stands in the place of a value that is kept in S3.

    {"mcp-tasks/payload": {"key": "<tool>/<task id>/<random>", "offset": 0, "size": 5242880}}

Several values may be ranges of one S3 object. Sizes and offsets are bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

POINTER: Final = "mcp-tasks/payload"


@dataclass(frozen=True, slots=True)
class PayloadPointer:
    """A range of an S3 object, which holds the JSON text of one value."""

    key: str
    offset: int
    size: int

    def as_json(self) -> dict[str, Any]:
        """The pointer as JSON; `pointer_of` reads it."""
        return {POINTER: {"key": self.key, "offset": self.offset, "size": self.size}}


def pointer_of(value: object) -> PayloadPointer | None:
    """The pointer that a JSON value is; None when it is none."""
    match value:
        case {"mcp-tasks/payload": {"key": str(key), "offset": int(offset), "size": int(size)}} if (
            isinstance(value, dict) and len(value) == 1
        ):
            return PayloadPointer(key, offset, size)
    return None


def payload_prefix(tool: str, task_id: str) -> str:
    """The prefix of the keys of a task's payloads. A worker may read the keys of its own tool."""
    return f"{tool}/{task_id}"
