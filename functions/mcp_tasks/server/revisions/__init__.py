"""The protocol revisions that the endpoint speaks, and how it finds a request's revision.

A revision is a module: its names, how it reads a request and writes a response are known there and
nowhere else. Requests of all revisions come to the same URL, and each is served by what it says
itself (versioning.mdx, "Backward Compatibility"): by its `_meta`, its headers, or its session's id.
"""

from __future__ import annotations

from typing import Any

from ...protocol import meta
from ...protocol.headers import Headers
from ..server_methods import ServerMethods
from ..sessions import Session
from .handshake import HandshakeRevision
from .revision import Revision
from .v2025_03_26 import Revision20250326
from .v2025_06_18 import Revision20250618
from .v2025_11_25 import Revision20251125
from .v2026_07_28 import Revision20260728, unsupported


class Revisions:
    """All revisions of one server."""

    def __init__(self, methods: ServerMethods) -> None:
        self.modern = Revision20260728(methods)
        handshake: list[HandshakeRevision] = [
            Revision20251125(methods),
            Revision20250618(methods),
            Revision20250326(methods),
        ]
        _ = self.modern.method_table  # built at the cold start; the others on first use
        self._handshake = {revision.version: revision for revision in handshake}
        self._newest_handshake, self._oldest = handshake[0], handshake[-1]

    def named(self, version: str) -> Revision:
        """A revision that a session id or an event id names."""
        return self._handshake.get(version, self._newest_handshake)

    def of_session(self, revision: Revision, session: Session | None, headers: Headers) -> Revision:
        """The revision of a request within a session, which one client leaves to the session."""
        if session is None or headers.get("mcp-protocol-version") is not None:
            return revision
        return self.named(session.version)

    def of(self, message: Any, headers: Headers) -> Revision:
        """The revision of a decoded body, whether or not the body is well-formed.

        Raises ProtocolError (-32022) when the request names a revision that is not supported.
        """
        params = message.get("params") if isinstance(message, dict) else None
        about = params.get("_meta") if isinstance(params, dict) else None
        if isinstance(about, dict) and (meta.PROTOCOL_VERSION in about):
            return self.modern
        named = headers.get("mcp-protocol-version")
        if named == self.modern.version:
            return self.modern
        if isinstance(params, dict) and message.get("method") == "initialize":
            requested = params.get("protocolVersion")
            # lifecycle.mdx, "Version Negotiation": for an unknown version, the latest.
            found = self._handshake.get(requested) if isinstance(requested, str) else None
            return found or self._newest_handshake
        if named is not None:
            if named not in self._handshake:
                raise unsupported(named)
            return self._handshake[named]
        # No version at all. With an Mcp-Method header, a client of 2026-07-28 forgot the version.
        # Without one, the client is older than these headers (streamable-http.mdx, "Protocol
        # Version Header").
        return self._oldest if headers.get("mcp-method") is None else self.modern
