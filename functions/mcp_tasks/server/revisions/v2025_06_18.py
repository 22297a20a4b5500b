"""2025-06-18: structured content, resource links and titles; no icons, and no tasks."""

from __future__ import annotations

from typing import Any, ClassVar

from ...protocol.errors import ErrorCode, ProtocolError
from ...registry.catalogue import Entry, ToolEntry
from .handshake import HandshakeRevision, as_text, without
from .v2025_11_25 import object_output_only


class Revision20250618(HandshakeRevision):
    """See the module."""

    version: ClassVar[str] = "2025-06-18"

    def lists(self, entry: ToolEntry) -> bool:
        """Not those that only run as tasks: nobody could call them."""
        return entry.task != "required"

    def tool(self, entry: ToolEntry) -> dict[str, Any]:
        """Structured content is an object."""
        return without(object_output_only(entry.definition), "icons")

    def described(self, entry: Entry) -> dict[str, Any]:
        """Without icons."""
        return without(entry.definition, "icons")

    def tool_result(self, result: dict[str, Any]) -> dict[str, Any]:
        """Structured content is an object (server/tools.mdx, "Structured Content")."""
        return result if isinstance(result.get("structuredContent"), dict) else as_text(result)

    def needs_tasks(self, error: ProtocolError) -> tuple[int, str]:
        """As an unknown tool (server/tools.mdx, "Error Handling")."""
        return ErrorCode.INVALID_PARAMS, f"{error.message}; 2026-07-28 has them"
