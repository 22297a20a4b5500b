"""What stands in the place of a value that is kept in S3: a JSON object with one member.

    {"mcp-tasks/payload": {"key": "<tool>/<task id>/<random>", "offset": 0, "size": 5242880}}

Several values may be parts of one S3 object. Sizes and offsets are bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

POINTER: Final = "mcp-tasks/payload"


@dataclass(frozen=True, slots=True)
class PayloadPointer:
    """A part of an S3 object: the JSON text of one value."""

    key: str
    offset: int
    size: int

    def as_json(self) -> dict[str, Any]:
        """The pointer; `payload_of` reads it."""
        return {POINTER: {"key": self.key, "offset": self.offset, "size": self.size}}


def pointer_of(value: object) -> PayloadPointer | None:
    """What a value points to; None when it is no pointer."""
    match value:
        case {"mcp-tasks/payload": {"key": str(key), "offset": int(offset), "size": int(size)}} if (
            isinstance(value, dict) and len(value) == 1
        ):
            return PayloadPointer(key, offset, size)
    return None


def owner_of(tool: str, task_id: str) -> str:
    """The folder of a task's payloads, which begins with its tool's."""
    return f"{tool}/{task_id}"
