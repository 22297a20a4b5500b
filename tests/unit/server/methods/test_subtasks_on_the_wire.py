"""Subtasks as clients see them, in every dialect (SEP-2268): those that know them, and others."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import pytest

from mcp_tasks.notifications.changes import change_to
from mcp_tasks.notifications.clock import Clock
from mcp_tasks.server.methods.companion_tools import CompanionTools
from mcp_tasks.server.methods.task_wire_format import detailed_task
from mcp_tasks.tasks.questions import FormQuestion, open_ask
from mcp_tasks.tasks.task import Task
from tests import wire
from tests.unit.support.aws import raw_rows
from tests.unit.support.family import a_subtask
from tests.unit.support.in_session import ALL_KINDS, SessionClient, time_of
from tests.unit.support.listening import Time
from tests.unit.support.push import deliver
from tests.unit.support.stack import Stack
from tests.unit.support.whole import accept

INVALID_PARAMS: Final = -32602
RELATED: Final = "io.modelcontextprotocol/related-task"
CLIENTS_ID: Final = "modelcontextprotocol.io/task"
FORM: Final[dict[str, Any]] = {"type": "object", "properties": {"name": {"type": "string"}}}
RESULT: Final[dict[str, Any]] = {"content": [{"type": "text", "text": "done"}]}


@pytest.fixture
def time(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> Time:
    time = time_of(stack, monkeypatch)
    patient = partial(CompanionTools, clock=Clock(time.read, time.wait))
    monkeypatch.setattr("mcp_tasks.server.server.CompanionTools", patient)
    stack.calls.instead["send_task_success"] = lambda **_: {}
    stack.calls.instead["stop_execution"] = lambda **_: {}
    return time


def parent_of(stack: Stack) -> Task:
    """The task that a client has asked for."""
    tasks = stack.deployment.task_table
    (found,) = [
        task
        for row in raw_rows()
        if (task := tasks.find(row["taskId"]["S"])) is not None and task.parent is None
    ]
    return found


def begins_subtasks(stack: Stack, time: Time, count: int = 1) -> list[Task]:
    """The parent's tool calls others; their executions run."""
    parent = parent_of(stack)
    changes = {"created_at": time.now, "last_updated_at": time.now, "ttl_ms": parent.ttl_ms}
    context = {k: v for k, v in parent.client_context.items() if k == "session"}
    subtasks = [
        a_subtask(n, parent, tool="wait", client_context=context, **changes) for n in range(count)
    ]
    tasks = stack.deployment.task_table
    tasks.subtasks.add(parent, subtasks, time.now)
    return [tasks.subtasks.begin(each.task_id, "token", time.now) for each in subtasks]


def asks(stack: Stack, task_id: str, time: Time, token: str = "its token") -> str:
    """A subtask asks; returns the question's key."""
    asked = open_ask(token, {"who": FormQuestion("Who?", FORM)})
    stack.deployment.task_table.ask(task_id, asked, time.now)
    (key,) = asked.names
    return key


def ends(stack: Stack, task_id: str, time: Time) -> None:
    """A task ends, whatever its subtasks."""
    tasks = stack.deployment.task_table
    task = tasks.get(task_id, time.now)
    tasks.complete(task_id, RESULT, time.now, relatives=task.relatives)


# the extension


def test_a_task_names_its_subtasks_and_a_subtask_its_parent(stack: Stack, time: Time) -> None:
    parent_id = stack.created("wait")
    assert "childTaskIds" not in stack.task(parent_id)
    first, second = begins_subtasks(stack, time, 2)
    assert stack.task(parent_id)["childTaskIds"] == [first.task_id, second.task_id]
    seen = stack.task(first.task_id)
    assert seen["parentTaskId"] == parent_id
    assert "childTaskIds" not in seen
    assert "parentTaskId" not in stack.task(parent_id)


def test_a_notification_of_a_subtask_names_its_parent(stack: Stack, time: Time) -> None:
    parent_id = stack.created("wait")
    (subtask,) = begins_subtasks(stack, time)
    change = change_to(subtask, time.now, detailed_task)
    assert change.params["parentTaskId"] == parent_id
    parent = change_to(parent_of(stack), time.now, detailed_task)
    assert parent.params["childTaskIds"] == [subtask.task_id]


def test_a_subtask_is_polled_answered_and_cancelled_like_any_task(stack: Stack, time: Time) -> None:
    parent_id = stack.created("wait")
    first, second = begins_subtasks(stack, time, 2)
    key = asks(stack, first.task_id, time)
    asked = stack.task(first.task_id)
    assert asked["status"] == "input_required"
    assert stack.task(parent_id)["status"] == "working", "one does not cause the other"
    stack.update(first.task_id, {key: accept(name="Ada")})
    assert stack.task(first.task_id)["status"] == "working"
    stack.cancel(second.task_id)
    assert stack.task(second.task_id)["status"] == "cancelled"
    assert stack.task(parent_id)["status"] == "working"


