"""What a request costs: the calls to AWS, one by one (one per poll, three per create)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from mcp_tasks.limits import Limits
from mcp_tasks.registry.catalogue import FILE_NAME
from mcp_tasks.server.methods.subscriptions import STREAM_END_MS
from mcp_tasks.tasks.questions import FormQuestion, open_ask
from mcp_tasks.tasks.task import now_ms
from tests.paths import FUNCTIONS
from tests.unit.support.aws import CALLERS, MAILBOXES, TABLE
from tests.unit.support.listening import Streamed, Time
from tests.unit.support.push import Push
from tests.unit.support.stack import (
    ENVIRONMENT,
    PREFIX,
    WITHIN_THE_REQUEST,
    Stack,
    meta,
    mirrored,
)


def test_starting_the_server_calls_nothing(stack: Stack) -> None:
    assert stack.calls.made == []


@pytest.mark.parametrize(
    ("tool", "arguments", "state_machine"),
    [
        ("count", {"upto": 3}, f"{PREFIX}count"),
        ("wait", {}, f"{PREFIX}wait"),
        ("review", {"text": "a b"}, f"{PREFIX}review"),
        ("orders", {"item": "tea"}, "arn:aws:states:us-east-1:123456789012:stateMachine:orders"),
    ],
)
def test_a_create_is_a_quota_a_row_and_a_start(
    stack: Stack, tool: str, arguments: dict[str, Any], state_machine: str
) -> None:
    """The row first: once the execution runs, its reports and its end find the row.

    Acquiring quota takes one call; a caller's very first, and one right after another, take two.
    """
    task_id = stack.created(tool, arguments)
    *places, put, start = stack.calls.made
    assert [place.operation for place in places] == ["update_item"] * 2
    assert {place.arguments["TableName"] for place in places} == {CALLERS}
    assert put.operation == "put_item"
    assert put.arguments["TableName"] == TABLE
    assert put.arguments["Item"]["taskId"] == {"S": task_id}
    assert start.operation == "start_execution"
    assert start.arguments["name"] == task_id
    assert start.arguments["stateMachineArn"] == state_machine
    assert start.arguments["input"] == put.arguments["Item"]["input"]["S"]


def test_a_create_with_a_key_writes_the_key_first(stack: Stack) -> None:
    stack.created("count", {"upto": 3}, headers={"Idempotency-Key": "k"})
    key, *_, row, start = stack.calls.made
    assert (key.operation, key.arguments["TableName"]) == ("put_item", CALLERS)
    assert (row.operation, row.arguments["TableName"]) == ("put_item", TABLE)
    assert start.operation == "start_execution"


def test_a_create_that_is_repeated_with_its_key_is_a_write_that_fails_and_a_read(
    stack: Stack,
) -> None:
    key = {"Idempotency-Key": "k"}
    task_id = stack.created("count", {"upto": 3}, headers=key)
    stack.calls.forget()
    assert stack.created("count", {"upto": 3}, headers=key) == task_id
    assert stack.calls.operations == ["put_item", "get_item"]


def test_without_limits_a_create_is_a_row_and_a_start(stack: Stack) -> None:
    stack.environment["LIMITS"] = Limits(max_open_tasks=0, creations_per_minute=0).to_json()
    stack.serve()
    stack.created("count", {"upto": 3})
    assert stack.calls.operations == ["put_item", "start_execution"]


def test_a_poll_is_one_consistent_read(stack: Stack) -> None:
    task_id = stack.created("count", {"upto": 3})
    stack.calls.forget()
    stack.task(task_id)
    (get,) = stack.calls.made
    assert get.operation == "get_item"
    assert get.arguments["ConsistentRead"] is True
    assert get.arguments["Key"] == {"taskId": {"S": task_id}}


def test_a_poll_needs_no_step_functions_client(stack: Stack) -> None:
    """Making a client costs more than most requests."""
    created = stack.created("count", {"upto": 3})
    stack.calls.forget()
    stack.serve()
    stack.task(created)
    stack.post("tools/list")
    stack.call("echo", {"text": "a"})
    assert stack.calls.clients == ["dynamodb"]


LISTS: Final = ["tools/list", "resources/list", "resources/templates/list", "prompts/list"]


@pytest.mark.parametrize("method", ["server/discover", *LISTS])
def test_a_list_calls_nothing(stack: Stack, method: str) -> None:
    stack.post(method)
    assert stack.calls.made == []
    assert stack.calls.clients == ["dynamodb"]


@pytest.mark.parametrize("method", WITHIN_THE_REQUEST)
def test_what_runs_within_the_request_acquires_its_quota_and_releases_it(
    stack: Stack, method: str
) -> None:
    """Two writes; a caller's first call is three."""
    stack.post(method, WITHIN_THE_REQUEST[method])
    stack.calls.forget()
    stack.post(method, WITHIN_THE_REQUEST[method])
    assert stack.calls.operations == ["update_item"] * 2
    assert {call.arguments["TableName"] for call in stack.calls.made} == {CALLERS}


