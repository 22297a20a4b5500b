"""The four lists: pages with stable, opaque cursors (server/utilities/pagination.mdx).

A cursor names the last item of a page, so it stays valid when a deployment between two pages adds
or removes items. The pages depend on the deployment and on nothing else: they are built once, when
the function starts, and any cache may keep them.
"""

from __future__ import annotations

import base64
import binascii
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from ...protocol.errors import invalid_params
from ...registry.catalogue import Catalogue, Entry, PromptEntry, ToolEntry
from ..call import Call, Complete, Method
from .companion_tools import CompanionTools

PAGE_SIZE: Final = 100

LIST_FRESH_MS: Final = 300_000
"""How long clients may cache a list, and so may miss the tools of a new deployment."""


def list_method(
    member: str, items: Mapping[str, dict[str, Any]], page_size: int = PAGE_SIZE
) -> Callable[[Call], Complete]:
    """A list method whose result has `items` as `member`, in ascending order of their names."""
    names = sorted(items)
    pages = {
        start: _page(member, names, items, start, page_size)
        for start in range(0, max(1, len(names)), page_size)
    }

    def list_page(call: Call) -> Complete:
        cursor = call.params.get("cursor")
        start = 0 if cursor is None else bisect_right(names, _last(member, cursor))
        page = pages.get(start) or _page(member, names, items, start, page_size)
        return Complete(page, fresh_ms=LIST_FRESH_MS, cache_scope="public")

    return list_page


def list_methods(
    catalogue: Catalogue,
    companions: CompanionTools | None,
    tool: Callable[[ToolEntry], dict[str, Any]],
    resource: Callable[[Entry], dict[str, Any]],
    prompt: Callable[[PromptEntry], dict[str, Any]],
) -> dict[str, Method]:
    """All four list methods.

    `tool`, `resource` and `prompt` make the definitions that a revision shows.
    """
    resources = catalogue.resources.values()
    return {
        "tools/list": _tools_list(catalogue, companions, tool),
        "resources/list": list_method(
            "resources", {e.name: resource(e) for e in resources if not e.uri.variables}
        ),
        "resources/templates/list": list_method(
            "resourceTemplates", {e.name: resource(e) for e in resources if e.uri.variables}
        ),
        "prompts/list": list_method(
            "prompts", {e.name: prompt(e) for e in catalogue.prompts.values()}
        ),
    }


def _tools_list(
    catalogue: Catalogue,
    companions: CompanionTools | None,
    shape: Callable[[ToolEntry], dict[str, Any]],
) -> Method:
    """A client that can take a task's result gets the tools alone; any other one has companions."""
    tools = catalogue.tools.values()
    alone = list_method("tools", {entry.name: shape(entry) for entry in tools})
    if companions is None:
        return alone
    accompanied = list_method("tools", companions.listed(tools, shape))

    def list_tools(call: Call) -> Complete:
        takes_tasks = call.declares_tasks or call.resumes
        page = alone(call) if takes_tasks else accompanied(call)
        # A shared cache does not know which client it answers.
        return replace(page, cache_scope="private")

    return list_tools


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
    """The name of the last item before a cursor. Raises ProtocolError (-32602)."""
    if isinstance(cursor, str):
        try:
            text = base64.b64decode(cursor, altchars=b"-_", validate=True).decode()
        except (binascii.Error, ValueError):
            text = ""
        kind, _, name = text.partition(":")
        if kind == member and name:
            return name
    raise invalid_params("params.cursor is not a cursor of this list; begin again without it")
