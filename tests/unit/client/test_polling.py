"""Polling a task to its end, and answering its questions (tasks.md, "Task Polling")."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from mcp import MCPError
from mcp_types import ElicitRequestFormParams, ElicitResult, ErrorData, InputRequest

from mcp_tasks_client import (
    DEFAULT_POLL_INTERVAL_MS,
    MIN_POLL_INTERVAL_MS,
    Task,
    TaskCancelled,
    TaskFailed,
    follow_tree,
    wait_for_task,
)
from tests.unit.client.scripted import (
    ANSWERED,
    FAILED,
    FORM,
    ID,
    FakeSession,
    asking,
    completed,
    task,
    text_of,
)

# ---- The end of a task --------------------------------------------------------------------------


def test_a_task_is_polled_until_it_has_the_tools_result(session: FakeSession) -> None:
    polls = session.scripted(task("working"), task("working"), completed("42"))
    result = asyncio.run(wait_for_task(polls, ID))
    assert text_of(result) == "42"
    assert session.log.count("tasks/get") == 3


def test_a_tools_own_error_is_a_result(session: FakeSession) -> None:
    """tasks.md, "Task Execution Errors": `completed`, with `isError`."""
    result = asyncio.run(wait_for_task(session.scripted(completed("no", isError=True)), ID))
    assert (text_of(result), result.is_error) == ("no", True)


def test_a_failed_task_raises_its_json_rpc_error(session: FakeSession) -> None:
    """tasks.md, "Task Execution Errors": the error of the request that became the task."""
    with pytest.raises(MCPError) as raised:
        asyncio.run(wait_for_task(session.scripted(task("working"), FAILED), ID))
    error = raised.value
    assert isinstance(error, TaskFailed)
    assert (error.code, error.message, error.data) == (-32603, "It broke", {"a": 1})
    assert error.task_id == ID


def test_a_cancelled_task_raises(session: FakeSession) -> None:
    with pytest.raises(TaskCancelled, match=ID) as raised:
        asyncio.run(wait_for_task(session.scripted(task("cancelled")), ID))
    assert raised.value.task_id == ID


# ---- The interval between polls ------------------------------------------------------------------


def test_each_poll_waits_for_the_interval_that_the_last_one_suggested(session: FakeSession) -> None:
    """tasks.md, "Task Polling": clients should respect `pollIntervalMs`, which may change."""
    polls = session.scripted(
        task("working", pollIntervalMs=700), task("working", pollIntervalMs=2500), completed()
    )
    asyncio.run(wait_for_task(polls, ID))
    assert session.log == ["tasks/get", 0.7, "tasks/get", 2.5, "tasks/get"]


@pytest.mark.parametrize(
    ("suggested", "waited_ms"),
    [({}, DEFAULT_POLL_INTERVAL_MS), ({"pollIntervalMs": None}, DEFAULT_POLL_INTERVAL_MS)]
    + [({"pollIntervalMs": ms}, MIN_POLL_INTERVAL_MS) for ms in (0, MIN_POLL_INTERVAL_MS - 1)],
)
def test_a_server_cannot_make_the_client_poll_without_a_pause(
    session: FakeSession, suggested: dict[str, Any], waited_ms: int
) -> None:
    working = task("working")
    del working["pollIntervalMs"]
    asyncio.run(wait_for_task(session.scripted(working | suggested, completed()), ID))
    assert session.log == ["tasks/get", waited_ms / 1000, "tasks/get"]


def test_the_interval_follows_an_answer_too(session: FakeSession) -> None:
    asyncio.run(wait_for_task(session.scripted(asking("a"), completed()), ID))
    assert session.log == ["tasks/get", "tasks/update", 0.5, "tasks/get"]


# ---- Questions -----------------------------------------------------------------------------------


def test_a_question_is_answered_once(session: FakeSession) -> None:
    """tasks.md, "Task Update Requests": a question may stay in polls after its answer."""
    polls = session.scripted(asking("a"), asking("a"), task("working"), asking("a"), completed())
    asyncio.run(wait_for_task(polls, ID))
    assert len(session.asked) == 1
    assert session.updates == [{"a": ANSWERED}]


def test_a_new_question_beside_an_answered_one_is_answered_alone(session: FakeSession) -> None:
    asyncio.run(wait_for_task(session.scripted(asking("a"), asking("a", "b"), completed()), ID))
    assert session.updates == [{"a": ANSWERED}, {"b": ANSWERED}]


def test_questions_of_one_poll_are_answered_by_one_request(session: FakeSession) -> None:
    asyncio.run(wait_for_task(session.scripted(asking("a", "b"), completed()), ID))
    assert session.updates == [{"a": ANSWERED, "b": ANSWERED}]


def test_without_answer_the_clients_own_callback_is_called(session: FakeSession) -> None:
    """tasks.md, "Security Considerations": a question is treated like a direct request."""
    asyncio.run(wait_for_task(session.scripted(asking("a"), completed()), ID))
    (params,) = [request.params for request in session.asked]
    assert isinstance(params, ElicitRequestFormParams)
    assert (params.message, params.requested_schema) == ("Are you sure?", FORM)


def test_an_error_of_the_clients_callback_is_raised(log: list[Any]) -> None:
    session = FakeSession(log, answer=ErrorData(code=-32600, message="Elicitation not supported"))
    with pytest.raises(MCPError, match="not supported"):
        asyncio.run(wait_for_task(session.scripted(asking("a")), ID))
    assert session.updates == []


def test_answer_replaces_the_clients_callback(session: FakeSession) -> None:
    keys = []

    async def decline(key: str, request: InputRequest) -> ElicitResult:
        keys.append(key)
        return ElicitResult(action="decline")

    asyncio.run(wait_for_task(session.scripted(asking("a"), completed()), ID, answer=decline))
    assert (keys, session.asked) == (["a"], [])
    assert session.updates == [{"a": {"action": "decline"}}]


# ---- on_update -----------------------------------------------------------------------------------


def test_on_update_gets_every_change_once(session: FakeSession) -> None:
    seen: list[tuple[str, str | None]] = []
    later = {"statusMessage": "half-way", "lastUpdatedAt": "2026-11-01T00:00:01.000Z"}
    polls = session.scripted(
        task("working"),
        task("working"),
        task("working", **later),
        task("working", **later, _meta={"trace": 1}),  # no part of the task's state
        asking("a"),
        completed(),
    )
    asyncio.run(
        wait_for_task(polls, ID, lambda task: seen.append((task.status, task.status_message)))
    )
    assert seen == [
        ("working", None),
        ("working", "half-way"),
        ("input_required", None),
        ("completed", None),
    ]


def test_on_update_gets_a_failed_task_before_the_error_is_raised(session: FakeSession) -> None:
    seen: list[Task] = []
    with pytest.raises(TaskFailed):
        asyncio.run(wait_for_task(session.scripted(FAILED), ID, seen.append))
    assert [task.status for task in seen] == ["failed"]


def test_every_request_of_a_wait_has_the_callers_timeout(session: FakeSession) -> None:
    polls = session.scripted(asking("a"), completed())
    asyncio.run(wait_for_task(polls, ID, read_timeout_seconds=7))
    assert session.timeouts == [7, 7, 7]


# ---- Subtasks (SEP-2268) -------------------------------------------------------------------------

CHILD = "c1-11111111111111111111111111111111"
GRANDCHILD = "c1-22222222222222222222222222222222"


def child_of(parent: str, task_id: str, state: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A subtask in the state of another task."""
    return {**state, "taskId": task_id, "parentTaskId": parent, **fields}


