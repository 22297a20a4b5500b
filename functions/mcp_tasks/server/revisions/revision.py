"""What a protocol revision has to say."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from aws_lambda_powertools import Logger

from ...protocol.errors import ErrorCode, ProtocolError
from ...protocol.headers import Headers
from ...protocol.jsonrpc import Request
from ...protocol.trace import logged
from ..call import Call, MethodTable, Outcome
from ..caller import Caller
from ..response_channel import ResponseChannel
from ..server_methods import ServerMethods

logger = Logger()


class Revision(ABC):
    """One revision of the protocol, as one deployment speaks it.

    Its method table, with the lists in it, is built once.
    """

    version: ClassVar[str]

    batches: ClassVar[bool] = False
    """Whether a body may hold several messages."""

    def __init__(self, methods_offered: ServerMethods) -> None:
        self.methods_offered = methods_offered
        self._table: MethodTable | None = None

    def prepare(self) -> MethodTable:
        """The methods, built on the first call."""
        if self._table is None:
            self._table = self.methods()
        return self._table

    @abstractmethod
    def methods(self) -> MethodTable:
        """The methods, by their names in this revision."""

    @abstractmethod
    def read(
        self, request: Request, headers: Headers, caller: Caller, channel: ResponseChannel
    ) -> Call:
        """Check what this revision requires of every request. Raises ProtocolError."""

    @abstractmethod
    def write(self, outcome: Outcome) -> dict[str, Any]:
        """An outcome as this revision's result."""

    @abstractmethod
    def refusal(self, error: ProtocolError) -> ProtocolError:
        """An error as this revision puts it: its code, its data, its HTTP status."""

    def result(
        self, request: Request, headers: Headers, caller: Caller, channel: ResponseChannel
    ) -> dict[str, Any]:
        """Answer a request. Raises ProtocolError."""
        call = self.read(request, headers, caller, channel)
        if call.trace:
            logger.append_keys(**logged(call.trace))
        method = self.prepare().get(request.method)
        if method is None:
            raise ProtocolError(
                ErrorCode.METHOD_NOT_FOUND, f"Method not found: {request.method[:64]}"
            )
        return self.write(method(call))
