"""The kinds of questions that a client declares it can answer: `form`, `url`, `sampling`, `roots`.

Sources: 2026-07-28 client/elicitation.mdx, client/sampling.mdx and client/roots.mdx, "Capabilities"
of each. The four names are this server's; the capability objects are the protocol's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def askable(capabilities: Mapping[str, Any]) -> frozenset[str]:
    """The kinds of questions that a client with these capabilities can answer."""
    found = {name for name in ("sampling", "roots") if isinstance(capabilities.get(name), dict)}
    elicitation = capabilities.get("elicitation")
    if isinstance(elicitation, dict):
        # "An empty capabilities object is equivalent to declaring support for form mode only".
        modes = elicitation or {"form": {}}
        found |= {mode for mode in ("form", "url") if isinstance(modes.get(mode), dict)}
    return frozenset(found)


def required_capabilities(kinds: Iterable[str]) -> dict[str, Any]:
    """The ClientCapabilities that a client must declare to be asked questions of these kinds."""
    capabilities: dict[str, Any] = {}
    for kind in sorted(kinds):
        if kind in ("form", "url"):
            capabilities.setdefault("elicitation", {})[kind] = {}
        else:
            capabilities[kind] = {}
    return capabilities
