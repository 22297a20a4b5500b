"""The `_meta` that every request carries (2026-07-28 basic/index.mdx, "General fields")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from .errors import invalid_params

PROTOCOL_VERSION: Final = "io.modelcontextprotocol/protocolVersion"
CLIENT_CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
CLIENT_INFO: Final = "io.modelcontextprotocol/clientInfo"
SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"


@dataclass(frozen=True, slots=True)
class RequestMeta:
    """What the client says of itself, for this request only; nothing is remembered."""

    protocol_version: str
    capabilities: dict[str, Any]

    def declares_extension(self, identifier: str) -> bool:
        """Whether this request's capabilities name the extension (settings must be an object)."""
        extensions = self.capabilities.get("extensions")
        return isinstance(extensions, dict) and isinstance(extensions.get(identifier), dict)

    @property
    def accepts_forms(self) -> bool:
        """Whether the client can show a form (elicitation.mdx, "Capabilities").

        An empty `elicitation` object means form mode.
        """
        elicitation = self.capabilities.get("elicitation")
        return isinstance(elicitation, dict) and (not elicitation or "form" in elicitation)


def read(params: dict[str, Any]) -> RequestMeta:
    """Read and check a request's `_meta`.

    Raises ProtocolError (-32602, HTTP 400) naming the field that is missing or malformed. An
    unsupported but well-formed version is not checked here.
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
    return RequestMeta(version, capabilities)
