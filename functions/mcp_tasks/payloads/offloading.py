"""Make a JSON value fit: what is small stays where it is, what is large is pointed to. Pure.

    {"title": "US airports", "rows": [...]}    ->    {"title": "US airports", "rows": <pointer>}

The largest goes first, and what is within goes before what it is in: so a list of large elements
stays a list, which a Map state can take apart, and a Choice still sees the small members beside a
large one. Where there are too many for pointers, their list or object becomes one pointer.
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

WORTH: Final = 1024
"""Bytes from which on a part is worth a pointer, which has some 200, and a read."""
LEVELS: Final = 10
"""How deep large parts are looked for. Each level measures what is in it once more, so that a value
nested a hundred times would cost a hundred times as much; what is deeper goes as one part."""
MOST: Final = 10**12
"""Bytes, more than an S3 object has: no offset and no size is larger."""
MOST_WHOLE: Final = 64_000_000
"""Bytes of all that is put back into one value, unless whoever asks has room for more."""

_LONGEST: Final = json.JSONEncoder(allow_nan=False)
_SHORTEST: Final = json.JSONEncoder(allow_nan=False, ensure_ascii=False, separators=(",", ":"))


def size(value: Any) -> int:
    """Bytes of a value's JSON text, written at its longest.

    With spaces, as Lambda's runtime writes what a function returns, and with all but ASCII escaped,
    as a row keeps it. Step Functions counts bytes of UTF-8 ("Quotas": 256 KiB), which are never
    more; so what fits in this way fits in each.

    Raises ValueError for what JSON does not have: NaN, infinity, half of a surrogate pair. And
    TypeError for what is no JSON value.
    """
    text = _LONGEST.encode(value)
    if "\\ud" in text:  # escapes of a pair, or of half of one
        text_of(value).encode()
    return len(text)


def text_of(value: Any) -> str:
    """A value's JSON text, as it is stored: without spaces. Raises as `size` does, but for
    surrogates.
    """
    return _SHORTEST.encode(value)


def fit(value: Any, room: int, key: str) -> tuple[Any, bytes]:
    """The value with at most `room` bytes (see `size`), and what the S3 object `key` has to hold.

    That is nothing when the value fits as it is. A value that does not fit otherwise becomes one
    pointer, whatever the room. Raises as `size` does.
    """
    whole = size(value)
    if whole <= room:
        return value, b""
    pointer = size(PayloadPointer(key, MOST, MOST).as_json())
    worth = max(WORTH, pointer)
    root = _part(value, whole, worth, LEVELS)
    _move(root, room, pointer)
    stored = BytesIO()
    return _rest(root, key, stored), stored.getvalue()


@dataclass(slots=True, eq=False)
class _Part:
    """A value that is worth a pointer, or the whole."""

    value: Any
    size: int
    """Of what is left of it."""
    parent: _Part | None
    parts: dict[Any, _Part] = field(default_factory=dict)
    """Its large members, or elements, by key or index."""
    left: int = 0
    """How many of them may be moved before it is."""
    moved: bool = False


def _part(value: Any, length: int, worth: int, levels: int, parent: _Part | None = None) -> _Part:
    part = _Part(value, length, parent)
    if levels:
        for place, member in _members(value):
            # Numbers are not moved, however long.
            if isinstance(member, (str, dict, list, tuple)) and (length := size(member)) > worth:
                part.parts[place] = _part(member, length, worth, levels - 1, part)
        part.left = len(part.parts)
    return part


def _members(value: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(value, dict):
        return value.items()
    return enumerate(value) if isinstance(value, (list, tuple)) else ()


def _all(part: _Part) -> Iterator[_Part]:
    yield part
    for within in part.parts.values():
        yield from _all(within)


def _move(root: _Part, room: int, pointer: int) -> None:
    """Mark what has to be moved until the rest fits."""
    numbers = count()  # of two that are as large, the one that comes first
    waiting = [(-part.size, next(numbers), part) for part in _all(root) if not part.left]
    heapify(waiting)
    while root.size > room and not root.moved:
        _, _, part = heappop(waiting)
        part.moved = True
        saved = part.size - pointer
        within: _Part | None = part
        while within is not None:
            within.size -= saved
            within = within.parent
        above = part.parent
        if above is not None:
            above.left -= 1
            if not above.left:
                heappush(waiting, (-above.size, next(numbers), above))


def _rest(part: _Part, key: str, stored: BytesIO) -> Any:
    """What is left of a part; what was moved is written, in the order of the text."""
    if part.moved:
        text = text_of(part.value).encode()
        payload = PayloadPointer(key, stored.tell(), len(text))
        stored.write(text)
        return payload.as_json()
    if not part.parts:
        return part.value
    rest: Any = dict(part.value) if isinstance(part.value, dict) else list(part.value)
    for place, within in part.parts.items():
        rest[place] = _rest(within, key, stored)
    return rest
