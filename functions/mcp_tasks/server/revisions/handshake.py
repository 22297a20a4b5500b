"""What the revisions that begin with a handshake have in common: 2025-03-26 to 2025-11-25.

`initialize` begins a session (2025-11-25 basic/transports.mdx, "Session Management"), whose id says
what the client can do. A client that sends no session id is served all the same: the server assumes
that it can do nothing, asks it no questions and gives it no tasks.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from http import HTTPStatus
from typing import Any, ClassVar, Final

from ...protocol.errors import HTTP_STATUS, ErrorCode, ProtocolError, invalid_params
from ...protocol.jsonrpc import malformed
from ...protocol.notifications import LOG_LEVELS
from ...registry.catalogue import Entry, ToolEntry
from .. import sessions
from ..call import (
    Call,
    Complete,
    InputNeeded,
    Method,
    MethodTable,
    MissingInputCapability,
    MissingTasksExtension,
    Outcome,
    ResourceNotFound,
    TaskCreated,
)
from ..methods.lists import list_methods
from ..methods.task_wire_2025_11_25 import create_task_result
from ..session_methods import SessionMethods
from .session_revision import SessionRevision

RESOURCE_NOT_FOUND: Final = -32002
"""server/resources.mdx, "Error Handling", of these revisions."""

ERRORS_WITH_STATUS_200: Final = frozenset(
    {ErrorCode.METHOD_NOT_FOUND, ErrorCode.INVALID_PARAMS, ErrorCode.INTERNAL_ERROR}
)


class HandshakeRevision(SessionRevision):
    """A revision with `initialize`, `ping` and `logging/setLevel`."""

    def build_method_table(self) -> MethodTable:
        """The methods of all three revisions."""
        catalogue, in_sessions = self.methods.catalogue, self.methods.in_sessions
        return {
            "initialize": self._initialize(),
            "ping": lambda call: Complete({}),
            "logging/setLevel": self._set_level,
            **list_methods(
                catalogue,
                self.methods.companion_tools,
                self.tool_definition,
                self.resource_definition,
                self.prompt_definition,
            ),
            **dict.fromkeys(self.methods_that_ask, self.run),
            "completion/complete": self.methods.complete_argument,
            **(self._in_session_table(in_sessions) if in_sessions else {}),
        }

    def _in_session_table(self, in_sessions: SessionMethods) -> MethodTable:
        tasks = in_sessions.tasks.table(self.version, self.follow)
        return {
            **in_sessions.client_tasks.beside(tasks),
            **in_sessions.resource_subscriptions.table(),
        }

    declares_tasks: ClassVar[bool] = False
    """Whether the server declares tasks: clients that send `params.task` look for it."""

    # The shapes in which the three revisions differ.

    @abstractmethod
    def tool_definition(self, entry: ToolEntry) -> dict[str, Any]:
        """`Tool`."""

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

    def task_required_code(self) -> ErrorCode:
        """The error code for a tool that runs only as a task."""
        return ErrorCode.INVALID_REQUEST

    # What is the same in all three.

    @cached_property
    def methods_that_ask(self) -> MethodTable:
        """Calls of tools, and what fills in prompts and reads resources."""
        return {
            "tools/call": shaped(self.methods.call_tool, self.tool_result),
            "resources/read": self.methods.read_resource,
            "prompts/get": shaped(self.methods.get_prompt, self.prompt_result),
        }

    def write_result(self, outcome: Outcome) -> dict[str, Any]:
        """The bare result. Questions are no results in these revisions."""
        if isinstance(outcome, TaskCreated):
            return create_task_result(outcome.task)
        if isinstance(outcome, InputNeeded):
            raise _error(
                ErrorCode.INVALID_REQUEST,
                "The server has to ask the client a question; that needs a session, and a client "
                "that resumes event streams",
            )
        if not isinstance(outcome, Complete):
            raise TypeError(f"{self.version} has no {type(outcome).__name__}")
        return outcome.result

    def write_error(self, error: ProtocolError) -> ProtocolError:
        """Errors of a method have HTTP 200: an older client reads a 404 as a lost session.

        Errors of the transport keep their status: a malformed body, a forbidden Origin, a reached
        limit.
        """
        if isinstance(error, MissingTasksExtension):
            message = f"{error.message}; send params.task, or a client that resumes streams"
            return _error(self.task_required_code(), message)
        if isinstance(error, ResourceNotFound):
            return _error(RESOURCE_NOT_FOUND, error.message, error.data)
        if isinstance(error, MissingInputCapability):
            message = f"{error.message} in the initialize of this session"
            return _error(ErrorCode.INVALID_REQUEST, message, error.data)
        usual = error.code in ERRORS_WITH_STATUS_200
        if usual and error.status == HTTP_STATUS[ErrorCode(error.code)]:
            return _error(error.code, error.message, error.data)
        return error

    def _tasks_capability(self) -> dict[str, Any]:
        """`capabilities.tasks`, where there is a tool that can run as a task."""
        catalogue, in_sessions = self.methods.catalogue, self.methods.in_sessions
        supported = any(e.task_support != "forbidden" for e in catalogue.tools.values())
        if not (self.declares_tasks and supported and in_sessions):
            return {}
        return {"tasks": in_sessions.tasks.capability()}

    def _initialize(self) -> Method:
        """`initialize` (lifecycle.mdx, "Initialization")."""
        result = {
            "protocolVersion": self.version,
            "capabilities": {
                **self.methods.capabilities(tells_lists=True),
                **self._tasks_capability(),
            },
            "serverInfo": self.server_info(),
            **self.methods.identity.hint,
        }

        def initialize(call: Call) -> Complete:
            for name, kind in (("protocolVersion", str), ("capabilities", dict)):
                if not isinstance(call.params.get(name), kind):
                    raise invalid_params(f"params.{name} is missing or of the wrong type")
            if call.session is not None:
                raise malformed("The session is initialized; send initialize without its id")
            methods = self.methods.in_sessions
            if methods is None:
                return Complete(result)
            session_id = methods.sessions.begin(self.version, call.params, call.principal)
            return Complete(result, headers={sessions.HEADER: session_id})

        return initialize

    def _set_level(self, call: Call) -> Complete:
        """`logging/setLevel`; without a session, the level is checked and not kept."""
        level = call.params.get("level")
        if not isinstance(level, str) or level not in LOG_LEVELS:
            raise invalid_params(f"params.level must be one of {', '.join(LOG_LEVELS)}")
        if call.session is not None and self.methods.in_sessions is not None:
            self.methods.in_sessions.sessions.set_level(call.session, level)
        return Complete({})


def _error(code: int, message: str, data: Mapping[str, Any] | None = None) -> ProtocolError:
    return ProtocolError(code, message, data, status=HTTPStatus.OK)


def execution(entry: ToolEntry) -> dict[str, Any]:
    """`execution.taskSupport` (2025-11-25 tools.mdx, "Tool").

    No tool says "required": a call without `params.task` is answered with the task's result. One
    SDK refuses to send such a call for a tool that does.
    """
    return {} if entry.task_support == "forbidden" else {"execution": {"taskSupport": "optional"}}


def shaped(method: Method, shape: Callable[[dict[str, Any]], dict[str, Any]]) -> Method:
    """The method, with results in the shape of a revision."""

    def answer(call: Call) -> Outcome:
        outcome = method(call)
        if not isinstance(outcome, Complete):
            return outcome
        return replace(outcome, result=shape(outcome.result))

    return answer
