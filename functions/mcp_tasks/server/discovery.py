"""`server/discover` and `tools/list` (server/discover.mdx; server/tools.mdx, "Listing Tools").

Both are built once, when the function starts: they depend on the deployment and on nothing else,
so any cache may keep them (`cacheScope: public`).
"""

from __future__ import annotations

from typing import Any, Final

from ..protocol.errors import invalid_params
from ..registry.catalogue import Catalogue
from .methods import Call, Method, complete
from .tasks_extension import EXTENSION

PROTOCOL_VERSION: Final = "2026-07-28"

FRESH_MS: Final = 300_000
"""How long clients may keep a list: the longest they miss a new deployment's tools."""

INSTRUCTIONS: Final = (
    "Long tools run as tasks: a call may answer with a task, which keeps running when the "
    "connection ends. Poll it with tasks/get, answer its questions with tasks/update."
)


def discover() -> Method:
    """The method `server/discover`."""
    result = complete(
        supportedVersions=[PROTOCOL_VERSION],
        # Exactly {}: one client reads any other settings object as "no tasks".
        capabilities={"tools": {}, "extensions": {EXTENSION: {}}},
        instructions=INSTRUCTIONS,
        ttlMs=FRESH_MS,
        cacheScope="public",
    )
    return lambda call: dict(result)


def list_tools(catalogue: Catalogue) -> Method:
    """The method `tools/list`: all tools on one page, ordered by name."""
    result = complete(
        tools=[entry.definition for entry in catalogue], ttlMs=FRESH_MS, cacheScope="public"
    )

    def answer(call: Call) -> dict[str, Any]:
        if call.params.get("cursor") is not None:
            raise invalid_params("Unknown cursor: this server lists its tools on one page")
        return dict(result)

    return answer
