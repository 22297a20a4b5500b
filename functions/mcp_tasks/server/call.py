"""What a method gets and what it may answer, independent of the protocol revision.

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
from .sessions import Session


@dataclass(frozen=True, slots=True)
class Call:
    """One checked request."""

    method: str
    params: dict[str, Any]
    principal: str
    notifications: RequestNotifications
    channel: ResponseChannel
    request_id: RequestId
    client_can: frozenset[Kind] = frozenset()
    """The kinds of questions that the client declares it can answer."""
    declares_tasks: bool = False
    """Whether the client declares the tasks extension with this request."""
    headers: Headers | None = None
    """The HTTP headers, in a revision that mirrors arguments in them (`x-mcp-header`)."""
    trace: Mapping[str, str] = field(default_factory=dict)
    """The trace context: `traceparent`, `tracestate` and `baggage`, where they are well-formed."""
    input_responses: Mapping[str, Any] | None = None
    """`inputResponses`: the client's answers to the questions of an earlier response, by key."""
    request_state: str | None = None
    """`requestState`, as that earlier response gave it to the client."""
    scopes: frozenset[str] | None = None
    """The scopes of the caller's access token; None where callers have no tokens."""
    idempotency_key: str | None = None
    """The client's key by which a repeated `tools/call` gets the same task."""
    waits: bool = False
    """Whether the client, which does not declare tasks, gets a task's result as the response to its
    call: it waits on the call's event stream."""
    session: Session | None = None
    """The session that the request belongs to, in a revision that has sessions."""
    resumes: bool = False
    """Whether the client reconnects to an event stream that ends before the response."""
    listens: bool = False
    """Whether the client listens to its session's own stream."""
    ttl_ms: int | None = None
    """How long the client wants a task to be kept, where it may say so."""
    client_context: Mapping[str, Any] = field(default_factory=dict)
    """What is kept with a task of this call (`Task.client_context`)."""
    is_counted: bool = False
    """Whether the call counts already in its caller's quota of calls."""
    task_id: str | None = None
    """The id that the call's task will have, where it follows from what the client has chosen."""


@dataclass(frozen=True, slots=True)
class Complete:
    """The method's result. One that clients may cache says for how long and for whom."""

    result: dict[str, Any]
    fresh_ms: int | None = None
    cache_scope: str = "private"
    headers: Mapping[str, str] = field(default_factory=dict)
    """Of the HTTP response."""


@dataclass(frozen=True, slots=True)
class InputNeeded:
    """Questions for the client, which repeats the request with its answers and the state."""

    questions: Mapping[str, Question]
    request_state: str


@dataclass(frozen=True, slots=True)
class TaskCreated:
    """The call runs as a task. Its row is written, and its execution started."""

    task: Task


@dataclass(frozen=True, slots=True)
class StreamPaused:
    """The response comes later: the client has the id of an event, and resumes the stream after it
    (2025-11-25 basic/transports.mdx, "Resumability and Redelivery")."""


Outcome = Complete | InputNeeded | TaskCreated | StreamPaused

Method = Callable[[Call], Outcome]
"""Answers a request, or raises ProtocolError."""

MethodTable = Mapping[str, Method]


class MissingInputCapability(MissingCapability):
    """The method has a question of a kind that the client does not declare."""

    def __init__(self, required: Mapping[str, Any]) -> None:
        super().__init__(
            "The server has to ask the client a question that needs a capability which the client "
            "does not declare",
            required,
        )


class MissingTasksExtension(MissingCapability):
    """The tool runs only as a task, and the client does not declare the tasks extension."""

    def __init__(self, tool: str, required: Mapping[str, Any]) -> None:
        super().__init__(
            f"{tool} runs only as a task, and the client does not declare the tasks extension",
            required,
        )


class RequestIdReused(ProtocolError):
    """basic/index.mdx, "Requests": an id "MUST NOT have been previously used" in the session."""

    def __init__(self) -> None:
        super().__init__(
            ErrorCode.INVALID_REQUEST,
            "The session has used this request id for another call; send the call with a new id",
        )


class ResourceNotFound(ProtocolError):
    """No resource has this URI (resources.mdx, "Error Handling")."""

    def __init__(self, uri: str) -> None:
        super().__init__(ErrorCode.INVALID_PARAMS, "Resource not found", {"uri": uri})
