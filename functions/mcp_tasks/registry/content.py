"""Content blocks, as tools' results and prompts' messages carry them (tools.mdx, "Tool Result").

Each function returns the block as a dict with the specification's member names. `annotations` (the
audience and the priority) and `_meta` may be added to any block.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

ContentBlock = dict[str, Any]

REQUIRED: Final[Mapping[str, tuple[str, ...]]] = {
    "text": ("text",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource_link": ("uri", "name"),
    "resource": ("resource",),
}
"""The required members of each type of block."""


def text(value: str) -> ContentBlock:
    """Plain text."""
    return {"type": "text", "text": value}


def image(data: bytes, mime_type: str) -> ContentBlock:
    """An image, for instance of the type `image/png`."""
    return {"type": "image", "data": _base64(data), "mimeType": mime_type}


def audio(data: bytes, mime_type: str) -> ContentBlock:
    """A sound, for instance of the type `audio/wav`."""
    return {"type": "audio", "data": _base64(data), "mimeType": mime_type}


def resource_link(uri: str, name: str, **members: Any) -> ContentBlock:
    """A link to a resource that the client may read. `members` are further ones of a Resource."""
    return {"type": "resource_link", "uri": uri, "name": name, **members}


def embedded_resource(uri: str, value: str | bytes, mime_type: str | None = None) -> ContentBlock:
    """A resource with its contents."""
    return {"type": "resource", "resource": resource_contents(uri, value, mime_type)}


def resource_contents(uri: str, value: str | bytes, mime_type: str | None = None) -> dict[str, Any]:
    """Text or bytes under a URI (resources.mdx, "Resource Contents")."""
    contents: dict[str, Any] = {"uri": uri}
    if mime_type is not None:
        contents["mimeType"] = mime_type
    contents |= {"text": value} if isinstance(value, str) else {"blob": _base64(value)}
    return contents


def is_block(block: Any) -> bool:
    """Whether a client can read this as a content block."""
    kind = block.get("type") if isinstance(block, Mapping) else None
    if not isinstance(kind, str) or kind not in REQUIRED:
        return False
    if kind == "resource":
        return is_contents(block.get("resource"))
    return all(isinstance(block.get(name), str) for name in REQUIRED[kind])


def is_contents(contents: Any) -> bool:
    """Whether a client can read this as a resource's contents."""
    return (
        isinstance(contents, Mapping)
        and isinstance(contents.get("uri"), str)
        and isinstance(contents.get("text", contents.get("blob")), str)
    )


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
