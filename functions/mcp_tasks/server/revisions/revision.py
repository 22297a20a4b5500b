"""What every protocol revision defines."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

from aws_lambda_powertools import Logger

from ...protocol.errors import ErrorCode, ProtocolError
from ...protocol.headers import Headers
from ...protocol.jsonrpc import Notification, Request, Response, malformed
from ...protocol.trace import loggable
from ..call import Call, Complete, MethodTable, Outcome, StreamPaused
from ..caller import Caller
from ..response_channel import ResponseChannel
from ..server_methods import ServerMethods
from ..stream_position import StreamPosition

logger = Logger()


@dataclass(frozen=True, slots=True)
class Answer:
    """What a request is answered with."""

    result: dict[str, Any] | None
    """None when the response comes on another connection, which resumes this one's stream."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Of the HTTP response."""


class Revision(ABC):
    """One revision of the protocol, as one server speaks it."""

    version: ClassVar[str]

    takes_batches: ClassVar[bool] = False
    """Whether a body may hold several messages."""

    has_sessions: ClassVar[bool] = False
    """Whether clients begin with `initialize` and name their session in each request."""

    def __init__(self, methods: ServerMethods) -> None:
        self.methods = methods

    @cached_property
    def method_table(self) -> MethodTable:
        """The methods by their names in this revision, with the pages of the lists."""
        table, only = self.build_method_table(), self.methods.only
        return {name: table[name] for name in table if name in only} if only else table

    @abstractmethod
    def build_method_table(self) -> MethodTable:
        """Make `method_table`; called once."""

    @abstractmethod
    def read_call(
        self, request: Request, headers: Headers, caller: Caller, channel: ResponseChannel
    ) -> Call:
        """Check what this revision requires of every request. Raises ProtocolError."""

    @abstractmethod
    def write_result(self, outcome: Outcome) -> dict[str, Any]:
        """An outcome as this revision's result. Not called for StreamPaused."""

    @abstractmethod
    def write_error(self, error: ProtocolError) -> ProtocolError:
        """An error with the code, the data and the HTTP status that this revision has for it."""

    def answer(
        self, request: Request, headers: Headers, caller: Caller, channel: ResponseChannel
    ) -> Answer:
        """Answer a request. Raises ProtocolError."""
        call = self.read_call(request, headers, caller, channel)
        if call.trace:
            logger.append_keys(**loggable(call.trace))
        method = self.method_table.get(request.method)
        if method is None:
            raise ProtocolError(
                ErrorCode.METHOD_NOT_FOUND, f"Method not found: {request.method[:64]}"
            )
        return self.written(method(call))

    def written(self, outcome: Outcome) -> Answer:
        """An outcome as an answer of this revision."""
        if isinstance(outcome, StreamPaused):
            return Answer(None)
        headers = outcome.headers if isinstance(outcome, Complete) else {}
        return Answer(self.write_result(outcome), headers)

    def notified(self, notification: Notification, caller: Caller) -> None:  # noqa: B027
        """Take a notification. A revision that has no use for any ignores all."""

    def answered(self, response: Response, caller: Caller) -> None:
        """Take a client's response to a request of the server's. Raises ProtocolError."""
        raise malformed("Clients send requests and notifications, not responses")

    def resumed(
        self, position: StreamPosition, headers: Headers, caller: Caller, channel: ResponseChannel
    ) -> Answer:
        """Go on with the event stream of an earlier request. Raises ProtocolError."""
        raise malformed(f"{self.version} has no event streams that can be resumed")
