"""2026-07-28: stateless; every request says all that is to be known of it. Has the tasks extension.

Sources: 2026-07-28 basic/index.mdx, basic/transports/streamable-http.mdx, server/discover.mdx.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from ...protocol import headers as mirrored_headers
from ...protocol import meta
from ...protocol.capabilities import askable
from ...protocol.errors import ErrorCode, ProtocolError, invalid_params
from ...protocol.headers import Headers
from ...protocol.idempotency_header import idempotency_key
from ...protocol.jsonrpc import Request
from ...registry.catalogue import Entry
from ...tasks.questions import Kind
from ..call import Call, Complete, InputNeeded, MethodTable, Outcome
from ..caller import Caller
from ..methods.input_requests import input_requests
from ..methods.lists import FRESH_MS, list_methods
from ..methods.task_wire_format import EXTENSION, create_task_result
from ..request_notifications import RequestNotifications
from ..response_channel import ResponseChannel
from .revision import Revision

SUPPORTED: Final = ("2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26")
"""`supportedVersions`, newest first."""


class Revision20260728(Revision):
    """The revision that the tasks extension belongs to."""

    version: ClassVar[str] = "2026-07-28"

    def methods(self) -> MethodTable:
        """The core's methods and the extension's."""
        methods_offered, catalogue = self.methods_offered, self.methods_offered.catalogue
        return {
            "server/discover": self._discover(),
            **list_methods(catalogue, catalogue.tools.values(), _as_it_is, _as_it_is, _as_it_is),
            "tools/call": methods_offered.call_tool,
            "resources/read": methods_offered.read_resource,
            "prompts/get": methods_offered.get_prompt,
            "completion/complete": methods_offered.complete_argument,
            **methods_offered.tasks,
            "subscriptions/listen": methods_offered.listen,
        }

    def read(
        self, request: Request, headers: Headers, caller: Caller, channel: ResponseChannel
    ) -> Call:
        """`_meta`, then the headers that repeat the body, then the version."""
        about = meta.read(request.params)
        mirrored_headers.check(request, about, headers)
        if about.protocol_version != self.version:
            raise unsupported(about.protocol_version)
        return Call(
            method=request.method,
            params=request.params,
            principal=caller.principal,
            scopes=caller.scopes,
            stream=RequestNotifications(channel.send, about.progress_token, about.log_level),
            channel=channel,
            request_id=request.id,
            client_can=frozenset(map(Kind, askable(about.capabilities))),
            takes_tasks=about.declares_extension(EXTENSION),
            mirrors=headers,
            idempotency_key=idempotency_key(headers, request.params["_meta"]),
            trace=about.trace,
            **_earlier_round(request.params),
        )

    def write(self, outcome: Outcome) -> dict[str, Any]:
        """A result with its type, what caches may do with it, and who made it."""
        if isinstance(outcome, Complete):
            result = {"resultType": "complete", **outcome.result}
            if outcome.fresh_ms is not None:
                result |= {"ttlMs": outcome.fresh_ms, "cacheScope": outcome.cache_scope}
        elif isinstance(outcome, InputNeeded):
            result = {
                "resultType": "input_required",
                "inputRequests": input_requests(outcome.questions),
                "requestState": outcome.state,
            }
        else:
            result = create_task_result(outcome.task)
        about = {
            **result.get("_meta", {}),
            meta.SERVER_INFO: self.methods_offered.identity.implementation,
        }
        return {**result, "_meta": about}

    def refusal(self, error: ProtocolError) -> ProtocolError:
        """Errors are raised in the words of this revision."""
        return error

    def _discover(self) -> Any:
        """`server/discover`, built once."""
        # Exactly {}: one client reads any other settings object as "no tasks".
        capabilities = {**self.methods_offered.capabilities(), "extensions": {EXTENSION: {}}}
        outcome = Complete(
            {
                "supportedVersions": list(SUPPORTED),
                "capabilities": capabilities,
                **self.methods_offered.identity.hint,
            },
            fresh_ms=FRESH_MS,
            cache_scope="public",
        )
        return lambda call: outcome


def _as_it_is(entry: Entry) -> dict[str, Any]:
    """Authors declare in the words of this revision."""
    return entry.definition


def _earlier_round(params: dict[str, Any]) -> dict[str, Any]:
    """`inputResponses` and `requestState` (mrtr.mdx). Raises ProtocolError (-32602)."""
    answers, state = params.get("inputResponses"), params.get("requestState")
    if answers is not None and not isinstance(answers, dict):
        raise invalid_params("params.inputResponses must be an object of answers by key")
    if state is not None and not isinstance(state, str):
        raise invalid_params("params.requestState must be a string")
    return {"answers": answers, "state": state}


def unsupported(requested: str) -> ProtocolError:
    """-32022, with what is spoken here (versioning.mdx, "Protocol Version Negotiation")."""
    message = "Unsupported protocol version"
    if requested in SUPPORTED:
        message = f"{requested} begins with initialize, and has no such _meta"
    return ProtocolError(
        ErrorCode.UNSUPPORTED_PROTOCOL_VERSION,
        message,
        {"supported": list(SUPPORTED), "requested": requested[:64]},
    )
