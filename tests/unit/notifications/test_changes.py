"""What travels when a task changes (tasks.md, "Task Status Notifications")."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import pytest

from mcp_tasks.notifications.changes import (
    LEFT_OUT,
    MAX_DETAIL_BYTES,
    REVISION,
    Change,
    change_to,
    changes_to_publish,
    fit_to_event,
    read_change,
    without_content,
)
from mcp_tasks.server.methods.task_wire_format import detailed_task
from mcp_tasks.tasks.questions import FormQuestion, open_ask
from mcp_tasks.tasks.state import Status
from mcp_tasks.tasks.task import ANYONE, Task, now_ms
from mcp_tasks.tasks.task_item import UnreadableRow, item_of
from mcp_tasks.tasks.task_table import TaskTable
from tests.unit.support.aws import TABLE, real
from tests.unit.support.event_bridge import is_taken
from tests.unit.support.example_task import HOUR, ID, NOW, a_task
from tests.unit.support.push import Push
from tests.unit.support.stack import PREFIX, Stack

ASK: Final = open_ask(
    "a secret token", {"sure": FormQuestion("Sure?", {"type": "object", "properties": {}})}
)
(KEY,) = ASK.names
ACCEPT: Final = {"action": "accept", "content": {}}
RESULT: Final = {"content": [{"type": "text", "text": "done"}]}
OTHER: Final = f"c1-{7:032x}"
ERROR: Final = {"code": -32603, "message": "broken"}

EVENT_LIMIT: Final = 256 * 1024
"""Bytes of an entry (EventBridge user guide, "PutEvents event entry size")."""


def a_change(left_out: tuple[str, ...] = (), **params: Any) -> Change:
    """A change of the example task."""
    return Change(ID, 3, {"taskId": ID, "status": "working", **params}, left_out)


def answer(rows: TaskTable) -> None:
    """Answer the question that is open."""
    rows.answer(rows.get(ID, NOW), {ASK.id: {KEY: ACCEPT}}, NOW + 4)


# what is published


def test_each_state_that_clients_can_see_is_published_in_its_order(rows: TaskTable) -> None:
    push = Push()
    rows.create(a_task())
    rows.report(ID, "half-way", NOW + 1)
    rows.ask(ID, ASK, NOW + 2)
    answer(rows)
    rows.complete(ID, RESULT, NOW + 5)
    changes = [change for _, change in changes_to_publish(push.records(), detailed_task)]
    assert [(change.revision, change.params["status"]) for change in changes] == [
        (1, "working"),
        (2, "working"),
        (3, "input_required"),
        (4, "working"),
        (5, "completed"),
    ]
    assert [change.params["lastUpdatedAt"][-4:] for change in changes] == [
        f"00{ms}Z" for ms in (0, 1, 2, 4, 5)
    ]
    assert {change.task_id for change in changes} == {ID}


def invisible(rows: TaskTable) -> None:
    """Forget an ask whose answers were delivered."""
    rows.mark_delivered(ID, ASK.id, NOW + 5)


def remove(rows: TaskTable) -> None:
    """Delete the row, as its time to live does."""
    real("dynamodb").delete_item(TableName=TABLE, Key={"taskId": {"S": ID}})


@pytest.mark.parametrize("write", [invisible, remove])
def test_what_clients_cannot_see_is_not_published(
    rows: TaskTable, write: Callable[[TaskTable], None]
) -> None:
    """tasks.md, "Task Status Notifications": the task's state as `tasks/get` gives it."""
    push = Push()
    rows.create(a_task())
    rows.ask(ID, ASK, NOW + 2)
    answer(rows)
    push.records()
    write(rows)
    records = push.records()
    assert len(records) == 1
    assert list(changes_to_publish(records, detailed_task)) == []


def test_no_token_or_argument_is_published(rows: TaskTable) -> None:
    push = Push()
    rows.create(a_task(input='{"argument":"private"}'))
    rows.ask(ID, ASK, NOW + 2)
    answer(rows)
    rows.cancel(ID, NOW + 5, "alice")
    assert push.publish() == 4
    text = json.dumps(push.heard)
    assert "private" not in text
    assert "secret" not in text
    assert "alice" not in text


STATES: Final[dict[str, Callable[[TaskTable, str], object]]] = {
    "working": lambda rows, task_id: rows.report(task_id, "half-way", now_ms()),
    "input_required": lambda rows, task_id: rows.ask(task_id, ASK, now_ms()),
    "completed": lambda rows, task_id: rows.complete(task_id, RESULT, now_ms()),
    "failed": lambda rows, task_id: rows.fail(task_id, ERROR, now_ms()),
    "cancelled": lambda rows, task_id: rows.cancel(task_id, now_ms(), ANYONE),
}


@pytest.mark.parametrize("status", STATES)
def test_a_detail_is_what_a_poll_gives_at_that_moment(stack: Stack, status: str) -> None:
    """tasks.md, "Task Status Notifications": the params are a DetailedTask."""
    push = Push()
    task_id = stack.created("count", {"upto": 3})
    STATES[status](stack.deployment.task_table, task_id)
    assert push.publish() == 2
    polled = stack.task(task_id)
    assert polled.pop("resultType") == "complete"
    polled.pop("_meta", None)
    detail = push.heard[-1]
    assert detail.pop("_meta") == {REVISION: 2}
    assert detail == polled
    assert detail["status"] == status


