"""The `_meta` that every request carries (2026-07-28 basic/index.mdx, "General fields")."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from .errors import invalid_params
from .jsonrpc import ID_TYPES, is_id
from .notifications import LOG_LEVELS, ProgressToken
from .trace import trace_context

META_MEMBER: Final = "_meta"
"""MCP's own member of params and results. An execution's input has it beside the arguments."""
PROTOCOL_VERSION: Final = "io.modelcontextprotocol/protocolVersion"
CLIENT_CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
CLIENT_INFO: Final = "io.modelcontextprotocol/clientInfo"
LOG_LEVEL: Final = "io.modelcontextprotocol/logLevel"
SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION_ID: Final = "io.modelcontextprotocol/subscriptionId"


@dataclass(frozen=True, slots=True)
class RequestMeta:
    """What the client declares with one request; the server remembers nothing."""

    protocol_version: str
    capabilities: dict[str, Any]
    progress_token: ProgressToken | None = None
    log_level: str | None = None
    trace: dict[str, str] = field(default_factory=dict)

    def declares_extension(self, identifier: str) -> bool:
        """Whether the capabilities name the extension; its settings must be an object."""
        extensions = self.capabilities.get("extensions")
        return isinstance(extensions, dict) and isinstance(extensions.get(identifier), dict)


def read(params: dict[str, Any]) -> RequestMeta:
    """Read and check a request's `_meta`.

    Raises ProtocolError (-32602, HTTP 400), which names the missing or malformed field. Whether the
    version is supported is not checked here.
    """
    meta = params.get("_meta")
    if not isinstance(meta, dict):
        raise invalid_params(
            f"params._meta must be an object with {PROTOCOL_VERSION} and {CLIENT_CAPABILITIES}"
        )
    version = meta.get(PROTOCOL_VERSION)
    if not isinstance(version, str):
        raise invalid_params(f"params._meta.{PROTOCOL_VERSION} must be a string such as 2026-07-28")
    capabilities = meta.get(CLIENT_CAPABILITIES)
    if not isinstance(capabilities, dict):
        raise invalid_params(
            f"params._meta.{CLIENT_CAPABILITIES} must be an object ({{}} for none)"
        )
    client_info = meta.get(CLIENT_INFO)
    if client_info is not None and not isinstance(client_info, dict):
        raise invalid_params(f"params._meta.{CLIENT_INFO} must be an object")
    level = meta.get(LOG_LEVEL)
    if level is not None and level not in LOG_LEVELS:
        raise invalid_params(f"params._meta.{LOG_LEVEL} must be one of {', '.join(LOG_LEVELS)}")
    return RequestMeta(version, capabilities, progress_token(meta), level, trace_context(meta))


def progress_token(meta: dict[str, Any]) -> ProgressToken | None:
    """The token with which the client asks for progress notifications, if it does.

    Raises ProtocolError (-32602).
    """
    token = meta.get("progressToken")
    if token is not None and not is_id(token):
        raise invalid_params(f"params._meta.progressToken must be {ID_TYPES}")
    return token
