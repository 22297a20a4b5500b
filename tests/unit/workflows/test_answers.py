"""Answers on their way to the state that asked, and from one run of a function to the next: as they
are, or with pointers to what is large."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

from mcp_tasks.payloads.pointer import POINTER, payload_prefix
from mcp_tasks.payloads.s3_store import PayloadStore
from mcp_tasks.tasks.task import Task, now_ms
from mcp_tasks.workflows.ask import ask
from mcp_tasks.workflows.reconcile import Reconciled
from mcp_tasks.workflows.step_payloads import MAX_INLINE_ANSWERS_BYTES, all_answers, store_answers
from tests.unit.support.aws import Calls, create_payloads, refusing
from tests.unit.support.stack import Stack
from tests.unit.support.states import States

TEXT: Final = {"type": "object", "properties": {"text": {"type": "string"}}}
LARGE: Final = {"action": "accept", "content": {"text": "x" * 20_000}}
SMALL: Final = {"action": "accept", "content": {"text": "x"}}
PREFIX: Final = payload_prefix("count", f"c1-{'0' * 32}")


@pytest.fixture
def states(stack: Stack) -> States:
    """Step Functions; and a bucket."""
    create_payloads()
    states = States()
    states.serve(stack.calls)
    return states


def asked(stack: Stack, states: States, room: dict[str, int]) -> tuple[Task, str]:
    """A task, one of whose states has asked; and the question's key."""
    task_id = stack.created("count", {"upto": 1})
    requests = {"page": {"message": "Write", "schema": TEXT}}
    event = {"task": task_id, "token": "token", "requests": requests, **room}
    states.wait("token")
    rows = stack.deployment.task_table
    assert ask(event, rows, stack.deployment.executions, now_ms()) == "asked"
    task = rows.get(task_id, now_ms())
    (key,) = task.outstanding
    return task, key


def updated(stack: Stack, task: Task, key: str, answer: dict[str, Any]) -> None:
    """Its client answers."""
    assert stack.update(task.task_id, {key: answer}).status == 200


def looked_after(stack: Stack, task: Task, key: str, answer: dict[str, Any]) -> None:
    """Its client's answer was stored, and not sent."""
    deployment = stack.deployment
    (opened,) = task.asks
    task = deployment.task_table.answer(task, {opened: {key: answer}}, now_ms())
    assert task.reconcile_at is not None
    assert deployment.reconciler.reconcile(task, task.reconcile_at) is Reconciled.DELIVERED


each_way = pytest.mark.parametrize("passed_on", [updated, looked_after])
PassedOn = Callable[[Stack, Task, str, dict[str, Any]], None]


@each_way
@pytest.mark.parametrize(
    ("room", "answer"),
    [({}, LARGE), ({"max_output_bytes": 2000}, SMALL)],
    ids=["large, with all room", "small, with little room"],
)
def test_an_answer_that_has_room_goes_as_it_is(
    stack: Stack, states: States, passed_on: PassedOn, room: dict[str, int], answer: dict[str, Any]
) -> None:
    task, key = asked(stack, states, room)
    passed_on(stack, task, key, answer)
    assert states.received == [("token", {"page": answer})]
    assert "s3" not in stack.calls.clients


@each_way
def test_what_is_large_in_an_answer_is_stored_where_answers_are_put_together(
    stack: Stack, states: States, passed_on: PassedOn
) -> None:
    """Ten of them in a Map would be more than Step Functions carries. A Choice sees the action."""
    task, key = asked(stack, states, {"max_output_bytes": 2000})
    passed_on(stack, task, key, LARGE)
    ((_, output),) = states.received
    assert output["page"]["action"] == "accept"
    assert POINTER in output["page"]["content"]["text"]
    payloads = stack.deployment.payloads
    assert payloads.resolve(output, payload_prefix(task.tool, task.task_id)) == {"page": LARGE}


def test_an_answer_that_cannot_be_stored_at_the_moment_is_passed_on_later(
    stack: Stack, states: States
) -> None:
    """Its client hears that it may repeat itself; and need not."""
    task, key = asked(stack, states, {"max_output_bytes": 2000})
    stack.calls.instead["put_object"] = refusing("s3", "SlowDown")
    assert stack.update(task.task_id, {key: LARGE}).status == 503
    assert states.received == []
    del stack.calls.instead["put_object"]
    task = stack.deployment.task_table.get(task.task_id, now_ms())
    assert task.reconcile_at is not None
    assert stack.deployment.reconciler.reconcile(task, task.reconcile_at) is Reconciled.DELIVERED
    assert len(states.received) == 1


# from run to run


def test_few_answers_are_carried_as_they_are(payloads: PayloadStore, aws: Calls) -> None:
    answers = {
        "a": {"action": "accept", "content": {"text": "x" * (MAX_INLINE_ANSWERS_BYTES - 100)}}
    }
    event = {"answers": answers}
    assert all_answers(event, payloads, PREFIX) == answers
    assert store_answers(event, answers, payloads, PREFIX) == {}
    assert aws.clients == []


def test_many_answers_are_stored_and_come_back_with_those_that_follow(
    payloads: PayloadStore,
) -> None:
    answers = {f"a{n}": LARGE for n in range(3)}
    carried = store_answers({"answers": answers}, answers, payloads, PREFIX)
    assert POINTER in carried["earlier_answers"]
    event = {**carried, "answers": {"a3": SMALL}}
    assert all_answers(event, payloads, PREFIX) == {**answers, "a3": SMALL}


def test_what_is_stored_is_not_stored_again_for_a_small_answer(
    payloads: PayloadStore, aws: Calls
) -> None:
    answers = {f"a{n}": LARGE for n in range(3)}
    event = {**store_answers({"answers": answers}, answers, payloads, PREFIX)}
    event["answers"] = {"a3": SMALL}
    assert store_answers(event, {**answers, "a3": SMALL}, payloads, PREFIX) == {}
    assert aws.operations == ["put_object"]


@pytest.mark.parametrize("event", [{}, {"answers": {}}, {"answers": None, "earlier_answers": {}}])
def test_a_definition_that_is_older_tells_of_no_earlier_answers(
    payloads: PayloadStore, event: dict[str, Any]
) -> None:
    """Executions keep the definition that they began with."""
    assert all_answers(event, payloads, PREFIX) == {}
    assert store_answers(event, {}, payloads, PREFIX) == {}