@pytest.mark.parametrize("method", WITHIN_THE_REQUEST)
def test_without_a_limit_what_runs_within_the_request_calls_nothing(
    stack: Stack, method: str
) -> None:
    stack.environment["LIMITS"] = Limits(max_open_calls=0).to_json()
    stack.serve()
    stack.post(method, WITHIN_THE_REQUEST[method])
    assert stack.calls.made == []


def test_what_is_refused_before_it_runs_calls_nothing(stack: Stack) -> None:
    stack.call("echo", {"text": 5})
    stack.call("unknown", {})
    stack.post("prompts/get", {"name": "review", "arguments": {}})
    stack.post("resources/read", {"uri": "docs://nowhere"})
    assert stack.calls.made == []


def test_a_create_that_asks_first_holds_a_call_while_it_asks(stack: Stack) -> None:
    book = {"name": "book", "arguments": {"seats": 1000}}
    stack.post("tools/call", book)
    stack.calls.forget()
    stack.post("tools/call", book)
    assert stack.calls.operations == ["update_item"] * 2


def test_questions_within_requests_read_one_secret_once(stack: Stack) -> None:
    """The key of request states; an instance keeps it."""
    params = {"name": "nosy", "arguments": {}}
    for _ in range(2):
        asked = stack.post("tools/call", params)
        yes = {"answer": {"action": "accept", "content": {"sure": True}}}
        assert stack.repeat("tools/call", params, asked, yes).result["resultType"] == "complete"
    (secret,) = (call for call in stack.calls.made if call.operation != "update_item")
    assert secret.operation == "get_secret_value"
    assert secret.arguments == {"SecretId": stack.environment["REQUEST_STATE_KEY_SECRET"]}


def test_a_cancel_is_a_read_a_write_and_a_stop(stack: Stack) -> None:
    """The read tells which scopes the task's tool needs."""
    task_id = stack.created("count", {"upto": 3})
    stack.calls.forget()
    stack.cancel(task_id)
    get, update, stop = stack.calls.made
    assert get.operation == "get_item"
    assert update.operation == "update_item"
    assert stop.operation == "stop_execution"
    assert stop.arguments["executionArn"] == (
        f"{PREFIX.replace(':stateMachine:', ':execution:')}count:{task_id}"
    )


def test_an_answer_is_a_read_a_write_a_token_and_a_tombstone(stack: Stack) -> None:
    task_id = stack.created("count", {"upto": 3})
    form = {"type": "object", "properties": {"sure": {"type": "boolean"}}}
    ask = open_ask("token", {"answer": FormQuestion("Sure?", form)})
    stack.deployment.task_table.ask(task_id, ask, now_ms())
    stack.calls.instead["send_task_success"] = lambda **arguments: {}
    stack.calls.forget()
    (key,) = ask.questions
    stack.update(task_id, {key: {"action": "accept", "content": {"sure": True}}})
    assert stack.calls.operations == [
        "get_item",
        "update_item",
        "send_task_success",
        "update_item",
    ]


def test_an_answer_to_nothing_is_one_read(stack: Stack) -> None:
    task_id = stack.created("count", {"upto": 3})
    stack.calls.forget()
    stack.update(task_id, {"unknown": {"action": "decline"}})
    assert stack.calls.operations == ["get_item"]


OPEN: Final = ["get_item", "update_item"]
"""What mailboxes the caller has, and one more: quota and rate limit are in the same item."""
TAKE_OVER: Final = ["get_item", "query", "update_item"]
"""Also what was delivered to the client's last subscription."""
ACCEPT: Final = ["batch_get_item"]
"""Which tasks there are."""
READ: Final = ["batch_get_item", "query"]
"""The tasks once more, now that nothing is missed, and the mailbox."""
RELEASE: Final = ["put_item", "update_item"]
"""What was delivered, and that the mailbox is left for the next subscription."""