def followed(session: FakeSession, *polls: dict[str, Any]) -> list[tuple[str, str]]:
    """The id and status of each state that `follow_tree` yields."""

    async def follow() -> list[tuple[str, str]]:
        polled = session.scripted(*polls)
        return [(task.task_id, task.status) async for task in follow_tree(polled, ID)]

    return asyncio.run(follow())


def polled_ids(session: FakeSession) -> list[str]:
    return [request.params.task_id for request in session.requests if request.params]


def test_a_tree_is_followed_from_the_root_to_its_end(session: FakeSession) -> None:
    """ "Requestors SHOULD process any subtask that [they encounter] in childTaskIds recursively",
    and results are in the order of the children, then the parent."""
    found = followed(
        session,
        task("working", childTaskIds=[CHILD]),
        child_of(ID, CHILD, task("working"), childTaskIds=[GRANDCHILD]),
        child_of(CHILD, GRANDCHILD, completed("leaf")),
        child_of(ID, CHILD, completed("node"), childTaskIds=[GRANDCHILD]),
        {**completed(), "childTaskIds": [CHILD]},
    )
    assert found == [
        *((ID, "working"), (CHILD, "working"), (GRANDCHILD, "completed")),
        *((CHILD, "completed"), (ID, "completed")),
    ]
    assert polled_ids(session) == [ID, CHILD, GRANDCHILD, CHILD, ID]


