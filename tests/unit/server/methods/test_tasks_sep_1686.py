"""The tasks of SEP-1686, whose ids the clients choose."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

import pytest

from mcp_tasks.tasks.questions import FormQuestion, open_ask
from tests.unit.support.aws import TABLE, real, refusing
from tests.unit.support.in_session import Reply, SessionClient, time_of
from tests.unit.support.listening import Time
from tests.unit.support.stack import Stack
from tests.unit.support.states import States
from tests.unit.support.whole import HANDSHAKE

INVALID_PARAMS: Final = -32602
TASK: Final = "modelcontextprotocol.io/task"
RELATED: Final = "modelcontextprotocol.io/related-task"
ID: Final = "786512e2-9e0d-44bd-8f29-789f320fe840"
ABOUT: Final = {RELATED: {"taskId": ID}}
RESULT: Final[dict[str, Any]] = {"content": [{"type": "text", "text": "done"}]}
FORM: Final[dict[str, Any]] = {"type": "object", "properties": {"name": {"type": "string"}}}
ALICE: Final = "arn:aws:iam::111122223333:user/alice"
MALLORY: Final = "arn:aws:iam::111122223333:user/mallory"


@pytest.fixture
def time(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> Time:
    return time_of(stack, monkeypatch)


@pytest.fixture
def client(stack: Stack, time: Time) -> SessionClient:
    return SessionClient(stack)


def call(client: SessionClient, task_id: Any = ID, request_id: Any = 1, **more: Any) -> Reply:
    """`tools/call` of a long tool, as a task with this id."""
    return client.call("wait", request_id=request_id, **{TASK: {"taskId": task_id, **more}})


def about(client: SessionClient, method: str, task_id: Any = ID) -> Reply:
    """A request about a task. Its results are in no schema."""
    body = {"jsonrpc": "2.0", "id": 9, "method": method, "params": {"taskId": task_id}}
    return client.post(body)


def our_id(stack: Stack) -> str:
    (row,) = stack.rows
    found: str = row["taskId"]["S"]
    return found


def completes(stack: Stack, time: Time) -> Callable[[], None]:
    return lambda: _complete(stack, time)


def _complete(stack: Stack, time: Time) -> None:
    stack.deployment.task_table.complete(our_id(stack), RESULT, time.now)


@pytest.mark.parametrize("revision", HANDSHAKE)
def test_a_task_is_told_and_then_its_result(stack: Stack, time: Time, revision: str) -> None:
    client = SessionClient(stack, revision)
    time.meanwhile = [completes(stack, time)]
    reply = call(client)
    assert reply.messages[0]["method"] == "notifications/tasks/created"
    assert reply.messages[0]["params"] == {"_meta": ABOUT}
    assert reply.result["content"] == RESULT["content"]
    assert reply.result["_meta"] == ABOUT


def test_a_task_is_polled_by_its_clients_id(
    stack: Stack, time: Time, client: SessionClient
) -> None:
    call(client, keepAlive=60_000)
    task = about(client, "tasks/get").result
    assert task["taskId"] == ID
    assert task["status"] == "submitted"
    assert 0 < task["keepAlive"] <= 60_000
    assert task["pollFrequency"] > 0
    assert task["_meta"] == ABOUT
    stack.deployment.task_table.report(our_id(stack), "on it", time.now)
    assert about(client, "tasks/get").result["status"] == "working"
    refused = about(client, "tasks/result")
    assert refused.code == INVALID_PARAMS
    assert "Task status is 'working', not 'completed'" in str(refused.response)
    _complete(stack, time)
    assert about(client, "tasks/get").result["status"] == "completed"
    for _ in range(2):
        assert about(client, "tasks/result").result == {**RESULT, "_meta": ABOUT}


def test_everything_that_a_task_sends_names_it(
    stack: Stack, time: Time, client: SessionClient
) -> None:
    ask = open_ask("token", {"who": FormQuestion("Who?", FORM)})
    time.meanwhile = [
        lambda: stack.deployment.task_table.report(our_id(stack), "on it", time.now),
        lambda: stack.deployment.task_table.ask(our_id(stack), ask, time.now),
    ]
    reply = client.call("wait", **{TASK: {"taskId": ID}, "progressToken": "t"})
    methods = [message["method"] for message in reply.messages]
    assert "elicitation/create" in methods
    assert "notifications/progress" in methods
    assert all(m["params"]["_meta"].items() >= ABOUT.items() for m in reply.messages)
    assert about(client, "tasks/get").result["status"] == "input_required"


def test_a_failed_task_says_why(stack: Stack, time: Time, client: SessionClient) -> None:
    call(client)
    error = {"code": -32603, "message": "out of paper"}
    stack.deployment.task_table.fail(our_id(stack), error, time.now)
    task = about(client, "tasks/get").result
    assert (task["status"], task["error"]) == ("failed", "out of paper")


def test_an_id_is_used_once(stack: Stack, client: SessionClient) -> None:
    call(client)
    again = call(client, request_id=2)
    assert again.code == INVALID_PARAMS
    assert f"Task ID already exists: {ID}" in str(again.response)
    assert len(stack.rows) == 1


@pytest.mark.parametrize("status", ["RUNNING", "SUCCEEDED"])
def test_an_id_is_used_once_though_its_row_is_deleted(
    stack: Stack, time: Time, client: SessionClient, status: str
) -> None:
    """The execution's name is not free again for 90 days. Its result is an earlier call's."""
    states = States()
    states.serve(stack.calls)
    call(client)
    (arn,) = states.executions
    execution = states.executions[arn]
    execution.started_at = datetime.fromtimestamp(time.now / 1000 - 25 * 3600, UTC)
    execution.status, execution.output, execution.input = status, "{}", "{}"
    real("dynamodb").delete_item(TableName=TABLE, Key={"taskId": {"S": our_id(stack)}})
    again = call(client, request_id=2)
    assert again.code == INVALID_PARAMS
    assert f"Task ID already exists: {ID}" in str(again.response)
    assert about(client, "tasks/get").result["status"] == "failed"


def test_a_write_that_failed_does_not_take_another_calls_task_for_its_own(
    stack: Stack, time: Time, client: SessionClient
) -> None:
    """Two calls with one id at the same time; DynamoDB throttles the second one's write."""
    throttled = refusing("dynamodb", "ProvisionedThroughputExceededException")

    def put_item(**arguments: Any) -> Any:
        del stack.calls.instead["put_item"]
        assert "result" in call(client, request_id=1).response
        return throttled()

    time.meanwhile = [completes(stack, time)]
    stack.calls.instead["put_item"] = put_item
    second = call(client, request_id=2)
    assert f"Task ID already exists: {ID}" in str(second.response)
    assert len(stack.rows) == 1