def test_a_cancel_goes_down_to_the_subtasks(stack: Stack, time: Time) -> None:
    parent_id = stack.created("wait")
    subtasks = begins_subtasks(stack, time, 3)
    stack.cancel(parent_id)
    assert {stack.task(each.task_id)["status"] for each in subtasks} == {"cancelled"}
    assert stack.task(parent_id)["status"] == "cancelled"


def test_another_caller_sees_none_of_the_tree(stack: Stack, time: Time) -> None:
    stack.environment["AUTH"] = "iam"
    stack.serve()
    alice, mallory = (f"arn:aws:iam::111122223333:user/{name}" for name in ("alice", "mallory"))
    stack.created("wait", user_arn=alice)
    (subtask,) = begins_subtasks(stack, time)
    assert stack.task(subtask.task_id, user_arn=alice)["status"] == "working"
    refused = stack.post("tasks/get", {"taskId": subtask.task_id}, user_arn=mallory)
    assert refused.code == INVALID_PARAMS


def test_a_cancel_that_takes_too_long_goes_on_without_its_request(
    stack: Stack, time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent_id = stack.created("wait")
    begins_subtasks(stack, time)
    monkeypatch.setattr("mcp_tasks.workflows.task_tree.MAX_SECONDS", -1)
    assert stack.cancel(parent_id).result["resultType"] == "complete"
    assert parent_of(stack).cancel_requested
    assert stack.task(parent_id)["status"] == "working"


# 2025-11-25


def augmented(client: SessionClient) -> str:
    """A task that a client of 2025-11-25 asks for."""
    params = {"name": "wait", "arguments": {}, "task": {}}
    task_id: str = client.request("tools/call", params).result["task"]["taskId"]
    return task_id


def test_the_tasks_of_2025_11_25_have_the_same_members(stack: Stack, time: Time) -> None:
    client = SessionClient(stack)
    parent_id = augmented(client)
    (subtask,) = begins_subtasks(stack, time)
    seen = client.request("tasks/get", {"taskId": parent_id}).result
    assert seen["childTaskIds"] == [subtask.task_id]
    wire.check_definition("mcp-2025-11-25.json", "Task", seen)
    below = client.request("tasks/get", {"taskId": subtask.task_id}).result
    assert below["parentTaskId"] == parent_id


def test_the_metadata_of_a_subtasks_result_names_the_parent(stack: Stack, time: Time) -> None:
    client = SessionClient(stack)
    parent_id = augmented(client)
    (subtask,) = begins_subtasks(stack, time)
    ends(stack, subtask.task_id, time)
    result = client.request("tasks/result", {"taskId": subtask.task_id}).result
    assert result["_meta"][RELATED] == {"taskId": subtask.task_id, "parentTaskId": parent_id}


def test_tasks_result_of_the_parent_brings_the_subtasks_question(stack: Stack, time: Time) -> None:
    """Its client need not know that there are subtasks."""
    client = SessionClient(stack)
    parent_id = augmented(client)
    (subtask,) = begins_subtasks(stack, time)
    asks(stack, subtask.task_id, time)
    reply = client.request("tasks/result", {"taskId": parent_id})
    (question,) = reply.messages
    about = question["params"]["_meta"][RELATED]
    assert about == {"taskId": subtask.task_id, "parentTaskId": parent_id}
    assert client.respond(question["id"], accept(name="Ada")).status == 202
    assert stack.deployment.task_table.get(subtask.task_id, time.now).outstanding == {}
    ends(stack, subtask.task_id, time)
    ends(stack, parent_id, time)
    ended = client.resume(reply.last_id).result
    assert ended["_meta"][RELATED] == {"taskId": parent_id}


def test_the_sessions_stream_tells_of_subtasks_and_asks_for_them(stack: Stack, time: Time) -> None:
    client = SessionClient(stack)
    parent_id = augmented(client)
    (subtask,) = begins_subtasks(stack, time)

    def changes() -> None:
        asks(stack, subtask.task_id, time)
        task = stack.deployment.task_table.get(subtask.task_id, time.now)
        change = change_to(task, time.now, detailed_task)
        deliver(stack.deployment.mailboxes, change, time.now)

    time.meanwhile = [changes]
    told = client.resume(None).messages
    about = {"taskId": subtask.task_id, "parentTaskId": parent_id}
    (status,) = [
        m["params"]
        for m in told
        if m["method"] == "notifications/tasks/status" and m["params"]["taskId"] == subtask.task_id
    ]
    assert (status["parentTaskId"], status["_meta"][RELATED]) == (parent_id, about)
    (question,) = [m for m in told if m["method"] == "elicitation/create"]
    assert question["params"]["_meta"][RELATED] == about
    assert question["id"].startswith(f"{subtask.task_id}.")


def test_subtasks_are_listed_beside_their_parents(stack: Stack, time: Time) -> None:
    stack.environment["AUTH"] = "iam"
    stack.serve()
    client = SessionClient(stack, user_arn="arn:aws:iam::111122223333:user/alice")
    parent_id = augmented(client)
    (subtask,) = begins_subtasks(stack, time)
    listed = {t["taskId"]: t for t in client.request("tasks/list", {}).result["tasks"]}
    assert listed[subtask.task_id]["parentTaskId"] == parent_id
    assert listed[parent_id]["childTaskIds"] == [subtask.task_id]


# clients that know no tasks


def test_a_call_that_waits_is_asked_for_its_subtasks(stack: Stack, time: Time) -> None:
    client = SessionClient(stack, capabilities=ALL_KINDS)
    found: list[Task] = []

    def asks_below() -> None:
        found.extend(begins_subtasks(stack, time))
        asks(stack, found[0].task_id, time)

    time.meanwhile = [asks_below]
    reply = client.call("wait")
    (question,) = reply.messages
    assert "_meta" not in question["params"], "it knows no tasks"
    client.respond(question["id"], accept(name="Ada"))
    ends(stack, found[0].task_id, time)
    time.meanwhile = [lambda: ends(stack, parent_of(stack).task_id, time)]
    assert client.resume(reply.last_id).result["content"] == RESULT["content"]


def test_a_subtask_of_a_subtask_is_found_as_well_and_each_is_asked_once(
    stack: Stack, time: Time
) -> None:
    client = SessionClient(stack, capabilities=ALL_KINDS)
    asked: list[Task] = []

    def asks_below() -> None:
        (subtask,) = begins_subtasks(stack, time)
        tasks = stack.deployment.task_table
        leaf = a_subtask(0, subtask, created_at=time.now, ttl_ms=subtask.ttl_ms)
        tasks.subtasks.add(subtask, [leaf], time.now)
        asked.extend([subtask, tasks.subtasks.begin(leaf.task_id, "leaf", time.now)])
        asks(stack, leaf.task_id, time, "of the leaf")
        asks(stack, subtask.task_id, time, "of the subtask")

    time.meanwhile = [asks_below]
    reply = client.call("wait")
    of = {m["id"].partition(".")[0] for m in reply.messages}
    assert of == {each.task_id for each in asked}
    assert client.resume(reply.last_id).messages == [], "the client knows them"


@pytest.fixture
def companions(stack: Stack, time: Time) -> Stack:
    stack.environment["COMPANION_TOOLS"] = "on"
    stack.serve()
    return stack


def asking_below(stack: Stack, time: Time, found: list[str]) -> Callable[[], None]:
    def asks_below() -> None:
        (subtask,) = begins_subtasks(stack, time)
        found.extend([subtask.task_id, asks(stack, subtask.task_id, time)])

    return asks_below


def test_a_model_is_told_which_subtask_to_answer(companions: Stack, time: Time) -> None:
    found: list[str] = []
    time.meanwhile = [asking_below(companions, time, found)]
    told = companions.call("wait", capabilities={}).result["structuredContent"]
    assert (told["taskId"], told["status"]) == (found[0], "input_required")
    answer = {"task_id": found[0], "key": found[1], "content": {"name": "Ada"}}

    def all_ends() -> None:
        ends(companions, found[0], time)
        ends(companions, parent_of(companions).task_id, time)

    time.meanwhile = [all_ends]
    answered = companions.call("task_answer", answer, capabilities={}).result
    assert answered["content"] == RESULT["content"], "of the call, not of the subtask"


def test_a_round_trip_asks_for_a_subtask_and_waits_for_the_call(
    companions: Stack, time: Time
) -> None:
    found: list[str] = []
    time.meanwhile = [asking_below(companions, time, found)]
    request: dict[str, Any] = {"name": "wait", "arguments": {}}
    can: dict[str, Any] = {"elicitation": {}}
    asked = companions.post("tools/call", request, capabilities=can)
    (key,) = asked.result["inputRequests"]
    ended = {"content": [{"type": "text", "text": "the book"}]}

    def all_ends() -> None:
        ends(companions, found[0], time)
        parent = parent_of(companions)
        companions.deployment.task_table.complete(
            parent.task_id, ended, time.now, relatives=parent.relatives
        )

    time.meanwhile = [all_ends]
    answers = {key: accept(name="Ada")}
    answered = companions.repeat("tools/call", request, asked, answers, capabilities=can)
    assert answered.result["content"] == ended["content"]


# SEP-1686


def test_a_task_with_a_clients_own_id_shows_what_it_did_before(stack: Stack, time: Time) -> None:
    client = SessionClient(stack)
    client.call("wait", **{CLIENTS_ID: {"taskId": "mine"}})
    (subtask,) = begins_subtasks(stack, time)
    body = {"jsonrpc": "2.0", "id": 9, "method": "tasks/get", "params": {"taskId": "mine"}}
    seen = client.post(body).result
    assert seen["taskId"] == "mine"
    assert "childTaskIds" not in seen

    def delete(task_id: str) -> Any:
        params = {"taskId": task_id}
        return client.post({"jsonrpc": "2.0", "id": 9, "method": "tasks/delete", "params": params})

    ends(stack, subtask.task_id, time)
    assert delete(subtask.task_id).code == INVALID_PARAMS, "it goes with its parent"
    ends(stack, parent_of(stack).task_id, time)
    assert "error" not in delete("mine").response
    for row in raw_rows():
        task = stack.deployment.task_table.find(row["taskId"]["S"])
        assert task is not None
        assert task.expired(time.now)
