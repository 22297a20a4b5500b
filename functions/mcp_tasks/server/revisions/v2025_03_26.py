"""2025-03-26: the first revision of Streamable HTTP; text, images, audio and embedded resources.

It has no structured content, resource links, titles or icons. It is the only revision with batches.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from ...registry.catalogue import Entry, ToolEntry
from .handshake import HandshakeRevision
from .structured_content import structured_content_as_text, without

NEWER_MEMBERS: Final = ("title", "icons", "_meta", "outputSchema")


class Revision20250326(HandshakeRevision):
    """The revision of 2025-03-26."""

    version: ClassVar[str] = "2025-03-26"
    takes_batches: ClassVar[bool] = True

    def tool_definition(self, entry: ToolEntry) -> dict[str, Any]:
        """The title is one of the annotations."""
        definition = without(entry.definition, *NEWER_MEMBERS)
        title = entry.definition.get("title")
        if title is not None:
            definition["annotations"] = {"title": title, **definition.get("annotations", {})}
        return definition

    def tool_result(self, result: dict[str, Any]) -> dict[str, Any]:
        """Structured content and resource links become text."""
        result = structured_content_as_text(result)
        return {**result, "content": [_block(block) for block in result["content"]]}

    def resource_definition(self, entry: Entry) -> dict[str, Any]:
        """Without the members that came later."""
        return without(entry.definition, *NEWER_MEMBERS)

    def prompt_definition(self, entry: Entry) -> dict[str, Any]:
        """Without the members that came later; the arguments have no titles."""
        definition = without(entry.definition, *NEWER_MEMBERS)
        if "arguments" in definition:
            definition["arguments"] = [without(a, "title") for a in definition["arguments"]]
        return definition

    def server_info(self) -> dict[str, Any]:
        """A name and a version; no title."""
        return without(super().server_info(), "title")

    def prompt_result(self, result: dict[str, Any]) -> dict[str, Any]:
        """Messages hold the same content blocks as tool results."""
        messages = [{**m, "content": _block(m["content"])} for m in result["messages"]]
        return {**result, "messages": messages}


def _block(block: dict[str, Any]) -> dict[str, Any]:
    """A content block; a resource link becomes its URI as text."""
    if block["type"] != "resource_link":
        return without(block, "_meta")
    return {"type": "text", "text": f"{block['name']}: {block['uri']}"}
