"""What a worker writes into rows, against what its role lets it name."""

from __future__ import annotations

import re
from typing import Any, Final

import pytest

from mcp_tasks.tasks import row_updates
from mcp_tasks.tasks.conditional_update import ConditionalUpdate, update_request
from mcp_tasks.tasks.row_updates import DURABLE_ATTRIBUTES, WORKER_ATTRIBUTES
from tests.unit.support.example_task import ID, NOW

WRITES: Final = {
    "report": row_updates.report("half-way"),
    "store_tool_error": row_updates.store_tool_error("no"),
    "set_undo": row_updates.set_undo(True),
}
WORDS: Final = {"SET", "ADD", "REMOVE", "AND", "IN"}


def named(request: Any) -> set[str]:
    """The attributes that a request names, as IAM's `dynamodb:Attributes` has them."""
    names = request["ExpressionAttributeNames"]
    expressions = request["UpdateExpression"] + " " + request["ConditionExpression"]
    paths = set(re.findall(r"(?<![\w:])#?[A-Za-z]\w*", expressions)) - WORDS
    return {names.get(path, path) for path in paths} | set(request["Key"])


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_workers_write_names_only_what_its_role_may_name(write: ConditionalUpdate) -> None:
    request = update_request("tasks", ID, write, NOW, NOW)
    assert named(request) <= DURABLE_ATTRIBUTES
    assert request.get("ReturnValues") == "NONE"
    assert write.by_worker


def test_a_workers_role_may_name_nothing_that_its_writes_do_not() -> None:
    requests = [update_request("tasks", ID, write, NOW, NOW) for write in WRITES.values()]
    assert set().union(*map(named, requests)) == DURABLE_ATTRIBUTES
    assert set().union(*map(named, requests[:-1])) == WORKER_ATTRIBUTES


def test_no_worker_can_say_whose_task_it_is_or_what_it_runs() -> None:
    """The attributes without which no function takes a row for a task, or starts it."""
    needed = {"schemaVersion", "principal", "tool", "stateMachineArn", "input", "scopes", "asks"}
    scheduled = {"reconcileAt", "reconcileShard"}
    ends = {"result", "resultPayload", "error"}
    assert not DURABLE_ATTRIBUTES & (needed | scheduled | ends)
