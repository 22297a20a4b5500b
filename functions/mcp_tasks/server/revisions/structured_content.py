"""Structured content in revisions that restrict it to objects, or have none."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def without(definition: Mapping[str, Any], *members: str) -> dict[str, Any]:
    """A copy without the members that a revision does not have."""
    return {name: value for name, value in definition.items() if name not in members}


def object_schema_only(definition: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of a tool's definition; an output schema of anything but an object is left out."""
    output = definition.get("outputSchema", {})
    return without(definition, *(() if output.get("type") == "object" else ("outputSchema",)))


def object_content_only(result: dict[str, Any]) -> dict[str, Any]:
    """A CallToolResult; structured content that is not an object becomes text."""
    if isinstance(result.get("structuredContent"), dict):
        return result
    return structured_content_as_text(result)


def structured_content_as_text(result: dict[str, Any]) -> dict[str, Any]:
    """A CallToolResult without structured content, whose text then holds all of it."""
    if "structuredContent" not in result:
        return result
    copy = {"type": "text", "text": json.dumps(result["structuredContent"], ensure_ascii=False)}
    content = [block for block in result["content"] if not _says_no_copy(block)]
    if copy not in content:
        content.append(copy)
    return {**without(result, "structuredContent"), "content": content}


def _says_no_copy(block: dict[str, Any]) -> bool:
    """Whether a text says only that the structured content was too large to be copied into it."""
    from ...registry.results import OMITTED_COPY_PREFIX

    return block["type"] == "text" and str(block["text"]).startswith(OMITTED_COPY_PREFIX)
