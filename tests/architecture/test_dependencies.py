"""Which package may import which. Dependencies point one way: up this table, never down.

Every import statement counts: those within functions, and those for type checkers alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from typing import Final

import pytest

from tests.architecture.modules import Module, modules

MAY_IMPORT: Final = {
    # The library of the functions. Each module directly in mcp_tasks/ counts as a package.
    "mcp_tasks.audit": "",
    "mcp_tasks.aws": "",
    "mcp_tasks.environment": "",
    "mcp_tasks.json_schema": "",
    "mcp_tasks.limits": "",
    "mcp_tasks.metrics": "",
    "mcp_tasks.server_identity": "",
    "mcp_tasks.tracebacks": "aws environment",
    "mcp_tasks.protocol": "",
    "mcp_tasks.payloads": "protocol",
    "mcp_tasks.tasks": "payloads protocol",
    "mcp_tasks.sessions": "protocol tasks",
    "mcp_tasks.registry": "protocol tasks",
    "mcp_tasks.crash_report": "registry",
    "mcp_tasks.redaction": "crash_report protocol registry tracebacks",
    "mcp_tasks.authorization": "protocol registry",
    "mcp_tasks.durable": "payloads protocol redaction registry tasks",
    "mcp_tasks.workflows": "crash_report durable payloads protocol redaction registry tasks",
    "mcp_tasks.testing": "crash_report durable payloads registry tasks tracebacks workflows",
    "mcp_tasks.notifications": "payloads protocol tasks workflows",
    "mcp_tasks.deployment": (
        "durable notifications payloads protocol registry sessions tasks workflows"
    ),
    "mcp_tasks.server": (
        "deployment notifications payloads protocol redaction registry sessions tasks workflows"
    ),
    "mcp_tasks": "registry",  # what the authors of tools import from `mcp_tasks` itself
    # The handlers.
    "api": "deployment server tasks tracebacks",
    "ask": "deployment redaction tasks tracebacks workflows",
    "authorize": "authorization",
    "deliver": "deployment notifications tasks",
    "finish": "deployment tasks tracebacks workflows",
    "publish": "deployment notifications server",
    "subtasks": "deployment tasks workflows",
    "sweep": "aws deployment registry tasks tracebacks workflows",
    "worker": (
        "deployment durable payloads protocol redaction registry tasks tracebacks workflows"
    ),
    # What runs beside the functions. `infra` takes constants and the catalogue from the library.
    "infra": "notifications protocol registry server tasks workflows",
    "mcp_tasks_client": "",
    "local": "mcp_tasks_client",
    "operations": "durable infra local notifications payloads registry tasks workflows",
}
"""Package -> the packages that it may import, without their `mcp_tasks.`."""

FOUNDATIONS: Final = {name for name in MAY_IMPORT if "." in name and not MAY_IMPORT[name]}
"""Parts of the library that import none of it. All but the client may import them."""

KNOWN: Final[dict[tuple[str, str], str]] = {
    (
        "local",
        "infra",
    ): "infra.packages: `make add` asks whether Lambda can have a package",
}
"""What the table does not allow, and why it is so."""


def package(name: str) -> str:
    """The package that a module is in, as the table names packages."""
    parts = name.split(".")
    beginning = ".".join(parts[:2])
    return beginning if parts[0] == "mcp_tasks" or beginning in MAY_IMPORT else parts[0]


def allowed(importing: str) -> set[str]:
    """The packages that a package may import, by their whole names."""
    if importing in FOUNDATIONS | {"mcp_tasks_client"}:
        return set()
    names = MAY_IMPORT[importing].split()
    return FOUNDATIONS | {name if name in MAY_IMPORT else f"mcp_tasks.{name}" for name in names}


@cache
def imported(module: Module) -> tuple[tuple[str, int], ...]:
    """Every module of ours that a module imports, and in which line."""
    return tuple(_imported(module))


def _imported(module: Module) -> Iterator[tuple[str, int]]:
    ours = {module.name for module in modules()}
    for node in ast.walk(module.tree):
        for name in _names(node, module):
            while name and name not in ours:  # an object of a module, or not of this repository
                name = name.rpartition(".")[0]
            if name:
                yield name, getattr(node, "lineno", 0)


def _names(node: ast.AST, module: Module) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    beginning = node.module or ""
    if node.level:
        here = module.name.split(".") + ([""] if module.is_package else [])
        beginning = ".".join([*here[: -node.level], *filter(None, [node.module])])
    return [f"{beginning}.{alias.name}" for alias in node.names]


def test_every_package_is_in_the_table() -> None:
    found = {package(module.name) for module in modules()}

    assert found - MAY_IMPORT.keys() == set(), "add a line to MAY_IMPORT"
    assert MAY_IMPORT.keys() - found == set(), "remove the line from MAY_IMPORT"


@pytest.mark.parametrize("name", MAY_IMPORT)
def test_a_package_imports_what_the_table_allows(name: str) -> None:
    wrong = [
        f"{module.place}:{line} imports {other}"
        for module in modules()
        if package(module.name) == name
        for other, line in imported(module)
        if package(other) not in {name, *allowed(name)} and (name, package(other)) not in KNOWN
    ]

    assert wrong == []


def test_the_table_has_no_circle() -> None:
    order = TopologicalSorter({name: allowed(name) for name in MAY_IMPORT}).static_order()

    assert set(order) == MAY_IMPORT.keys()
