"""Where a client is in the event stream of one of its requests: what an event id holds.

2025-11-25 basic/transports.mdx, "Resumability and Redelivery": event ids "encode sufficient
information to identify the originating stream". An id is sealed for its principal and session, and
names the request, its task, and what the client has been sent. So nothing is kept for a client that
may resume, and any instance can go on with the stream.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from ..protocol.errors import ErrorCode, ProtocolError
from ..protocol.jsonrpc import RequestId
from ..protocol.notifications import ProgressToken
from .call import Call
from .caller import Caller
from .sealed import Seal, Unsealable

LIFETIME_MS: Final = 24 * 3600 * 1000
"""How long a stream can be resumed after its last event. What it resumes is a task, which may end
before."""

HEADER: Final = "Last-Event-ID"

Client = Caller | Call
"""Whose principal and session an event id is good for."""


@dataclass(frozen=True, slots=True)
class StreamPosition:
    """A place in a stream: after the events that it counts."""

    version: str
    """The protocol revision of the request."""
    method: str
    request_id: RequestId
    task_id: str | None = None
    """None for a call that runs within its request."""
    client_task_id: str | None = None
    """The id that the client has chosen for the task (`methods/tasks_sep_1686.py`)."""
    progress_token: ProgressToken | None = None
    revision: int = 0
    """The revision of the task that the client knows, or the round of a call's questions."""
    progress: int = 0
    """The number of the last progress notification."""
    asked: tuple[str, ...] = ()
    """The asks, by id, whose questions were sent."""
    ended: int = 0
    """How often an error was sent as the response. One client takes only results for the end of a
    stream, and resumes it after an error."""


@dataclass(frozen=True, slots=True)
class EventIds:
    """Makes and reads event ids."""

    seal: Seal

    def of(self, position: StreamPosition, client: Client, now: int) -> str:
        """The id of an event after which the client is at this position."""
        return self.seal.seal(asdict(position), _owner(client), now + LIFETIME_MS)

    def open(self, event_id: str, client: Client, now: int) -> StreamPosition:
        """The position after an event. Raises UnknownEventId."""
        try:
            value, _ = self.seal.open(event_id, _owner(client), now)
        except Unsealable:
            raise UnknownEventId from None
        return _position(value)


def _owner(client: Client) -> str:
    return f"{client.session.key if client.session else ''} {client.principal}"


def _position(value: Mapping[str, Any]) -> StreamPosition:
    return StreamPosition(**{**value, "asked": tuple(value["asked"])})


class UnknownEventId(ProtocolError):
    """HTTP 400: the server did not make this id for the caller's session, or too long ago."""

    def __init__(self) -> None:
        super().__init__(
            ErrorCode.INVALID_REQUEST,
            f"{HEADER} is of no event stream of this session, or has expired; repeat the request",
        )