def test_a_new_subtask_is_polled_at_once_and_each_task_at_its_own_interval(
    session: FakeSession,
) -> None:
    parent = task("working", childTaskIds=[CHILD], pollIntervalMs=1000)
    child = child_of(ID, CHILD, task("working", pollIntervalMs=600))
    followed(session, parent, child, child, {**completed(), "childTaskIds": [CHILD]}, child)
    assert polled_ids(session) == [ID, CHILD, CHILD, ID, CHILD]
    sleeps = [each for each in session.log if isinstance(each, float)]
    assert sleeps == pytest.approx([0.6, 0.4])


def test_only_changes_are_yielded(session: FakeSession) -> None:
    parent = task("working", childTaskIds=[CHILD])
    child = child_of(ID, CHILD, task("working"))
    found = followed(
        session, parent, child, child, parent, child, parent, child, completed(), child
    )
    assert found == [(ID, "working"), (CHILD, "working"), (ID, "completed")]


def test_a_circle_is_followed_once(session: FakeSession) -> None:
    """SEP-2268, "Security Implications": the requestor has to notice cycles."""
    circle = child_of(ID, CHILD, completed(), childTaskIds=[ID, CHILD])
    found = followed(session, task("working", childTaskIds=[CHILD, ID, CHILD]), circle, completed())
    assert found == [(ID, "working"), (CHILD, "completed"), (ID, "completed")]


def test_a_subtasks_question_is_answered_although_its_parent_does_not_wait(
    session: FakeSession,
) -> None:
    """SEP-2268, "Input Required Status"; without an answer the parent would never end."""
    parent = task("working", childTaskIds=[CHILD, GRANDCHILD])
    first = child_of(ID, CHILD, asking("a"))
    second = child_of(ID, GRANDCHILD, asking("a"))
    ended = [child_of(ID, each, completed()) for each in (CHILD, GRANDCHILD)]
    seen: list[Task] = []
    polls = session.scripted(
        parent, first, second, first, ended[1], parent, ended[0], completed("x")
    )
    result = asyncio.run(wait_for_task(polls, ID, seen.append))
    assert text_of(result) == "x"
    updates = [request.params for request in session.requests if request.method == "tasks/update"]
    # Two tasks may ask under the same key.
    assert [params.task_id for params in updates if params] == [CHILD, GRANDCHILD]
    assert [task.parent_task_id for task in seen] == [None, ID, ID, ID, ID, None]


@pytest.mark.parametrize("end", [FAILED, task("cancelled")])
def test_how_a_subtask_ends_is_its_parents_matter(
    session: FakeSession, end: dict[str, Any]
) -> None:
    parent = task("working", childTaskIds=[CHILD])
    polls = session.scripted(parent, child_of(ID, CHILD, end), completed("all the same"))
    assert text_of(asyncio.run(wait_for_task(polls, ID))) == "all the same"


def test_a_subtask_that_goes_on_after_its_parents_end_is_not_waited_for(
    session: FakeSession,
) -> None:
    """A server may not do that, and the client must not hang."""
    parent, child = task("working", childTaskIds=[CHILD]), child_of(ID, CHILD, task("working"))
    assert followed(session, parent, child, child, completed(), child)[-1] == (ID, "completed")
