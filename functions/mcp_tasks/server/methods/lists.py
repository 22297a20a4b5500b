"""The four lists: pages with stable, opaque cursors (server/utilities/pagination.mdx).

A cursor names the last item of a page, so it stays right when items are added or removed, by a
deployment that happens between two pages, too. The pages are built once, when the function starts:
they depend on the deployment and on nothing else, so any cache may keep them.
"""

from __future__ import annotations

import base64
import binascii
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from ...protocol.errors import invalid_params
from ...registry.catalogue import Catalogue, Entry, PromptEntry, ToolEntry
from ..call import Call, Complete, Method

PAGE_SIZE: Final = 100

FRESH_MS: Final = 300_000
"""How long clients may keep a list: the longest they miss a new deployment's tools."""


def listing(member: str, items: Mapping[str, dict[str, Any]], page_size: int = PAGE_SIZE) -> Method:
    """A list method that answers with `items`, by their names in ascending order, as `member`."""
    names = sorted(items)
    pages = {
        start: _page(member, names, items, start, page_size)
        for start in range(0, max(1, len(names)), page_size)
    }

    def answer(call: Call) -> Complete:
        cursor = call.params.get("cursor")
        start = 0 if cursor is None else bisect_right(names, _last(member, cursor))
        page = pages.get(start) or _page(member, names, items, start, page_size)
        return Complete(page, fresh_ms=FRESH_MS, cache_scope="public")

    return answer


def list_methods(
    catalogue: Catalogue,
    tools: Iterable[ToolEntry],
    tool: Callable[[ToolEntry], dict[str, Any]],
    described: Callable[[Entry], dict[str, Any]],
    prompt: Callable[[PromptEntry], dict[str, Any]],
) -> dict[str, Method]:
    """All four, of these tools, with the definitions that a revision makes of the entries."""
    resources = catalogue.resources.values()
    return {
        "tools/list": listing("tools", {e.name: tool(e) for e in tools}),
        "resources/list": listing(
            "resources", {e.name: described(e) for e in resources if not e.uri.variables}
        ),
        "resources/templates/list": listing(
            "resourceTemplates", {e.name: described(e) for e in resources if e.uri.variables}
        ),
        "prompts/list": listing("prompts", {e.name: prompt(e) for e in catalogue.prompts.values()}),
    }


def _page(
    member: str, names: list[str], items: Mapping[str, dict[str, Any]], start: int, size: int
) -> dict[str, Any]:
    shown = names[start : start + size]
    page: dict[str, Any] = {member: [items[name] for name in shown]}
    if start + size < len(names):
        page["nextCursor"] = _cursor(member, shown[-1])
    return page


def _cursor(member: str, last: str) -> str:
    return base64.urlsafe_b64encode(f"{member}:{last}".encode()).decode()


def _last(member: str, cursor: Any) -> str:
    """The name that a cursor stands for. Raises ProtocolError (-32602)."""
    if isinstance(cursor, str):
        try:
            text = base64.b64decode(cursor, altchars=b"-_", validate=True).decode()
        except (binascii.Error, ValueError):
            text = ""
        kind, _, name = text.partition(":")
        if kind == member and name:
            return name
    raise invalid_params("params.cursor is not one of this list's; begin again without it")
