"""Offload the large parts of a JSON value, so that the rest fits into a limit. Pure.

    {"title": "US airports", "rows": [...]}    ->    {"title": "US airports", "rows": <pointer>}

The largest part is offloaded first, and a part before the list or object that holds it. So a list
of large elements stays a list, which a Map state can iterate, and a Choice state still sees the
small members beside a large one. When even the pointers are too many, their list or object is
offloaded as one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from io import BytesIO
from itertools import count
from typing import Any, Final

from .pointer import PayloadPointer

MIN_OFFLOADED_BYTES: Final = 1024
"""A smaller part stays: a pointer takes some 200 bytes itself, and a read."""
MAX_DEPTH: Final = 10
"""How deep large parts are searched for; what is deeper is offloaded as one part. Every level
measures what it holds once more: without a limit, a value that is nested a hundred times would cost
a hundred times as much."""
MAX_OBJECT_BYTES: Final = 10**12
"""More than the largest S3 object. No offset and no size is larger."""
MAX_RESOLVED_BYTES: Final = 64_000_000
"""Of all payloads that are put back into one value, unless the caller has memory for more."""

_SPACED_ASCII: Final = json.JSONEncoder(allow_nan=False)
_COMPACT: Final = json.JSONEncoder(allow_nan=False, ensure_ascii=False, separators=(",", ":"))


def json_size(value: Any) -> int:
    """Bytes of a value's JSON text in its longest form.

    That form has spaces, as Lambda's runtime writes what a function returns, and escapes all but
    ASCII, as rows do. Step Functions counts bytes of UTF-8 (developer guide, "Quotas": 256 KiB),
    which are never more.

    Raises ValueError for what JSON does not have (NaN, infinity, half of a surrogate pair), and
    TypeError for what is no JSON value.
    """
    text = _SPACED_ASCII.encode(value)
    if "\\ud" in text:  # the escape of a surrogate: of a pair, which UTF-8 has, or of a half
        json_text(value).encode()
    return len(text)


def json_text(value: Any) -> str:
    """A value's JSON text as it is stored in S3: without spaces.

    Raises as `json_size` does, except for half of a surrogate pair.
    """
    return _COMPACT.encode(value)


def offload(value: Any, max_bytes: int, key: str) -> tuple[Any, bytes]:
    """Reduce a value to `max_bytes` (see `json_size`).

    Returns the value with pointers to the S3 object `key`, and what that object has to hold: no
    bytes when the value fits as it is. A value whose pointers do not fit becomes one pointer,
    whatever the limit. Raises as `json_size` does.
    """
    size = json_size(value)
    if size <= max_bytes:
        return value, b""
    pointer_size = json_size(PayloadPointer(key, MAX_OBJECT_BYTES, MAX_OBJECT_BYTES).as_json())
    root = _part(value, size, max(MIN_OFFLOADED_BYTES, pointer_size), MAX_DEPTH)
    _select(root, max_bytes, pointer_size)
    content = BytesIO()
    return _write(root, key, content), content.getvalue()


@dataclass(slots=True, eq=False)
class _Part:
    """A part of a value that is large enough to be offloaded; the root is the whole value."""

    value: Any
    size: int
    """Bytes, with pointers in the place of what is offloaded from it."""
    parent: _Part | None
    parts: dict[Any, _Part] = field(default_factory=dict)
    """Its large members or elements, by key or index."""
    parts_left: int = 0
    """How many of its parts are not offloaded yet; the part itself follows after them."""
    offloaded: bool = False


def _part(value: Any, size: int, min_size: int, depth: int, parent: _Part | None = None) -> _Part:
    """The tree of a value's large parts."""
    part = _Part(value, size, parent)
    if depth:
        for key, member in _members(value):
            if not isinstance(member, (str, dict, list, tuple)):
                continue  # a number stays, however long it is
            member_size = json_size(member)
            if member_size > min_size:
                part.parts[key] = _part(member, member_size, min_size, depth - 1, part)
        part.parts_left = len(part.parts)
    return part


def _members(value: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(value, dict):
        return value.items()
    return enumerate(value) if isinstance(value, (list, tuple)) else ()


def _all_parts(part: _Part) -> Iterator[_Part]:
    yield part
    for inner in part.parts.values():
        yield from _all_parts(inner)


def _select(root: _Part, max_bytes: int, pointer_size: int) -> None:
    """Mark the parts to offload, the largest first, until the rest of the root fits."""
    order = count()  # of two parts of one size, the first comes first
    heap = [(-part.size, next(order), part) for part in _all_parts(root) if not part.parts_left]
    heapify(heap)
    while root.size > max_bytes and not root.offloaded:
        _, _, part = heappop(heap)
        part.offloaded = True
        saved = part.size - pointer_size
        holder: _Part | None = part
        while holder is not None:
            holder.size -= saved
            holder = holder.parent
        parent = part.parent
        if parent is not None:
            parent.parts_left -= 1
            if not parent.parts_left:
                heappush(heap, (-parent.size, next(order), parent))


def _write(part: _Part, key: str, content: BytesIO) -> Any:
    """Write the offloaded parts to `content`, in the order of the text; returns the rest."""
    if part.offloaded:
        text = json_text(part.value).encode()
        pointer = PayloadPointer(key, content.tell(), len(text))
        content.write(text)
        return pointer.as_json()
    if not part.parts:
        return part.value
    rest: Any = dict(part.value) if isinstance(part.value, dict) else list(part.value)
    for place, inner in part.parts.items():
        rest[place] = _write(inner, key, content)
    return rest
