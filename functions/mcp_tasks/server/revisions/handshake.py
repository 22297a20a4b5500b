"""What the revisions that begin with a handshake have in common: 2025-03-26 to 2025-11-25.

The server serves them without sessions: it answers `initialize`, remembers nothing, and gives out
no session id (transports.mdx, "Session Management": a server MAY assign one). A later request does
not repeat the client's capabilities, so the server assumes none: it asks such a client no questions
and gives it no tasks.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Final

from ...protocol import meta
from ...protocol.errors import HTTP_STATUS, ErrorCode, ProtocolError, invalid_params
from ...protocol.headers import Headers
from ...protocol.jsonrpc import Request
from ...protocol.notifications import LOG_LEVELS
from ...protocol.trace import trace_context
from ...registry.catalogue import Entry, ToolEntry
from ..call import (
    Call,
    Complete,
    Method,
    MethodTable,
    MissingInputCapability,
    MissingTasksExtension,
    Outcome,
    ResourceNotFound,
)
from ..caller import Caller
from ..methods.lists import list_methods
from ..request_notifications import RequestNotifications
from ..response_channel import ResponseChannel
from .revision import Revision

RESOURCE_NOT_FOUND: Final = -32002
"""server/resources.mdx, "Error Handling", of these revisions."""

ERRORS_WITH_STATUS_200: Final = frozenset(
    {ErrorCode.METHOD_NOT_FOUND, ErrorCode.INVALID_PARAMS, ErrorCode.INTERNAL_ERROR}
)

LOG_LEVEL: Final = "info"
"""The level for every client; the server does not remember a level that a client has set
(logging.mdx: "the server MAY decide which messages to send automatically")."""


class HandshakeRevision(Revision):
    """A revision with `initialize`, `ping` and `logging/setLevel`."""

    def build_method_table(self) -> MethodTable:
        """The methods of all three revisions."""
        catalogue = self.methods.catalogue
        tools = [entry for entry in catalogue.tools.values() if self.lists_tool(entry)]
        return {
            "initialize": self._initialize(),
            "ping": lambda call: Complete({}),
            "logging/setLevel": _set_level,
            **list_methods(
                catalogue,
                tools,
                self.tool_definition,
                self.resource_definition,
                self.prompt_definition,
            ),
            "tools/call": _shaped(self.methods.call_tool, self.tool_result),
            "resources/read": self.methods.read_resource,
            "prompts/get": _shaped(self.methods.get_prompt, self.prompt_result),
            "completion/complete": self.methods.complete_argument,
        }

    # The shapes in which the three revisions differ.

    @abstractmethod
    def tool_definition(self, entry: ToolEntry) -> dict[str, Any]:
        """`Tool`."""

    @abstractmethod
    def tool_result(self, result: dict[str, Any]) -> dict[str, Any]:
        """`CallToolResult`."""

    @abstractmethod
    def resource_definition(self, entry: Entry) -> dict[str, Any]:
        """`Resource` or `ResourceTemplate`."""

    @abstractmethod
    def prompt_definition(self, entry: Entry) -> dict[str, Any]:
        """`Prompt`."""

    def prompt_result(self, result: dict[str, Any]) -> dict[str, Any]:
        """`GetPromptResult`."""
        return result

    def server_info(self) -> dict[str, Any]:
        """`serverInfo`."""
        return dict(self.methods.identity.implementation)

    def lists_tool(self, entry: ToolEntry) -> bool:
        """Whether `tools/list` shows a tool. One that needs a task could not be called."""
        return entry.task_support != "required"

    def task_required_code(self) -> ErrorCode:
        """The error code for a tool that runs only as a task: that of an unknown tool."""
        return ErrorCode.INVALID_PARAMS

    # What is the same in all three.

    def read_call(
        self, request: Request, headers: Headers, caller: Caller, channel: ResponseChannel
    ) -> Call:
        """`_meta` is optional."""
        about = request.params.get("_meta", {})
        if not isinstance(about, dict):
            raise invalid_params("params._meta must be an object")
        token = meta.progress_token(about)
        return Call(
            method=request.method,
            params=request.params,
            principal=caller.principal,
            scopes=caller.scopes,
            notifications=RequestNotifications(channel.send, token, LOG_LEVEL),
            channel=channel,
            request_id=request.id,
            trace=trace_context(about),
        )

    def write_result(self, outcome: Outcome) -> dict[str, Any]:
        """The bare result. These clients get neither questions nor tasks."""
        if not isinstance(outcome, Complete):
            raise TypeError(f"{self.version} has no {type(outcome).__name__}")
        return outcome.result

    def write_error(self, error: ProtocolError) -> ProtocolError:
        """Errors of a method have HTTP 200: an older client reads a 404 as a lost session.

        Errors of the transport keep their status: a malformed body, a forbidden Origin, a reached
        limit.
        """
        if isinstance(error, MissingTasksExtension):
            message = f"{error.message}; 2026-07-28 has tasks"
            return _error(self.task_required_code(), message)
        if isinstance(error, ResourceNotFound):
            return _error(RESOURCE_NOT_FOUND, error.message, error.data)
        if isinstance(error, MissingInputCapability):
            message = f"The server has to ask the client a question, and cannot in {self.version}"
            return _error(ErrorCode.INVALID_REQUEST, f"{message}; 2026-07-28 has questions")
        usual = error.code in ERRORS_WITH_STATUS_200
        if usual and error.status == HTTP_STATUS[ErrorCode(error.code)]:
            return _error(error.code, error.message, error.data)
        return error

    def _initialize(self) -> Method:
        """`initialize` (lifecycle.mdx, "Initialization")."""
        result = Complete(
            {
                "protocolVersion": self.version,
                "capabilities": self.methods.capabilities(),
                "serverInfo": self.server_info(),
                **self.methods.identity.hint,
            }
        )

        def initialize(call: Call) -> Complete:
            for name, kind in (("protocolVersion", str), ("capabilities", dict)):
                if not isinstance(call.params.get(name), kind):
                    raise invalid_params(f"params.{name} is missing or of the wrong type")
            return result

        return initialize


def _shaped(method: Method, shape: Callable[[dict[str, Any]], dict[str, Any]]) -> Method:
    """The method, with results in the shape of a revision."""

    def answer(call: Call) -> Outcome:
        outcome = method(call)
        return Complete(shape(outcome.result)) if isinstance(outcome, Complete) else outcome

    return answer


def _set_level(call: Call) -> Complete:
    """`logging/setLevel`: the level is checked and not kept, because there is no session."""
    if call.params.get("level") not in LOG_LEVELS:
        raise invalid_params(f"params.level must be one of {', '.join(LOG_LEVELS)}")
    return Complete({})


def _error(code: int, message: str, data: Mapping[str, Any] | None = None) -> ProtocolError:
    return ProtocolError(code, message, data, status=HTTPStatus.OK)
