"""A pytest plugin that takes one condition out of the requests to DynamoDB, or notes all there are.

WITHOUT="rows.create: attribute_not_exists(taskId)" pytest -p tests.campaigns.conditions.plugin ...
NOTED=file pytest -p tests.campaigns.conditions.plugin ...
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from botocore.client import BaseClient

from tests.campaigns.conditions.table import clauses

PACKAGES: Final = tuple(
    str(Path("mcp_tasks") / name) + os.sep
    for name in ("tasks", "sessions", "durable", "notifications")
)
"""The packages that write under conditions."""
ALWAYS: Final = "(attribute_exists(anything) OR attribute_not_exists(anything))"
HELPERS: Final = frozenset(
    {"_update", "_add", "_write", "_remove", "_remove_ended", "_set_released"}
)
"""Methods that write for others, which are the ones to name."""

_make_api_call = BaseClient._make_api_call  # type: ignore[attr-defined]
_without = os.environ.get("WITHOUT", "")
_noted: set[str] = set()


def make_api_call(client: Any, operation: str, request: dict[str, Any]) -> Any:
    """Make a call, with one condition less if it is the one."""
    if "TransactItems" in request:
        request = {"TransactItems": [_changed_item(each) for each in request["TransactItems"]]}
    return _make_api_call(client, operation, _changed(request))


def _changed_item(item: dict[str, Any]) -> dict[str, Any]:
    """An item of a transaction."""
    return {action: _changed(write) for action, write in item.items()}


def _changed(request: dict[str, Any]) -> dict[str, Any]:
    if "ConditionExpression" not in request:
        return request
    method, kept = _method(), []
    for clause in clauses(request["ConditionExpression"]):
        name = f"{method}: {clause}"
        _noted.add(name)
        kept.append(ALWAYS if name == _without else clause)
    if ALWAYS in kept:
        request = {**request, "ConditionExpression": " AND ".join(kept)}
        _leave_out_unused(request)
    return request


def _method() -> str:
    """The method of these packages that makes the call, apart from helpers within its module."""
    found = "?"
    frame = sys._getframe(3)
    while frame is not None:
        code = frame.f_code
        if any(package in code.co_filename for package in PACKAGES):
            found = f"{Path(code.co_filename).stem}.{code.co_name}"
            if code.co_name not in HELPERS:
                return found
        frame = frame.f_back  # type: ignore[assignment]
    return found


def _leave_out_unused(request: dict[str, Any]) -> None:
    """DynamoDB refuses names and values that no expression uses."""
    text = " ".join(v for k, v in request.items() if k.endswith("Expression"))
    used = set(re.findall(r"[#:]\w+", text))
    for key in ("ExpressionAttributeNames", "ExpressionAttributeValues"):
        if key in request:
            kept = {name: value for name, value in request[key].items() if name in used}
            request.pop(key)
            if kept:
                request[key] = kept


@pytest.fixture(autouse=True, scope="session")
def _mutated() -> Iterator[None]:
    BaseClient._make_api_call = make_api_call  # type: ignore[attr-defined]
    yield
    BaseClient._make_api_call = _make_api_call  # type: ignore[attr-defined]
    if "NOTED" in os.environ:
        Path(os.environ["NOTED"]).write_text("\n".join(sorted(_noted)), encoding="utf-8")
