"""Definitions of tools, resources and prompts, as the lists show them to clients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def build_definition(
    *,
    icons: Sequence[Mapping[str, Any]],
    meta: Mapping[str, Any],
    annotations: Mapping[str, Any] | None = None,
    **members: Any,
) -> dict[str, Any]:
    """A definition with these members, in this order, without those that are None or empty."""
    found = {
        **members,
        "annotations": dict(annotations or {}),
        "icons": [dict(icon) for icon in icons],
        "_meta": dict(meta),
    }
    return {name: value for name, value in found.items() if value not in (None, "", [], {})}
