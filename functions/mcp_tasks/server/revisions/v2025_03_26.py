"""2025-03-26: the first revision of Streamable HTTP; text, images, audio and embedded resources.

It has no structured content, resource links, titles or icons, and it is the only one that allows
several messages in one body.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from ...registry.catalogue import Entry, ToolEntry
from .handshake import HandshakeRevision, as_text, without

NEWER: Final = ("title", "icons", "_meta", "outputSchema")


class Revision20250326(HandshakeRevision):
    """See the module."""

    version: ClassVar[str] = "2025-03-26"
    batches: ClassVar[bool] = True

    def tool(self, entry: ToolEntry) -> dict[str, Any]:
        """The title is one of its annotations."""
        definition = without(entry.definition, *NEWER)
        title = entry.definition.get("title")
        if title is not None:
            definition["annotations"] = {"title": title, **definition.get("annotations", {})}
        return definition

    def described(self, entry: Entry) -> dict[str, Any]:
        """Without what came later."""
        return without(entry.definition, *NEWER)

    def prompt(self, entry: Entry) -> dict[str, Any]:
        """Its arguments have no titles either."""
        definition = self.described(entry)
        if "arguments" in definition:
            definition["arguments"] = [without(a, "title") for a in definition["arguments"]]
        return definition

    def server_info(self) -> dict[str, Any]:
        """A name and a version."""
        return without(super().server_info(), "title")

    def tool_result(self, result: dict[str, Any]) -> dict[str, Any]:
        """Everything is content."""
        result = as_text(result)
        return {**result, "content": [_block(block) for block in result["content"]]}

    def prompt_result(self, result: dict[str, Any]) -> dict[str, Any]:
        """Messages hold the same contents as tools' results."""
        messages = [{**m, "content": _block(m["content"])} for m in result["messages"]]
        return {**result, "messages": messages}


def _block(block: dict[str, Any]) -> dict[str, Any]:
    """A content block; a link to a resource is its URI as text."""
    if block["type"] != "resource_link":
        return without(block, "_meta")
    return {"type": "text", "text": f"{block['name']}: {block['uri']}"}