@pytest.fixture
def time(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> Time:
    """A streaming function that has no time left for a subscription."""
    stack.environment["LIMITS"] = Limits(max_open_tasks=0, creations_per_minute=0).to_json()
    stack.serve()
    found = Time()
    found.rule(monkeypatch)
    stack.way = Streamed(found, remaining_ms=STREAM_END_MS)
    return found


def followed(stack: Stack, count: int) -> list[str]:
    """Tasks, and nothing counted yet."""
    task_ids = [stack.created("count", {"upto": 3}) for _ in range(count)]
    stack.calls.forget()
    return task_ids


@pytest.mark.parametrize(("tasks", "writes"), [(1, 1), (25, 1), (26, 2), (100, 4)])
def test_a_subscription_reads_its_tasks_twice_and_follows_them_in_batches(
    stack: Stack, time: Time, tasks: int, writes: int
) -> None:
    """Once to learn whose they are, and once when the mailbox receives every later change."""
    stack.listen(followed(stack, tasks))
    follow = ["batch_write_item"] * writes
    assert stack.calls.operations == [*OPEN, *ACCEPT, *follow, *READ, *RELEASE]
    reads = [c.arguments for c in stack.calls.made if c.operation == "batch_get_item"]
    for read in reads:
        assert read["RequestItems"][TABLE]["ConsistentRead"] is True
        assert len(read["RequestItems"][TABLE]["Keys"]) == tasks
    tables = {c.arguments["TableName"] for c in stack.calls.made if "TableName" in c.arguments}
    assert tables == {MAILBOXES}


def test_a_subscription_that_is_continued_writes_two_items_three_times(
    stack: Stack, time: Time
) -> None:
    """However many tasks it follows: they are followed for longer than it takes."""
    task_ids = followed(stack, 30)
    for _ in range(3):
        stack.calls.forget()
        stack.listen(task_ids)
    assert stack.calls.operations == [*TAKE_OVER, *ACCEPT, *READ, *RELEASE]


def test_delivered_mailbox_entries_are_removed_in_one_batch(stack: Stack, time: Time) -> None:
    task_ids = followed(stack, 3)
    stack.listen(task_ids)
    push = Push(clock=time.read)
    for task_id in task_ids:
        stack.deployment.task_table.report(task_id, "half-way", time.now)
    push.run()
    stack.calls.forget()
    stack.listen(task_ids)
    expected = [*TAKE_OVER, *ACCEPT, *READ, "batch_write_item", *RELEASE]
    assert stack.calls.operations == expected


def test_a_subscription_to_ended_tasks_leaves_no_mailbox(stack: Stack, time: Time) -> None:
    task_ids = followed(stack, 3)
    for task_id in task_ids:
        stack.deployment.task_table.complete(task_id, {"content": []}, time.now)
    stack.calls.forget()
    stack.listen(task_ids)
    assert stack.calls.operations == [*OPEN, *ACCEPT, *READ, "update_item"]


def test_a_quiet_moment_of_a_subscription_is_one_query(stack: Stack, time: Time) -> None:
    """At most ten in a second, and one in a second after the first three; half the price of
    a consistent one."""
    stack.way = Streamed(time, remaining_ms=10_000 + 15_000)
    stack.listen(followed(stack, 5))
    quiet = stack.calls.made[len([*OPEN, *ACCEPT, "batch_write_item", *READ]) : -2]
    assert [call.operation for call in quiet] == ["query"] * len(time.waits)
    assert {call.arguments["ConsistentRead"] for call in quiet} == {False}
    assert min(time.waits) >= 0.1
    assert len(time.waits) < 6 + 15


def test_a_subscription_to_no_task_calls_nothing(stack: Stack) -> None:
    stack.listen(None)
    stack.listen([])
    assert stack.calls.made == []


POLL = """
import json, pathlib, sys, types
sys.path.insert(0, sys.argv[1])
from botocore.client import BaseClient
calls = []
def answer_nothing(client, operation, arguments):
    calls.append(operation)
    return {}
BaseClient._make_api_call = answer_nothing
import mcp_tasks.deployment
mcp_tasks.deployment.BUNDLE = pathlib.Path(sys.argv[2])
import api.handler
context = types.SimpleNamespace(
    function_name="api", memory_limit_in_mb=1, invoked_function_arn="arn", aws_request_id="1"
)
answer = api.handler.handler(json.loads(sys.argv[3]), context)
heavy = {"pydantic", "pydantic_core", "jsonschema", "jsonschema_rs", "fastjsonschema", "tools"}
heavy |= {"cryptography", "boto3", "s3transfer", "mcp", "mangum", "starlette"}
print(json.dumps([answer["statusCode"], answer["body"], calls, sorted(heavy & sys.modules.keys())]))
"""


def test_a_poll_imports_no_pydantic_schema_validator_cryptography_boto3_or_tool(
    stack: Stack, tmp_path: Path
) -> None:
    """A cold start pays for every import (docs/design.md, "Cold starts")."""
    stack.catalogue.write(tmp_path / FILE_NAME)
    stack.identity.write(tmp_path)
    params = {"taskId": f"c1-{'0' * 32}", "_meta": meta()}
    event = {
        "headers": mirrored("tasks/get", params),
        "body": json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": params}),
    }
    done = subprocess.run(
        [sys.executable, "-c", POLL, str(FUNCTIONS), str(tmp_path), json.dumps(event)],
        env={
            **ENVIRONMENT,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "POWERTOOLS_LOG_LEVEL": "CRITICAL",
        },
        capture_output=True,
        text=True,
        check=True,
    )
    status, body, calls, heavy = json.loads(done.stdout.splitlines()[-1])
    assert (status, json.loads(body)["error"]["code"]) == (400, -32602)
    assert "Task not found" in body
    assert calls == ["GetItem"]
    assert heavy == []
