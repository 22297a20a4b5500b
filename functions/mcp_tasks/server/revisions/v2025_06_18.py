"""2025-06-18: structured content, resource links and titles; no icons, and no tasks."""

from __future__ import annotations

from typing import Any, ClassVar

from ...registry.catalogue import Entry, ToolEntry
from .handshake import HandshakeRevision, object_output_only, without


class Revision20250618(HandshakeRevision):
    """See the module."""

    version: ClassVar[str] = "2025-06-18"

    def tool(self, entry: ToolEntry) -> dict[str, Any]:
        """Structured content is an object."""
        return without(object_output_only(entry.definition), "icons")

    def described(self, entry: Entry) -> dict[str, Any]:
        """Without icons."""
        return without(entry.definition, "icons")
