"""The table of conditions is complete, and some of it is tried. `make mutations` tries it all."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.campaigns.conditions.__main__ import caught
from tests.campaigns.conditions.table import CONDITIONS, WRITERS, Condition, clauses
from tests.paths import ROOT

UPDATE = "ConditionalUpdate"
"""What transitions write is of this class."""
LIBRARY = ROOT / "functions" / "mcp_tasks"
TRIED = (
    "idempotency.claim: attribute_not_exists(pk) OR expiresAtMs <= :expired",
    "mailbox_quota.acquire: attribute_not_exists(#live.#number)",
    "quotas.acquire_task: size(#open) < :max",
    "task_table.answer: inputRevision = :seen",
    "task_table.cancel: #status IN (:working, :input_required)",
    "reconcile_index.claim: #reconcileAt = :seen",
)


def writers(module: Path) -> Iterator[str]:
    """The functions of a module in which a condition is written."""
    for function in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(function, ast.FunctionDef):
            for node in ast.walk(function):
                keyword = isinstance(node, ast.keyword) and node.arg
                key = isinstance(node, ast.Constant) and node.value
                update = isinstance(node, ast.Call) and ast.unparse(node.func) == UPDATE
                if "ConditionExpression" in (keyword, key) or keyword == "condition" or update:
                    yield function.name


def test_every_function_that_writes_under_a_condition_is_known() -> None:
    """A new one: add what it writes to the table, with the test that notices its removal."""
    found: dict[str, set[str]] = {}
    for module in LIBRARY.rglob("*.py"):
        for function in writers(module):
            found.setdefault(module.stem, set()).add(function)
    assert found == WRITERS


def test_every_condition_is_in_the_table_once() -> None:
    names = [condition.name for condition in CONDITIONS]
    assert sorted(set(names)) == sorted(names)


def test_the_table_is_in_the_documentation() -> None:
    text = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    for condition in CONDITIONS:
        write = f"| `{condition.method}` | `{condition.clause}` |"
        assert f"{write} {condition.race} | `{condition.test}` |" in text


def test_an_expression_is_taken_apart() -> None:
    expression = "a = :a AND (b = :b OR c = :c AND d = :d) AND #s IN (:x, :y)"
    assert list(clauses(expression)) == [
        "a = :a",
        "(b = :b OR c = :c AND d = :d)",
        "#s IN (:x, :y)",
    ]


@pytest.mark.parametrize("name", TRIED)
def test_a_removal_is_noticed(name: str) -> None:
    (condition,) = [condition for condition in CONDITIONS if condition.name == name]
    assert caught(condition)


def test_a_removal_that_no_test_is_about_is_not_noticed() -> None:
    """Else nothing would be shown by the others."""
    assert not caught(
        Condition("task_table.nothing", "a = :a", "", "tasks/test_reconcile_schedule.py")
    )