def test_the_moment_of_a_change_is_when_it_happened(stack: Stack) -> None:
    """And not when it is published: the suggested interval grows with the task's age."""
    push, now = Push(), now_ms()
    machine = f"{PREFIX}{a_task().tool}"
    old = a_task(
        created_at=now - HOUR // 2, ttl_ms=HOUR, principal=ANYONE, state_machine_arn=machine
    )
    stack.deployment.task_table.create(old)
    stack.deployment.task_table.report(ID, "half-way", old.created_at + 50_000)
    push.publish()
    assert [detail["pollIntervalMs"] for detail in push.heard] == [2_000, 5_000]
    assert stack.task(ID)["pollIntervalMs"] == 60_000


def record(**image: Any) -> dict[str, Any]:
    """A stream's record of a new row."""
    new = {name: {"S": value} for name, value in image.items()}
    return {"dynamodb": {"Keys": {"taskId": {"S": ID}}, "NewImage": new}}


@pytest.mark.parametrize(
    "image",
    [
        {"taskId": ID, "statusMessage": "forged"},
        {"taskId": ID, "status": "working", "revision": "1"},
    ],
)
def test_a_row_that_is_no_task_holds_up_nobodys_changes(image: dict[str, str]) -> None:
    """Whoever has a worker's role could write one, if its conditions did not hold."""
    good = {"dynamodb": {"NewImage": item_of(a_task())}}
    changes = changes_to_publish([record(**image), good], detailed_task)
    assert [task.task_id for task, _ in changes] == [ID]


def test_a_task_whose_state_nobody_knows_holds_up_nobodys_changes() -> None:
    bad = {"dynamodb": {"NewImage": item_of(a_task()) | {"status": {"S": "forged"}}}}
    assert list(changes_to_publish([bad], detailed_task)) == []


def test_a_row_of_a_later_version_is_tried_again() -> None:
    """A deployment may be under way: a later attempt may read it."""
    later = {"dynamodb": {"NewImage": item_of(a_task()) | {"schemaVersion": {"N": "9"}}}}
    with pytest.raises(UnreadableRow):
        list(changes_to_publish([later], detailed_task))


# how it travels


@pytest.mark.parametrize(
    "change",
    [
        a_change(),
        a_change(statusMessage="half-way, наполовину, 😀, \u2028"),
        a_change(result={"content": [], "structuredContent": {"big": 2**63 - 1, "half": 0.5}}),
        a_change(("result",), status="completed"),
        a_change(("result", "error")),
    ],
)
def test_a_detail_is_read_as_it_was_written(change: Change) -> None:
    assert read_change(json.loads(change.detail())) == change


def test_a_detail_is_the_notifications_params_and_two_members_of_its_meta() -> None:
    detail = json.loads(a_change(("result",), ttlMs=5).detail())
    assert detail == {
        "taskId": ID,
        "status": "working",
        "ttlMs": 5,
        "_meta": {REVISION: 3, LEFT_OUT: ["result"]},
    }
    assert LEFT_OUT not in json.loads(a_change().detail())["_meta"]


@pytest.mark.parametrize(
    "detail",
    [
        {},
        {"taskId": ID, "status": "working"},
        {"taskId": ID, "_meta": None},
        {"taskId": ID, "_meta": {}},
        {"taskId": ID, "_meta": {REVISION: None}},
        {"taskId": ID, "_meta": {REVISION: "x"}},
        {"_meta": {REVISION: 1}},
    ],
)
def test_a_foreign_detail_is_refused(detail: dict[str, Any]) -> None:
    """Whoever may put events onto the bus could send anything."""
    with pytest.raises((KeyError, TypeError, ValueError)):
        read_change(detail)


@pytest.mark.parametrize("status", Status)
def test_a_change_says_whether_the_task_is_terminal(status: Status) -> None:
    assert a_change(status=status.value).terminal is status.terminal


# what is too large


def size(change: Change) -> int:
    """The detail's bytes, but for `_meta`."""
    return len(json.dumps(change.params, separators=(",", ":")).encode())


def test_what_fits_is_left_as_it_is() -> None:
    room = MAX_DETAIL_BYTES - size(a_change(status="completed", result={"text": ""}))
    change = a_change(status="completed", result={"text": "x" * room})
    assert size(change) == MAX_DETAIL_BYTES
    assert fit_to_event(change) == change


def test_what_does_not_fit_is_left_out_and_said() -> None:
    room = MAX_DETAIL_BYTES - size(a_change(status="completed", result={"text": ""}))
    change = a_change(status="completed", result={"text": "x" * (room + 1)})
    assert fit_to_event(change) == a_change(("result",), status="completed")


