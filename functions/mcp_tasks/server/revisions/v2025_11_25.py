"""2025-11-25: the last revision with a handshake; icons, and a first design of tasks.

Its own tasks (basic/utilities/tasks.mdx) are a dialect that would be written here, over the same
core. The server does not declare the capability, so its clients know not to ask for any.
"""

from __future__ import annotations

from typing import Any, ClassVar

from ...protocol.errors import ErrorCode
from ...registry.catalogue import Entry, ToolEntry
from .handshake import HandshakeRevision, object_output_only


class Revision20251125(HandshakeRevision):
    """See the module."""

    version: ClassVar[str] = "2025-11-25"

    def lists(self, entry: ToolEntry) -> bool:
        """All of them: a tool can say that it needs a task."""
        return True

    def tool(self, entry: ToolEntry) -> dict[str, Any]:
        """Says so in `execution` (tasks.mdx, "Tool-Level Negotiation")."""
        definition = object_output_only(entry.definition)
        if entry.task == "required":
            definition["execution"] = {"taskSupport": "required"}
        return definition

    def described(self, entry: Entry) -> dict[str, Any]:
        """As it is."""
        return entry.definition

    def needs_tasks(self) -> ErrorCode:
        """tasks.mdx, "Tool-Level Negotiation": -32601."""
        return ErrorCode.METHOD_NOT_FOUND
