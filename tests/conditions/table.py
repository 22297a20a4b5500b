"""Every condition of every conditional write: what it is for, and the test that notices its removal.

A condition is one clause of a write's ConditionExpression, as the request carries it, and the method
that makes the write. `make mutations` removes one at a time and runs its test, which has to fail.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Condition:
    """One clause of one method's write."""

    method: str
    """`module.method`, of mcp_tasks.tasks."""
    clause: str
    race: str
    test: str
    """The id of a test in tests/unit."""

    @property
    def name(self) -> str:
        """How `make mutations` calls it."""
        return f"{self.method}: {self.clause}"


def clauses(expression: str) -> Iterator[str]:
    """The clauses of an expression: what AND combines, outside of brackets."""
    depth, clause = 0, ""
    for part in re.split(r"(\(|\)| AND )", expression):
        if part == " AND " and depth == 0:
            yield clause
            clause = ""
            continue
        depth += {"(": 1, ")": -1}.get(part, 0)
        clause += part
    yield clause
