"""The objects of large values, in memory: as much of S3's client as `PayloadStore` uses."""

from __future__ import annotations

from dataclasses import dataclass, field
from io import BytesIO
from typing import Any


@dataclass
class MemoryBucket:
    """A bucket."""

    objects: dict[str, bytes] = field(default_factory=dict)

    def put_object(self, *, Key: str, Body: bytes, **_: Any) -> dict[str, Any]:
        """Write an object."""
        self.objects[Key] = Body
        return {}

    def get_object(self, *, Key: str, Range: str, **_: Any) -> dict[str, Any]:
        """Read a part of an object; `Range` is `bytes=0-99`."""
        first, last = map(int, Range.removeprefix("bytes=").split("-"))
        return {"Body": BytesIO(self.objects[Key][first : last + 1])}