def test_an_id_is_its_callers_own(stack: Stack, time: Time) -> None:
    stack.environment["AUTH"] = "iam"
    stack.serve()
    alice = SessionClient(stack, user_arn=ALICE)
    mallory = SessionClient(stack, user_arn=MALLORY)
    call(alice)
    for method in ("tasks/get", "tasks/result", "tasks/delete"):
        assert about(mallory, method).code == INVALID_PARAMS
    call(mallory)
    assert len(stack.rows) == 2
    assert len({row["taskId"]["S"] for row in stack.rows}) == 2
    listed = alice.request("tasks/list").result["tasks"]
    assert [(task["taskId"], "keepAlive" in task) for task in listed] == [(ID, True)]


def test_a_task_is_deleted_when_it_has_ended(
    stack: Stack, time: Time, client: SessionClient
) -> None:
    call(client)
    assert about(client, "tasks/delete").code == INVALID_PARAMS
    _complete(stack, time)
    assert about(client, "tasks/delete").result == {"_meta": ABOUT}
    for method in ("tasks/get", "tasks/result", "tasks/delete"):
        assert about(client, method).code == INVALID_PARAMS


def test_a_cancelled_request_cancels_its_task(
    stack: Stack, time: Time, client: SessionClient
) -> None:
    call(client, request_id=7)
    assert client.notify("notifications/cancelled", requestId=8).status == 202
    assert about(client, "tasks/get").result["status"] == "submitted"
    assert client.notify("notifications/cancelled", requestId=7).status == 202
    assert about(client, "tasks/get").result["status"] == "cancelled"


def test_a_tool_that_runs_within_the_request_ignores_it(
    stack: Stack, client: SessionClient
) -> None:
    reply = client.call("echo", {"text": "a"}, **{TASK: {"taskId": ID}})
    assert reply.result["content"]
    assert stack.rows == []


@pytest.mark.parametrize(
    "wanted",
    [
        {},
        [],
        {"taskId": 1},
        {"taskId": ""},
        {"taskId": "x" * 256},
        {"taskId": f"c1-{'0' * 32}"},
        {"taskId": ID, "keepAlive": 0},
        {"taskId": ID, "keepAlive": True},
        {"taskId": ID, "keepAlive": "long"},
    ],
)
def test_what_asks_for_no_task_is_refused(stack: Stack, client: SessionClient, wanted: Any) -> None:
    assert client.call("wait", **{TASK: wanted}).code == INVALID_PARAMS
    assert stack.rows == []


def test_the_two_designs_do_not_mix(stack: Stack, client: SessionClient) -> None:
    params = {"name": "wait", "task": {}, "_meta": {TASK: {"taskId": ID}}}
    assert client.request("tools/call", params).code == INVALID_PARAMS
    assert stack.rows == []


@pytest.mark.parametrize("method", ["tasks/get", "tasks/result", "tasks/delete"])
@pytest.mark.parametrize("wrong", [None, 1, "", "x" * 300, "nobody's"])
def test_an_unknown_id_is_invalid(client: SessionClient, method: str, wrong: Any) -> None:
    assert about(client, method, wrong).code == INVALID_PARAMS


def test_a_call_that_is_resumed_still_names_its_task(
    stack: Stack, time: Time, client: SessionClient
) -> None:
    reply = call(client)
    time.meanwhile = [completes(stack, time)]
    ended = client.resume(reply.last_id)
    assert ended.result["_meta"] == ABOUT
    assert ended.response["id"] == 1
