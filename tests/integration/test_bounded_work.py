"""How much one caller, and all callers of one tool, may have running."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from http import HTTPStatus
from itertools import pairwise
from typing import Any, Final

from local.deployment import LocalStack
from mcp_tasks.limits import Limits
from tests.integration.support.client import Client
from tests.integration.support.issuer import Issuer
from tests.integration.support.stacks import GUARDED_MAX_TASKS, SCOPE
from tests.integration.support.subscriptions import Stream
from tests.wire import LISTEN, check_listen

DELIVERY_SECONDS: Final = 30.0


def test_who_creates_and_cancels_in_turn_starts_no_more_than_its_quota(
    guarded: LocalStack, issuer: Issuer
) -> None:
    """StopExecution stops no function: each of them may still run."""
    client = Client(guarded.url, token=issuer.mint(scope=SCOPE, sub="impatient"))
    for _ in range(GUARDED_MAX_TASKS):
        client.cancel(client.start("linger", seconds=2))
    refused = client.call("linger", seconds=2)
    assert refused.status == HTTPStatus.TOO_MANY_REQUESTS
    assert refused.headers["retry-after"] == "2"
    assert f"{GUARDED_MAX_TASKS} tasks" in refused.error["message"]


def test_a_client_of_many_names_gets_a_tasks_changes_no_more_often_than_its_quota(
    guarded: LocalStack, issuer: Issuer, aws: Callable[[str], Any]
) -> None:
    """Each name is another client, whose mailbox goes on receiving for a minute."""
    client = Client(guarded.url, token=issuer.mint(scope=SCOPE, sub="many names"))
    followed, ended = client.start("linger", seconds=20), client.start("linger", seconds=0)
    client.cancel(ended)  # so that each subscription ends at once
    limit = Limits().max_open_subscriptions
    for n in range(3 * limit):
        params = {"notifications": {"taskIds": [followed, ended]}}
        body, headers = client.compose(LISTEN, params, {"User-Agent": f"agent/{n}"})
        messages = [each.message for each in Stream(guarded.url, body, headers)]
        check_listen(json.loads(body)["id"], messages, [followed, ended])
    client.cancel(followed)
    assert _mailboxes_with_the_end(aws("dynamodb"), followed) == limit


def _mailboxes_with_the_end(dynamodb: Any, task_id: str) -> int:
    """How many mailboxes have got a task's last change. One call writes all of them."""
    pages = dynamodb.get_paginator("list_tables").paginate()
    tables = [name for page in pages for name in page["TableNames"]]
    (table,) = (name for name in tables if "guarded" in name and "Mailboxes" in name)
    deadline = time.monotonic() + DELIVERY_SECONDS
    while time.monotonic() < deadline:
        pages = dynamodb.get_paginator("scan").paginate(TableName=table)
        items = [item for page in pages for item in page["Items"]]
        details = [json.loads(item["detail"]["S"]) for item in items if "detail" in item]
        found = [detail["status"] for detail in details if detail["taskId"] == task_id]
        if "cancelled" in found:
            return found.count("cancelled")
        time.sleep(0.1)
    raise AssertionError("no mailbox has got the end")


def test_tasks_of_a_tool_that_runs_one_at_a_time_wait_for_each_other(
    client: Client, aws: Callable[[str], Any]
) -> None:
    """`max_concurrency`: a state that finds no free instance tries again.

    MiniStack's CloudFormation leaves a function's reserved concurrency out. The template has it
    (tests/infra/test_reserved_concurrency.py).
    """
    pages = aws("lambda").get_paginator("list_functions").paginate()
    functions = (function for page in pages for function in page["Functions"])
    (worker,) = (f for f in functions if f["Description"] == "Runs the tool one_at_a_time")
    aws("lambda").put_function_concurrency(
        FunctionName=worker["FunctionName"], ReservedConcurrentExecutions=1
    )
    tasks = [client.start("one_at_a_time", seconds=1) for _ in range(3)]
    ended = [client.end(task_id) for task_id in tasks]
    assert [task["status"] for task in ended] == ["completed"] * 3
    runs = sorted(task["result"]["structuredContent"] for task in ended)
    assert all(earlier[1] <= later[0] for earlier, later in pairwise(runs)), runs
