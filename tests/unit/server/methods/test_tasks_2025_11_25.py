"""The tasks of 2025-11-25, rule by rule (2025-11-25 basic/utilities/tasks.mdx)."""

from __future__ import annotations

import re
from functools import partial
from typing import Any, Final

import pytest

from mcp_tasks.limits import Limits
from mcp_tasks.notifications.clock import Clock
from mcp_tasks.server.methods import tasks_2025_11_25
from mcp_tasks.server.methods.task_stream import TaskStream
from mcp_tasks.tasks.questions import FormQuestion, SamplingQuestion, open_ask
from mcp_tasks.tasks.state import Status
from tests import wire
from tests.unit.support.aws import TABLE
from tests.unit.support.in_session import ALL_KINDS, Reply, SessionClient
from tests.unit.support.listening import Streamed, Time
from tests.unit.support.stack import CAPABILITIES_KEY, Stack

INVALID_REQUEST, NO_METHOD, INVALID_PARAMS = -32600, -32601, -32602
ALICE: Final = "arn:aws:iam::111122223333:user/alice"
MALLORY: Final = "arn:aws:iam::111122223333:user/mallory"
RELATED: Final = "io.modelcontextprotocol/related-task"
FORM: Final[dict[str, Any]] = {"type": "object", "properties": {"name": {"type": "string"}}}
RESULT: Final[dict[str, Any]] = {"content": [{"type": "text", "text": "done"}]}
HOUR_MS: Final = 3_600_000
UNKNOWN: Final = f"c1-{'0' * 32}"


