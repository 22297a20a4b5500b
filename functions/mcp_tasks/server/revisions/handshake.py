"""What the revisions that begin with a handshake have in common: 2025-03-26 to 2025-11-25.

They are served without sessions: `initialize` is answered, nothing is remembered, and no session id
is given out (transports.mdx, "Session Management": a server MAY assign one). So a later request
does not say what its client can do, and the server takes it for one that can do nothing: it is not
asked, and it gets no tasks. Both need state, and have their place in the module of the revision
that defines them.
"""

from __future__ import annotations

import json
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
    CannotAsk,
    Complete,
    Method,
    MethodTable,
    NeedsTasks,
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

ERRORS_OF_REQUESTS: Final = frozenset(
    {ErrorCode.METHOD_NOT_FOUND, ErrorCode.INVALID_PARAMS, ErrorCode.INTERNAL_ERROR}
)

LOG_LEVEL: Final = "info"
"""What a client gets that set no level; one that did set it is not remembered
(logging.mdx: "the server MAY decide which messages to send automatically")."""


class HandshakeRevision(Revision):
    """A revision with `initialize`, `ping` and `logging/setLevel`."""

    def methods(self) -> MethodTable:
        """The methods of all three revisions."""
        methods_offered, catalogue = self.methods_offered, self.methods_offered.catalogue
        tools = [entry for entry in catalogue.tools.values() if self.lists(entry)]
        return {
            "initialize": self._initialize(),
            "ping": lambda call: Complete({}),
            "logging/setLevel": _set_level,
            **list_methods(catalogue, tools, self.tool, self.described, self.prompt),
            "tools/call": _shaped(methods_offered.call_tool, self.tool_result),
            "resources/read": methods_offered.read_resource,
            "prompts/get": _shaped(methods_offered.get_prompt, self.prompt_result),
            "completion/complete": methods_offered.complete_argument,
        }

    # What the revisions differ in; as it is here, it holds for most of them.

    def lists(self, entry: ToolEntry) -> bool:
        """Whether `tools/list` shows a tool: not one that nobody could call."""
        return entry.task != "required"

    @abstractmethod
    def tool(self, entry: ToolEntry) -> dict[str, Any]:
        """A tool's definition."""

    @abstractmethod
    def described(self, entry: Entry) -> dict[str, Any]:
        """A resource's, a template's or a prompt's definition."""

    def prompt(self, entry: Entry) -> dict[str, Any]:
        """A prompt's definition."""
        return self.described(entry)

    def tool_result(self, result: dict[str, Any]) -> dict[str, Any]:
        """A CallToolResult: structured content is an object (tools.mdx, "Structured Content")."""
        return result if isinstance(result.get("structuredContent"), dict) else as_text(result)

    def prompt_result(self, result: dict[str, Any]) -> dict[str, Any]:
        """A GetPromptResult."""
        return result

    def server_info(self) -> dict[str, Any]:
        """What `initialize` says about the server."""
        return dict(self.methods_offered.identity.implementation)

    def needs_tasks(self) -> ErrorCode:
        """The code for a tool that only runs as a task: that of an unknown tool."""
        return ErrorCode.INVALID_PARAMS

    def read(
        self, request: Request, headers: Headers, caller: Caller, channel: ResponseChannel
    ) -> Call:
        """`_meta` is optional."""
        about = request.params.get("_meta", {})
        if not isinstance(about, dict):
            raise invalid_params("params._meta must be an object")
        return Call(
            method=request.method,
            params=request.params,
            principal=caller.principal,
            scopes=caller.scopes,
            stream=RequestNotifications(channel.send, meta.progress_token(about), LOG_LEVEL),
            channel=channel,
            request_id=request.id,
            trace=trace_context(about),
        )

    def write(self, outcome: Outcome) -> dict[str, Any]:
        """The bare result; whoever can be neither asked nor given tasks gets nothing else."""
        if not isinstance(outcome, Complete):
            raise TypeError(f"{self.version} has no {type(outcome).__name__}")
        return outcome.result

    def refusal(self, error: ProtocolError) -> ProtocolError:
        """Errors of requests travel with HTTP 200: an older client takes a 404 for a lost session.

        Those of the transport keep their status: a body that is no request, a forbidden Origin, a
        limit that is reached.
        """
        if isinstance(error, NeedsTasks):
            return _error(self.needs_tasks(), f"{error.message}; 2026-07-28 has them")
        if isinstance(error, ResourceNotFound):
            return _error(RESOURCE_NOT_FOUND, error.message, error.data)
        if isinstance(error, CannotAsk):
            message = f"This needs to ask the client, which {self.version} cannot do here"
            return _error(ErrorCode.INVALID_REQUEST, f"{message}; 2026-07-28 can")
        if error.code in ERRORS_OF_REQUESTS and error.status == HTTP_STATUS[ErrorCode(error.code)]:
            return _error(error.code, error.message, error.data)
        return error

    def _initialize(self) -> Method:
        """`initialize` (lifecycle.mdx, "Initialization")."""
        result = Complete(
            {
                "protocolVersion": self.version,
                "capabilities": self.methods_offered.capabilities(),
                "serverInfo": self.server_info(),
                **self.methods_offered.identity.hint,
            }
        )

        def answer(call: Call) -> Complete:
            for name, kind in (("protocolVersion", str), ("capabilities", dict)):
                if not isinstance(call.params.get(name), kind):
                    raise invalid_params(f"params.{name} is missing or of the wrong type")
            return result

        return answer


def without(definition: Mapping[str, Any], *members: str) -> dict[str, Any]:
    """A copy without the members that a revision does not have."""
    return {name: value for name, value in definition.items() if name not in members}


def object_output_only(definition: Mapping[str, Any]) -> dict[str, Any]:
    """A copy, without an output schema of anything but an object."""
    output = definition.get("outputSchema", {})
    return without(definition, *(() if output.get("type") == "object" else ("outputSchema",)))


def as_text(result: dict[str, Any]) -> dict[str, Any]:
    """A CallToolResult without structured content, which its text then holds entirely."""
    if "structuredContent" not in result:
        return result
    copy = {"type": "text", "text": json.dumps(result["structuredContent"], ensure_ascii=False)}
    content = [block for block in result["content"] if not _stands_for_structure(block)]
    if copy not in content:
        content.append(copy)
    return {**without(result, "structuredContent"), "content": content}


def _shaped(method: Method, shape: Callable[[dict[str, Any]], dict[str, Any]]) -> Method:
    """The method, with results in the shape of a revision."""

    def answer(call: Call) -> Outcome:
        outcome = method(call)
        return Complete(shape(outcome.result)) if isinstance(outcome, Complete) else outcome

    return answer


def _stands_for_structure(block: dict[str, Any]) -> bool:
    """Whether a text says no more than that the structured content was too large for a copy."""
    from ...registry.results import OMITTED_COPY_PREFIX

    return block["type"] == "text" and str(block["text"]).startswith(OMITTED_COPY_PREFIX)


def _set_level(call: Call) -> Complete:
    """`logging/setLevel`: checked, and forgotten, for lack of a session to remember it in."""
    if call.params.get("level") not in LOG_LEVELS:
        raise invalid_params(f"params.level must be one of {', '.join(LOG_LEVELS)}")
    return Complete({})


def _error(code: int, message: str, data: Mapping[str, Any] | None = None) -> ProtocolError:
    return ProtocolError(code, message, data, status=HTTPStatus.OK)
