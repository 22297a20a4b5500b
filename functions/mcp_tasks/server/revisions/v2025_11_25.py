"""2025-11-25: the last revision with a handshake; icons, and a first design of tasks.

Its own tasks (basic/utilities/tasks.mdx) are a dialect that would be written here, over the same
core. The server does not declare the capability, so its clients know not to ask for any.
"""

from __future__ import annotations

from typing import Any, ClassVar

from ...protocol.errors import ErrorCode, ProtocolError
from ...registry.catalogue import Entry, ToolEntry
from .handshake import HandshakeRevision, as_text, without


class Revision20251125(HandshakeRevision):
    """See the module."""

    version: ClassVar[str] = "2025-11-25"

    def lists(self, entry: ToolEntry) -> bool:
        """All of them."""
        return True

    def tool(self, entry: ToolEntry) -> dict[str, Any]:
        """A tool says whether it needs a task; its structured content is an object."""
        definition = object_output_only(entry.definition)
        if entry.task == "required":
            definition["execution"] = {"taskSupport": "required"}
        return definition

    def described(self, entry: Entry) -> dict[str, Any]:
        """As it is."""
        return entry.definition

    def tool_result(self, result: dict[str, Any]) -> dict[str, Any]:
        """Structured content is an object (server/tools.mdx, "Structured Content")."""
        return result if isinstance(result.get("structuredContent"), dict) else as_text(result)

    def needs_tasks(self, error: ProtocolError) -> tuple[int, str]:
        """basic/utilities/tasks.mdx, "Tool-Level Negotiation": -32601."""
        return ErrorCode.METHOD_NOT_FOUND, f"{error.message}; 2026-07-28 has them"


def object_output_only(definition: dict[str, Any]) -> dict[str, Any]:
    """A copy, without an output schema of anything but an object."""
    output = definition.get("outputSchema", {})
    return without(definition, *(() if output.get("type") == "object" else ("outputSchema",)))
