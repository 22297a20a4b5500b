"""The protocol revisions that the endpoint speaks, and which of them a request is of.

A revision is a module: what it calls things, how it reads a request and writes an answer is known
there and nowhere else. Requests of all revisions come to the same URL, and nothing is remembered
between them, so each is taken for what it says itself (versioning.mdx, "Backward Compatibility").
"""

from __future__ import annotations

from typing import Any

from ...protocol import meta
from ...protocol.headers import Headers
from ..server_methods import ServerMethods
from .handshake import HandshakeRevision
from .revision import Revision
from .v2025_03_26 import Revision20250326
from .v2025_06_18 import Revision20250618
from .v2025_11_25 import Revision20251125
from .v2026_07_28 import Revision20260728, unsupported


class Revisions:
    """All of them, newest first."""

    def __init__(self, methods_offered: ServerMethods) -> None:
        self.modern = Revision20260728(methods_offered)
        handshake: list[HandshakeRevision] = [
            Revision20251125(methods_offered),
            Revision20250618(methods_offered),
            Revision20250326(methods_offered),
        ]
        self.modern.prepare()
        self._handshake = {revision.version: revision for revision in handshake}
        self._newest, self._oldest = handshake[0], handshake[-1]

    def of(self, message: Any, headers: Headers) -> Revision:
        """The revision that a message is of, whether or not it is well-formed.

        Raises ProtocolError (-32022) when it names one that is not spoken here.
        """
        params = message.get("params") if isinstance(message, dict) else None
        about = params.get("_meta") if isinstance(params, dict) else None
        if isinstance(about, dict) and (meta.PROTOCOL_VERSION in about):
            return self.modern
        named = headers.get("mcp-protocol-version")
        if named == self.modern.version:
            return self.modern
        if isinstance(params, dict) and message.get("method") == "initialize":
            wanted = params.get("protocolVersion")
            # lifecycle.mdx, "Version Negotiation": otherwise, another one, the latest.
            found = self._handshake.get(wanted) if isinstance(wanted, str) else None
            return found or self._newest
        if named is not None:
            if named not in self._handshake:
                raise unsupported(named)
            return self._handshake[named]
        # Neither version nor header: a modern client that forgot both, which its other header
        # gives away, or one from before there were such headers (streamable-http.mdx, "Protocol
        # Version Header").
        return self._oldest if headers.get("mcp-method") is None else self.modern
