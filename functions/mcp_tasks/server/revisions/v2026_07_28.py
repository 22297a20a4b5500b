"""2026-07-28: stateless, with the tasks extension. Each request has its version and capabilities.

Sources: 2026-07-28 basic/index.mdx, basic/transports/streamable-http.mdx, server/discover.mdx.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from ...protocol import meta
from ...protocol.capabilities import askable
from ...protocol.errors import ErrorCode, ProtocolError, invalid_params
from ...protocol.headers import Headers, check_mirrored_headers
from ...protocol.idempotency_header import idempotency_key
from ...protocol.jsonrpc import Request
from ...registry.catalogue import Entry
from ...tasks.questions import Kind
from ..call import Call, Complete, InputNeeded, MethodTable, Outcome, TaskCreated
from ..caller import Caller
from ..methods.input_requests import input_requests
from ..methods.lists import LIST_FRESH_MS, list_methods
from ..methods.task_wire_format import EXTENSION, create_task_result
from ..request_notifications import RequestNotifications
from ..response_channel import ResponseChannel
from .revision import Revision

SUPPORTED: Final = ("2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26")
"""`supportedVersions`, newest first."""


class Revision20260728(Revision):
    """The revision of 2026-07-28."""

    version: ClassVar[str] = "2026-07-28"

    def build_method_table(self) -> MethodTable:
        """The methods of the core protocol and of the tasks extension."""
        methods, catalogue = self.methods, self.methods.catalogue
        return {
            "server/discover": self._discover(),
            **list_methods(
                catalogue, methods.companion_tools, _definition, _definition, _definition
            ),
            "tools/call": methods.call_tool,
            "resources/read": methods.read_resource,
            "prompts/get": methods.get_prompt,
            "completion/complete": methods.complete_argument,
            **methods.tasks,
            "subscriptions/listen": methods.listen,
        }

    def read_call(
        self, request: Request, headers: Headers, caller: Caller, channel: ResponseChannel
    ) -> Call:
        """Check `_meta`, then the headers that mirror the body, then the version."""
        about = meta.read(request.params)
        check_mirrored_headers(request, about, headers)
        if about.protocol_version != self.version:
            raise unsupported(about.protocol_version)
        return Call(
            method=request.method,
            params=request.params,
            principal=caller.principal,
            scopes=caller.scopes,
            notifications=RequestNotifications(channel.send, about.progress_token, about.log_level),
            channel=channel,
            request_id=request.id,
            client_can=frozenset(map(Kind, askable(about.capabilities))),
            declares_tasks=about.declares_extension(EXTENSION),
            headers=headers,
            idempotency_key=idempotency_key(headers, request.params["_meta"]),
            trace=about.trace,
            **_input_responses(request.params),
        )

    def write_result(self, outcome: Outcome) -> dict[str, Any]:
        """A result with its `resultType`, its cache hints, and the server's name in `_meta`."""
        if isinstance(outcome, Complete):
            result = {"resultType": "complete", **outcome.result}
            if outcome.fresh_ms is not None:
                result |= {"ttlMs": outcome.fresh_ms, "cacheScope": outcome.cache_scope}
        elif isinstance(outcome, InputNeeded):
            result = {
                "resultType": "input_required",
                "inputRequests": input_requests(outcome.questions),
                "requestState": outcome.request_state,
            }
        elif isinstance(outcome, TaskCreated):
            result = create_task_result(outcome.task)
        else:
            raise TypeError(f"{self.version} has no {type(outcome).__name__}")
        about = {
            **result.get("_meta", {}),
            meta.SERVER_INFO: self.methods.identity.implementation,
        }
        return {**result, "_meta": about}

    def write_error(self, error: ProtocolError) -> ProtocolError:
        """Unchanged: methods raise the errors of this revision."""
        return error

    def _discover(self) -> Any:
        """`server/discover`, built once for each carrier: a buffered subscription does not follow
        lists (`methods/listen_filter.py`)."""
        outcomes = {streams: self._discovered(streams) for streams in (False, True)}
        return lambda call: outcomes[call.channel.streams]

    def _discovered(self, streams: bool) -> Complete:
        # Exactly {}: one client takes any other settings object for a server without tasks.
        extensions: dict[str, Any] = {"extensions": {EXTENSION: {}}}
        return Complete(
            {
                "supportedVersions": list(SUPPORTED),
                "capabilities": {**self.methods.capabilities(tells_lists=streams), **extensions},
                **self.methods.identity.hint,
            },
            fresh_ms=LIST_FRESH_MS,
            cache_scope="public",
        )


def _definition(entry: Entry) -> dict[str, Any]:
    """A definition as it was declared: authors use the words of this revision."""
    return entry.definition


def _input_responses(params: dict[str, Any]) -> dict[str, Any]:
    """`inputResponses` and `requestState` (mrtr.mdx). Raises ProtocolError (-32602)."""
    responses, state = params.get("inputResponses"), params.get("requestState")
    if responses is not None and not isinstance(responses, dict):
        raise invalid_params("params.inputResponses must be an object of answers by key")
    if state is not None and not isinstance(state, str):
        raise invalid_params("params.requestState must be a string")
    return {"input_responses": responses, "request_state": state}


def unsupported(requested: str) -> ProtocolError:
    """-32022, with the supported versions (versioning.mdx, "Protocol Version Negotiation")."""
    message = "Unsupported protocol version"
    if requested in SUPPORTED:
        message = f"{requested} begins with initialize, and has no such _meta"
    return ProtocolError(
        ErrorCode.UNSUPPORTED_PROTOCOL_VERSION,
        message,
        {"supported": list(SUPPORTED), "requested": requested[:64]},
    )
