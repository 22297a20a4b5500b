"""What every protocol revision defines."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, ClassVar

from aws_lambda_powertools import Logger

from ...protocol.errors import ErrorCode, ProtocolError
from ...protocol.headers import Headers
from ...protocol.jsonrpc import Request
from ...protocol.trace import loggable
from ..call import Call, MethodTable, Outcome
from ..caller import Caller
from ..response_channel import ResponseChannel
from ..server_methods import ServerMethods

logger = Logger()


class Revision(ABC):
    """One revision of the protocol, as one server speaks it."""

    version: ClassVar[str]

    takes_batches: ClassVar[bool] = False
    """Whether a body may hold several messages."""

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
        """An outcome as this revision's result."""

    @abstractmethod
    def write_error(self, error: ProtocolError) -> ProtocolError:
        """An error with the code, the data and the HTTP status that this revision has for it."""

    def answer(
        self, request: Request, headers: Headers, caller: Caller, channel: ResponseChannel
    ) -> dict[str, Any]:
        """Answer a request with its result. Raises ProtocolError."""
        call = self.read_call(request, headers, caller, channel)
        if call.trace:
            logger.append_keys(**loggable(call.trace))
        method = self.method_table.get(request.method)
        if method is None:
            raise ProtocolError(
                ErrorCode.METHOD_NOT_FOUND, f"Method not found: {request.method[:64]}"
            )
        return self.write_result(method(call))
