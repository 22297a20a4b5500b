"""One invocation of a function with a streamed response: its event, and the response's parts."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any, Final

PART_SECONDS: Final = 10
"""How long `Invocation.prelude` and `Invocation.chunks` wait for a part."""


@dataclass(frozen=True, slots=True)
class Prelude:
    """A response's status and headers, which a function writes before the body."""

    status: int
    headers: Mapping[str, str]


class FunctionError(Exception):
    """The function failed, before its response or in the middle of it.

    `error_type` is the name that Lambda or the runtime gives the error.
    """

    def __init__(self, error_type: str, body: Mapping[str, Any] | None = None) -> None:
        super().__init__(error_type)
        self.error_type = error_type
        self.body = dict(body or {})
        """The runtime's error object: `errorType` and `errorMessage`."""


Part = Prelude | bytes | FunctionError | None
"""A part of a response: the prelude, the body's chunks, and then None or the error at the end."""


@dataclass(slots=True)
class Invocation:
    """One event, and the parts of its response as they arrive."""

    event: Mapping[str, Any]
    request_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    deadline_ms: int = 0
    """When the function's time ends, in milliseconds since the epoch."""
    parts: SimpleQueue[Part] = field(default_factory=SimpleQueue)

    def prelude(self) -> Prelude:
        """Wait for the prelude. Raises FunctionError, and queue.Empty after PART_SECONDS."""
        part = self.parts.get(timeout=PART_SECONDS)
        if isinstance(part, FunctionError):
            raise part
        if not isinstance(part, Prelude):
            raise FunctionError("Runtime.InvalidResponse")
        return part

    def chunks(self) -> Iterator[bytes]:
        """Yield the body's chunks; a prelude before them is skipped. Raises what `prelude` does."""
        while (part := self.parts.get(timeout=PART_SECONDS)) is not None:
            if isinstance(part, FunctionError):
                raise part
            if isinstance(part, bytes):
                yield part
