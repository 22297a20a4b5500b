"""What a method gets, and what it may answer, in no revision's words.

A revision (`server/revisions`) reads a request into a `Call` and writes an `Outcome` as a result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..protocol.errors import ErrorCode, MissingCapability, ProtocolError
from ..protocol.headers import Headers
from ..protocol.jsonrpc import RequestId
from ..tasks.questions import Kind, Question
from ..tasks.task import Task
from .request_notifications import RequestNotifications
from .response_channel import ResponseChannel


@dataclass(frozen=True, slots=True)
class Call:
    """One checked request."""

    method: str
    params: dict[str, Any]
    principal: str
    stream: RequestNotifications
    channel: ResponseChannel
    request_id: RequestId
    client_can: frozenset[Kind] = frozenset()
    """What the client can be asked for."""
    takes_tasks: bool = False
    """Whether the client knows what to do with a task."""
    mirrors: Headers | None = None
    """The headers, when the revision repeats arguments in them (`x-mcp-header`)."""
    trace: Mapping[str, str] = field(default_factory=dict)
    answers: Mapping[str, Any] | None = None
    """What the client answers to an earlier round of this request, by key."""
    state: str | None = None
    """What that round gave it to keep."""
    scopes: frozenset[str] | None = None
    """What the caller's access token is good for; None where callers have no tokens."""
    idempotency_key: str | None = None
    """What a client that repeats a `tools/call` repeats with it, to get the same task."""


@dataclass(frozen=True, slots=True)
class Complete:
    """The method is done. A result that may be cached says for how long and by whom."""

    result: dict[str, Any]
    fresh_ms: int | None = None
    cache_scope: str = "private"


@dataclass(frozen=True, slots=True)
class InputNeeded:
    """The client is asked, and repeats the request with its answers and the state."""

    questions: Mapping[str, Question]
    state: str


@dataclass(frozen=True, slots=True)
class TaskCreated:
    """The call goes on as a task, which is written and started."""

    task: Task


Outcome = Complete | InputNeeded | TaskCreated

Method = Callable[[Call], Outcome]
"""Answers a request, or raises ProtocolError."""

MethodTable = Mapping[str, Method]


class CannotAsk(MissingCapability):
    """The client did not declare that it can be asked for what is needed to answer it."""

    def __init__(self, required: Mapping[str, Any]) -> None:
        super().__init__(
            "This needs to ask the client for what it does not declare as a capability", required
        )


class NeedsTasks(MissingCapability):
    """The tool runs only as a task, and the client does not take tasks."""

    def __init__(self, tool: str, required: Mapping[str, Any]) -> None:
        super().__init__(
            f"{tool} runs only as a task, and the client does not declare that it takes tasks",
            required,
        )


class ResourceNotFound(ProtocolError):
    """No resource has this URI (resources.mdx, "Error Handling")."""

    def __init__(self, uri: str) -> None:
        super().__init__(ErrorCode.INVALID_PARAMS, "Resource not found", {"uri": uri})