HALF: Final = {"text": "x" * (MAX_DETAIL_BYTES // 2)}
WHOLE: Final = {"text": "x" * MAX_DETAIL_BYTES}
SMALL: Final = {"text": "-"}
ALL: Final = ("result", "inputRequests", "error")


@pytest.mark.parametrize(
    ("members", "left_out"),
    [
        ({"result": WHOLE}, ("result",)),
        ({"inputRequests": WHOLE}, ("inputRequests",)),
        ({"error": WHOLE}, ("error",)),
        ({"result": HALF, "inputRequests": HALF, "error": SMALL}, ("result",)),
        ({"inputRequests": HALF, "error": HALF}, ("inputRequests",)),
        ({"result": SMALL, "inputRequests": WHOLE, "error": SMALL}, ("result", "inputRequests")),
        ({"result": WHOLE, "inputRequests": WHOLE, "error": WHOLE, "ttlMs": 5}, ALL),
    ],
)
def test_no_more_is_left_out_than_has_to_be(
    members: dict[str, Any], left_out: tuple[str, ...]
) -> None:
    """In an order, the result first: what is asked and why it failed is small, and is the news."""
    kept = {name: value for name, value in members.items() if name not in left_out}
    assert fit_to_event(a_change(**members)) == a_change(left_out, **kept)


@pytest.mark.parametrize("character", ["x", "é", "漢", "😀", '"', "\\", "\x00", "\u2028"])
@pytest.mark.parametrize("count", [30_000, 110_000, 250_000])
def test_the_limit_is_of_bytes_and_not_of_characters(character: str, count: int) -> None:
    """A character is up to twelve bytes of JSON."""
    change = fit_to_event(a_change(status="completed", result={"text": character * count}))
    assert len(change.detail().encode()) < EVENT_LIMIT - 10_000
    escaped = len(json.dumps(character)) - 2
    assert bool(change.left_out) is (escaped * count > MAX_DETAIL_BYTES - 100)


def test_a_large_status_message_does_not_stop_the_events() -> None:
    """A row holds 400 KB, and no report is too long for it; EventBridge would refuse the event."""
    length = len(fit_to_event(a_change(statusMessage="x" * 300_000)).detail().encode())
    assert length < EVENT_LIMIT - 10_000


def test_a_change_to_a_task_is_as_the_task_is() -> None:
    task: Task = replace(a_task(), revision=7)
    assert change_to(task, NOW, detailed_task) == Change(ID, 7, detailed_task(task, NOW))


def test_a_large_result_is_published_without_it(rows: TaskTable) -> None:
    push = Push()
    rows.create(a_task())
    rows.complete(ID, {"content": [{"type": "text", "text": "x" * 300_000}]}, NOW + 1)
    push.publish()
    detail = push.heard[-1]
    assert "result" not in detail
    assert detail["status"] == "completed"
    assert detail["_meta"] == {REVISION: 2, LEFT_OUT: ["result"]}


# what PutEvents refuses


@pytest.mark.parametrize("member", ["result", "inputRequests", "error", "statusMessage"])
@pytest.mark.parametrize(
    ("value", "taken"),
    [
        (2**63 - 1, True),
        (2**63, False),
        (-(2**63), True),
        (-(2**63) - 1, False),
        (10**30, False),
        (1e30, True),
        (True, True),
        (str(10**30), True),
    ],
)
def test_an_integer_beyond_64_bits_is_left_out(member: str, value: Any, taken: bool) -> None:
    """EventBridge API reference, "PutEvents": integers have 64 bits."""
    members: dict[str, Any] = {member: {"list": [0, {"value": value}]}}
    change = a_change(ttlMs=5, **members)
    assert is_taken({"Detail": change.detail()}) is taken
    fitted = fit_to_event(change)
    assert fitted == (change if taken else a_change((member,), ttlMs=5))
    assert is_taken({"Detail": fitted.detail()})


@pytest.mark.parametrize(("depth", "taken"), [(400, True), (900, False), (5_000, False)])
def test_what_is_nested_too_deep_is_left_out(depth: int, taken: bool) -> None:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    fitted = fit_to_event(a_change(result=value))
    assert ("result" in fitted.params) is taken
    assert fitted.left_out == (() if taken else ("result",))
    assert is_taken({"Detail": fitted.detail()})


def test_a_result_with_a_huge_integer_holds_up_nobody(rows: TaskTable) -> None:
    push = Push()
    result = {"content": [], "structuredContent": {"atoms": 10**30}}
    rows.create(a_task())
    rows.complete(ID, result, NOW + 1)
    rows.create(a_task(task_id=OTHER))
    push.publish()
    assert [(e["taskId"], e["status"]) for e in push.heard] == [
        (ID, "working"),
        (ID, "completed"),
        (OTHER, "working"),
    ]
    assert push.heard[1]["_meta"] == {REVISION: 2, LEFT_OUT: ["result"]}
    assert rows.get(ID, NOW).result == result


def test_without_its_content_a_change_has_what_the_server_says_itself() -> None:
    members: dict[str, Any] = {"result": 1, "inputRequests": 2, "error": 3, "statusMessage": "4"}
    change = a_change(ttlMs=5, **members)
    assert without_content(change) == a_change(tuple(members), ttlMs=5)