@pytest.fixture
def time(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> Time:
    time = Time()
    time.rule(monkeypatch)
    for module in ("server.sessions", "server.http.endpoint", "server.methods.tasks_2025_11_25"):
        monkeypatch.setattr(f"mcp_tasks.{module}.now_ms", time.read)
    monkeypatch.setattr(
        "mcp_tasks.server.server.TaskStream",
        partial(TaskStream, clock=Clock(time.read, time.wait)),
    )
    limits = Limits(max_open_calls=0, max_open_tasks=0, creations_per_minute=0)
    stack.environment |= {"LIMITS": limits.to_json(), "AUTH": "iam"}
    stack.serve()
    return time


@pytest.fixture
def client(stack: Stack, time: Time) -> SessionClient:
    return SessionClient(stack, user_arn=ALICE)


def create(client: SessionClient, tool: str = "count", **task: Any) -> Reply:
    arguments = {"upto": 3} if tool == "count" else {}
    params = {"name": tool, "arguments": arguments, "task": task}
    return client.request("tools/call", params)


def created(client: SessionClient, tool: str = "count", **task: Any) -> str:
    found: str = create(client, tool, **task).result["task"]["taskId"]
    return found


def get(client: SessionClient, task_id: str) -> Reply:
    return client.request("tasks/get", {"taskId": task_id})


# Capabilities


def test_the_server_declares_what_it_supports(client: SessionClient) -> None:
    client.session_id = None
    capabilities = client.begin().result["capabilities"]
    assert capabilities["tasks"] == {
        "list": {},
        "cancel": {},
        "requests": {"tools": {"call": {}}},
    }


def test_a_server_that_cannot_tell_callers_apart_lists_no_tasks(stack: Stack) -> None:
    client = SessionClient(stack)
    client.session_id = None
    assert "list" not in client.begin().result["capabilities"]["tasks"]
    assert client.request("tasks/list").code == NO_METHOD


@pytest.mark.parametrize("tool", ["echo", "half"])
def test_a_tool_that_supports_no_task_is_no_method_for_one(
    stack: Stack, client: SessionClient, tool: str
) -> None:
    reply = create(client, tool)
    assert (reply.status, reply.code) == (200, NO_METHOD)
    assert not stack.rows


# Creation


@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18", "2025-03-26"])
def test_a_call_with_params_task_returns_a_task_at_once(
    stack: Stack, time: Time, version: str
) -> None:
    """Two SDKs ask for tasks in 2025-06-18."""
    client = SessionClient(stack, version, user_arn=ALICE)
    reply = create(client)
    wire.check_definition("mcp-2025-11-25.json", "CreateTaskResult", reply.result)
    task = reply.result["task"]
    assert task["status"] == "working"
    assert task["ttl"] == HOUR_MS
    assert len(stack.rows) == 1


def test_other_clients_find_the_task_where_they_look(client: SessionClient) -> None:
    result = create(client).result
    assert result["content"] == []
    assert result["_meta"]["modelcontextprotocol.io/task"] == result["task"]
    assert result["_meta"][RELATED] == {"taskId": result["task"]["taskId"]}
    text = result["_meta"]["io.modelcontextprotocol/model-immediate-response"]
    assert result["task"]["taskId"] in text


@pytest.mark.parametrize(("wanted", "actual"), [(60_000, 60_000), (10 * HOUR_MS, HOUR_MS)])
def test_the_ttl_is_what_was_asked_for_up_to_the_tools_own(
    client: SessionClient, wanted: int, actual: int
) -> None:
    task_id = created(client, ttl=wanted)
    assert get(client, task_id).result["ttl"] == actual


@pytest.mark.parametrize("task", [None, [], "x", 1, {"ttl": 0}, {"ttl": -1}, {"ttl": "1"}])
def test_a_malformed_request_for_a_task_is_refused(
    stack: Stack, client: SessionClient, task: Any
) -> None:
    params = {"name": "count", "arguments": {"upto": 3}, "task": task}
    reply = client.request("tools/call", params)
    assert (reply.status, reply.code) == (200, INVALID_PARAMS)
    assert "params.task" in reply.response["error"]["message"]
    assert not stack.rows


def test_a_request_for_a_task_in_the_words_of_two_revisions_is_refused(
    stack: Stack, client: SessionClient
) -> None:
    about: dict[str, Any] = {
        CAPABILITIES_KEY: {"extensions": {"io.modelcontextprotocol/tasks": {}}}
    }
    params = {"name": "count", "arguments": {"upto": 3}, "task": {}, "_meta": about}
    assert client.request("tools/call", params).code == INVALID_PARAMS
    assert not stack.rows


def test_a_task_needs_no_session(stack: Stack, client: SessionClient) -> None:
    client.session_id = None
    task_id = created(client)
    assert get(client, task_id).result["status"] == "working"


# Getting tasks


def test_a_poll_is_one_consistent_read(stack: Stack, client: SessionClient) -> None:
    task_id = created(client)
    stack.calls.forget()
    get(client, task_id)
    (read,) = stack.calls.made
    assert (read.operation, read.arguments["TableName"]) == ("get_item", TABLE)
    assert read.arguments["ConsistentRead"] is True


def test_a_polled_task_has_its_times_and_no_related_task(client: SessionClient) -> None:
    task = get(client, created(client)).result
    for name in ("createdAt", "lastUpdatedAt"):
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", task[name])
    assert task["pollInterval"] > 0
    assert RELATED not in task.get("_meta", {})


@pytest.mark.parametrize("method", ["tasks/get", "tasks/result", "tasks/cancel"])
@pytest.mark.parametrize("task_id", [UNKNOWN, "x", "", None, 7, f"c2-{'0' * 32}"])
def test_an_unknown_task_is_invalid_params(
    client: SessionClient, method: str, task_id: Any
) -> None:
    reply = client.request(method, {"taskId": task_id})
    assert (reply.status, reply.code) == (200, INVALID_PARAMS)


@pytest.mark.parametrize("method", ["tasks/get", "tasks/result", "tasks/cancel"])
def test_anothers_task_is_unknown(stack: Stack, client: SessionClient, method: str) -> None:
    task_id = created(client)
    mallory = SessionClient(stack, user_arn=MALLORY)
    assert mallory.request(method, {"taskId": task_id}).code == INVALID_PARAMS
    assert get(client, task_id).result["status"] == "working"


def test_a_result_that_is_an_error_is_a_failure_that_says_why(
    stack: Stack, time: Time, client: SessionClient
) -> None:
    task_id = created(client)
    failure = {"content": [{"type": "text", "text": "no such airport"}], "isError": True}
    stack.deployment.task_table.complete(task_id, failure, time.now)
    task = get(client, task_id).result
    assert (task["status"], task["statusMessage"]) == ("failed", "no such airport")
    result = client.request("tasks/result", {"taskId": task_id}).result
    assert (result["content"], result["isError"]) == (failure["content"], True)


# Results


def test_a_result_names_its_task(stack: Stack, time: Time, client: SessionClient) -> None:
    task_id = created(client)
    time.meanwhile = [lambda: stack.deployment.task_table.complete(task_id, RESULT, time.now)]
    reply = client.request("tasks/result", {"taskId": task_id})
    assert reply.result["content"] == RESULT["content"]
    assert reply.result["_meta"][RELATED] == {"taskId": task_id}
    wire.check_definition("mcp-2025-11-25.json", "CallToolResult", reply.result)


def test_the_wait_for_a_result_is_resumed(stack: Stack, time: Time, client: SessionClient) -> None:
    task_id = created(client)
    reply = client.request("tasks/result", {"taskId": task_id}, request_id="r")
    assert reply.messages == []
    stack.deployment.task_table.complete(task_id, RESULT, time.now)
    again = client.resume(reply.last_id)
    assert again.response["id"] == "r"
    assert again.result["_meta"][RELATED] == {"taskId": task_id}


def test_a_failed_task_gives_the_same_error(
    stack: Stack, time: Time, client: SessionClient
) -> None:
    task_id = created(client)
    error = {"code": -32603, "message": "broken"}
    stack.deployment.task_table.fail(task_id, error, time.now)
    assert get(client, task_id).result["statusMessage"] == "broken"
    reply = client.request("tasks/result", {"taskId": task_id})
    assert reply.response["error"] == error


def test_a_question_comes_with_the_result_and_names_its_task(
    stack: Stack, time: Time, client: SessionClient
) -> None:
    task_id = created(client)
    ask = open_ask("token", {"who": FormQuestion("Who?", FORM)})
    stack.deployment.task_table.ask(task_id, ask, time.now)
    assert get(client, task_id).result["status"] == "input_required"
    stack.way = Streamed(time, remaining_ms=200_000)
    time.meanwhile = [lambda: stack.deployment.task_table.complete(task_id, RESULT, time.now)]
    question, response = client.request("tasks/result", {"taskId": task_id}).messages
    wire.check_request(question, "2025-11-25")
    assert question["params"]["_meta"][RELATED] == {"taskId": task_id}
    assert response["result"]["content"] == RESULT["content"]


def test_a_client_that_gives_up_waiting_does_not_cancel_the_task(
    stack: Stack, time: Time, client: SessionClient
) -> None:
    """One SDK does, after 60 seconds."""
    task_id = created(client)
    client.request("tasks/result", {"taskId": task_id}, request_id=9)
    client.notify("notifications/cancelled", requestId=9)
    client.notify("notifications/cancelled", requestId=1)
    assert get(client, task_id).result["status"] == "working"


# Cancellation


def test_a_cancelled_task_is_returned(client: SessionClient) -> None:
    task_id = created(client)
    reply = client.request("tasks/cancel", {"taskId": task_id})
    assert reply.result["status"] == "cancelled"
    assert RELATED not in reply.result.get("_meta", {})
    wire.check_definition("mcp-2025-11-25.json", "CancelTaskResult", reply.result)


@pytest.mark.parametrize("end", [Status.COMPLETED, Status.FAILED, Status.CANCELLED])
def test_a_terminal_task_cannot_be_cancelled(
    stack: Stack, time: Time, client: SessionClient, end: Status
) -> None:
    task_id, table = created(client), stack.deployment.task_table
    if end is Status.COMPLETED:
        table.complete(task_id, RESULT, time.now)
    elif end is Status.FAILED:
        table.fail(task_id, {"code": -32603, "message": "broken"}, time.now)
    else:
        client.request("tasks/cancel", {"taskId": task_id})
    reply = client.request("tasks/cancel", {"taskId": task_id})
    assert (reply.status, reply.code) == (200, INVALID_PARAMS)
    assert end.value in reply.response["error"]["message"]


# Lists


def listed(client: SessionClient) -> list[list[str]]:
    """The ids of each page."""
    pages, cursor = [], None
    while True:
        params: dict[str, Any] = {} if cursor is None else {"cursor": cursor}
        result = client.request("tasks/list", params).result
        wire.check_definition("mcp-2025-11-25.json", "ListTasksResult", result)
        pages.append([task["taskId"] for task in result["tasks"]])
        cursor = result.get("nextCursor")
        if cursor is None:
            return pages


def test_a_list_has_the_callers_tasks_the_newest_first(
    stack: Stack, time: Time, client: SessionClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = []
    for _ in range(5):
        time.now += 1000
        mine.append(created(client))
    created(SessionClient(stack, user_arn=MALLORY))
    assert listed(client) == [mine[::-1]]
    monkeypatch.setattr(tasks_2025_11_25, "PAGE_SIZE", 2)
    pages = listed(client)
    assert [task for page in pages for task in page] == mine[::-1]
    assert {len(page) for page in pages[:2]} == {2}


def test_a_listed_task_is_the_one_that_a_poll_gives(client: SessionClient) -> None:
    task_id = created(client)
    (task,) = client.request("tasks/list").result["tasks"]
    assert task == get(client, task_id).result


def test_an_expired_task_is_not_listed(time: Time, client: SessionClient) -> None:
    created(client, ttl=60_000)
    time.now += 60_000
    assert listed(client) == [[]]


def test_a_page_costs_a_query_and_one_read_of_all_rows(stack: Stack, client: SessionClient) -> None:
    created(client)
    stack.calls.forget()
    client.request("tasks/list")
    assert stack.calls.operations == ["get_item", "query", "batch_get_item"]


@pytest.mark.parametrize("cursor", ["", "abc", 7, f"c1-{'A' * 80}"])
def test_an_invalid_cursor_is_refused(client: SessionClient, cursor: Any) -> None:
    reply = client.request("tasks/list", {"cursor": cursor})
    assert (reply.status, reply.code) == (200, INVALID_PARAMS)


def test_a_cursor_is_its_callers_alone_and_expires(
    stack: Stack, time: Time, client: SessionClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks_2025_11_25, "PAGE_SIZE", 1)
    for _ in range(2):
        created(client)
    cursor = {"cursor": client.request("tasks/list").result["nextCursor"]}
    mallory = SessionClient(stack, user_arn=MALLORY)
    assert mallory.request("tasks/list", cursor).code == INVALID_PARAMS
    assert client.request("tasks/list", cursor).result["tasks"]
    time.now += tasks_2025_11_25.CURSOR_LIFETIME_MS
    assert client.request("tasks/list", cursor).code == INVALID_PARAMS


def test_questions_come_as_content_to_a_client_that_wants_them_so(stack: Stack, time: Time) -> None:
    """ "MRTR and Tasks", option two: several at once."""
    experimental: dict[str, Any] = {"mcp-tasks/questionsInContent": {}}
    client = SessionClient(
        stack, capabilities={**ALL_KINDS, "experimental": experimental}, user_arn=ALICE
    )
    created = client.request("tools/call", {"name": "wait", "arguments": {}, "task": {}})
    task_id = created.result["task"]["taskId"]
    said = {"role": "user", "content": {"type": "text", "text": "Hi"}}
    model = SamplingQuestion({"messages": [said], "maxTokens": 1})
    ask = open_ask("token", {"who": FormQuestion("Who?", FORM), "poem": model})
    stack.deployment.task_table.ask(task_id, ask, time.now)
    blocks = client.post(
        {"jsonrpc": "2.0", "id": 2, "method": "tasks/result", "params": {"taskId": task_id}}
    ).result["content"]
    assert sorted(block["type"] for block in blocks) == ["elicitation", "sampling"]
    form = next(block for block in blocks if block["type"] == "elicitation")
    answer = {"action": "accept", "content": {"name": "Ada"}}
    assert client.respond(form["id"], answer).status == 202
    left = client.post(
        {"jsonrpc": "2.0", "id": 3, "method": "tasks/result", "params": {"taskId": task_id}}
    ).result["content"]
    assert [block["type"] for block in left] == ["sampling"]
