"""The audit log: who did what to which task; and what no log line may have."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import pytest

from mcp_tasks.tasks.questions import FormQuestion, open_ask
from mcp_tasks.tasks.reconcile_schedule import FIRST_RECONCILE_MS, STOP_AGAIN_MS
from mcp_tasks.tasks.state import Status
from mcp_tasks.tasks.task import now_ms
from mcp_tasks.workflows.ask import ask
from mcp_tasks.workflows.end_task import TaskEnds
from mcp_tasks.workflows.executions import ExecutionEnd, execution_arn
from mcp_tasks.workflows.finish import finish
from mcp_tasks.workflows.sweep import sweep
from tests.unit.support.aws import refusing
from tests.unit.support.listening import Time
from tests.unit.support.stack import LOGGER, PREFIX, Answer, Stack
from tests.unit.support.states import States

PARAMS: Final = -32602
ALICE, BOB = "arn:aws:iam::1:user/alice", "arn:aws:iam::1:user/bob"
SECRET: Final = "hunter2"
UNKNOWN_ID: Final = f"c1-{'0' * 32}"
FORM: Final = {"type": "object", "properties": {"note": {"type": "string"}}, "required": ["note"]}
KEY: Final = {"Idempotency-Key": f"key {SECRET}"}


class Ended:
    """An execution that has ended."""

    def __init__(self, status: str, output: Any = None) -> None:
        self.end = ExecutionEnd(status, output=output, error="Broken", cause=SECRET)

    def describe(self, state_machine_arn: str, task_id: str) -> ExecutionEnd:
        return self.end


class Audited:
    """A server, and what it logs."""

    def __init__(self, stack: Stack, text: io.StringIO) -> None:
        self.stack = stack
        self.text = text

    def lines(self) -> list[dict[str, Any]]:
        """The audit lines since the last call of this method: who did what."""
        found = [json.loads(line) for line in self.text.getvalue().splitlines()]
        self.text.truncate(0)
        self.text.seek(0)
        kept = ("action", "task_id", "principal", "refused", "repeated", "status")
        return [
            {name: line[name] for name in kept if name in line}
            for line in found
            if line["message"] == "audit"
        ]

    def create(self, **options: Any) -> str:
        """A task of alice's, without the audit line of its creation."""
        task_id = self.stack.created("count", {"upto": 3}, user_arn=ALICE, **options)
        self.lines()
        return task_id

    def question(self, task_id: str, token: str = "token") -> str:
        """Ask alice a question; returns its key."""
        asked = open_ask(token, {"note": FormQuestion("A note?", FORM)})
        self.stack.deployment.task_table.ask(task_id, asked, now_ms())
        (key,) = asked.names
        return key

    def finish(self, task_id: str, status: str, output: Any = None) -> None:
        """The end of a task's execution."""
        arn = f"{PREFIX}count"
        detail = {"executionArn": "arn", "stateMachineArn": arn, "name": task_id}
        ended: Any = Ended(status, output)
        deployment = self.stack.deployment
        catalogue, payloads = self.stack.catalogue, deployment.payloads
        finish(detail, TaskEnds(deployment.task_table, ended, catalogue, payloads), now_ms())


def line(action: str, task_id: str, principal: str = ALICE, **more: Any) -> dict[str, Any]:
    """An audit line, without the members that name its request."""
    return {"action": action, "task_id": task_id, "principal": principal, **more}


@pytest.fixture
def audited(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> Iterator[Audited]:
    """What the functions log at the level DEBUG."""
    text, level = io.StringIO(), LOGGER.log_level
    monkeypatch.setattr(LOGGER.registered_handler, "stream", text)
    LOGGER.setLevel(logging.DEBUG)
    LOGGER.remove_keys(["task_id", "principal"])
    stack.calls.instead["send_task_success"] = lambda **arguments: {}
    yield Audited(stack, text)
    LOGGER.setLevel(level)


# create


def test_a_create_is_a_line(audited: Audited) -> None:
    task_id = audited.stack.created("count", {"upto": 3}, user_arn=ALICE)
    assert audited.lines() == [line("create", task_id)]


def test_a_create_that_is_repeated_is_a_line_that_says_so(audited: Audited) -> None:
    task_id = audited.create(headers=KEY)
    audited.stack.created("count", {"upto": 3}, user_arn=ALICE, headers=KEY)
    assert audited.lines() == [line("create", task_id, repeated=True)]


def test_the_round_that_is_repeated_is_a_line_too(audited: Audited) -> None:
    for _ in range(2):
        task_id = audited.stack.created("book", {"seats": 2}, user_arn=ALICE, headers=KEY)
    assert audited.lines() == [
        line("create", task_id),
        line("create", task_id, repeated=True),
    ]


def test_a_call_that_becomes_no_task_is_no_line(audited: Audited) -> None:
    audited.stack.call("echo", {"text": "a"}, user_arn=ALICE)
    audited.stack.call("count", {"upto": "x"}, user_arn=ALICE)
    audited.stack.call("book", {"seats": 1000}, user_arn=ALICE)
    assert audited.lines() == []


# read


def test_a_read_is_a_line(audited: Audited) -> None:
    task_id = audited.create()
    audited.stack.task(task_id, user_arn=ALICE)
    assert audited.lines() == [line("read", task_id)]


@pytest.mark.parametrize("action", ["read", "answer", "cancel"])
@pytest.mark.parametrize("whose", ["somebody else's", "nobody's"])
def test_a_refused_action_is_a_line_that_says_so(audited: Audited, action: str, whose: str) -> None:
    """The line has the principal who tried. It is the same whether the task exists or not."""
    task_id = audited.create() if whose == "somebody else's" else UNKNOWN_ID
    attempts = {
        "read": lambda: audited.stack.post("tasks/get", {"taskId": task_id}, user_arn=BOB),
        "answer": lambda: audited.stack.update(task_id, {}, user_arn=BOB),
        "cancel": lambda: audited.stack.cancel(task_id, user_arn=BOB),
    }
    answer: Answer = attempts[action]()
    assert answer.code == PARAMS
    assert audited.lines() == [line(action, task_id, BOB, refused=True)]


def test_a_subscription_is_a_line_for_each_task(
    audited: Audited, monkeypatch: pytest.MonkeyPatch
) -> None:
    Time().rule(monkeypatch)
    audited.stack.serve()
    task_id = audited.create()
    others = audited.stack.created("count", {"upto": 3}, user_arn=BOB)
    audited.lines()
    wanted = [task_id, others, UNKNOWN_ID, task_id]
    audited.stack.listen(wanted, user_arn=ALICE)
    assert audited.lines() == [
        line("read", task_id),
        line("read", others, refused=True),
        line("read", UNKNOWN_ID, refused=True),
    ]


def test_a_malformed_task_id_is_no_line(audited: Audited) -> None:
    for task_id in ("", "x", f"c2-{'0' * 32}", f"{UNKNOWN_ID}\n"):
        audited.stack.post("tasks/get", {"taskId": task_id}, headers={"Mcp-Name": None})
    assert audited.lines() == []


# answer


def test_an_answer_is_a_line(audited: Audited) -> None:
    task_id = audited.create()
    key = audited.question(task_id)
    answer = {key: {"action": "accept", "content": {"note": "yes"}}}
    audited.stack.update(task_id, answer, user_arn=ALICE)
    assert audited.lines() == [line("answer", task_id)]
    audited.stack.update(task_id, answer, user_arn=ALICE)
    audited.stack.update(task_id, {}, user_arn=ALICE)
    assert audited.lines() == [], "nothing more was answered"


# cancel


def test_a_cancel_is_a_line(audited: Audited) -> None:
    task_id = audited.create()
    audited.stack.cancel(task_id, user_arn=ALICE)
    audited.stack.cancel(task_id, user_arn=ALICE)
    assert audited.lines() == [line("cancel", task_id)]


def test_a_cancel_that_comes_too_late_is_no_line(audited: Audited) -> None:
    task_id = audited.create()
    audited.stack.deployment.task_table.complete(task_id, {"content": []}, now_ms())
    audited.stack.cancel(task_id, user_arn=ALICE)
    assert audited.lines() == []


# end


@pytest.mark.parametrize(
    ("execution", "status"),
    [("SUCCEEDED", "completed"), ("FAILED", "failed"), ("ABORTED", "failed")],
)
def test_an_end_is_a_line(audited: Audited, execution: str, status: str) -> None:
    """The line has the task's principal. An event that is delivered twice makes one line."""
    task_id = audited.create()
    for _ in range(2):
        audited.finish(task_id, execution, {"content": []})
    assert audited.lines() == [line("end", task_id, status=status)]


def test_an_end_after_a_cancel_is_no_line(audited: Audited) -> None:
    task_id = audited.create()
    audited.stack.cancel(task_id, user_arn=ALICE)
    audited.lines()
    audited.finish(task_id, "ABORTED")
    assert audited.lines() == []


def test_a_task_that_asks_who_cannot_be_asked_ends_in_a_line(audited: Audited) -> None:
    task_id = audited.create(capabilities={"extensions": {"io.modelcontextprotocol/tasks": {}}})
    event = {"task": task_id, "token": "t", "requests": {"note": {"message": "?", "schema": FORM}}}
    deployment = audited.stack.deployment
    for expected in ("refused", "ended"):
        assert ask(event, deployment.task_table, deployment.executions, now_ms()) == expected
    assert audited.lines() == [line("end", task_id, status="failed")]


def test_a_task_that_could_not_be_started_ends_in_a_line(audited: Audited) -> None:
    instead = audited.stack.calls.instead
    instead["start_execution"] = refusing("stepfunctions", "StateMachineDoesNotExist")
    audited.stack.call("count", {"upto": 3}, user_arn=ALICE)
    (row,) = audited.stack.rows
    assert row["status"] == {"S": Status.FAILED}
    task_id = row["taskId"]["S"]
    created, ended = audited.lines()
    assert created == line("create", task_id)
    assert ended == line("end", task_id, status="failed")


@pytest.mark.parametrize(
    ("happened", "status"),
    [("ended", "completed"), ("refused", "failed"), ("expired", "failed")],
)
def test_an_end_that_was_found_is_a_line(audited: Audited, happened: str, status: str) -> None:
    """The sweeper or a poll finds the end. An end with an event is not found again."""
    stack, states = audited.stack, States()
    states.serve(stack.calls)
    task_id = audited.create()
    later = now_ms() + FIRST_RECONCILE_MS
    match happened:
        case "ended":
            states.end(execution_arn(f"{PREFIX}count", task_id), {"content": []})
        case "refused":
            states.executions.clear()
            refuse = refusing("stepfunctions", "StateMachineDoesNotExist")
            stack.calls.instead["start_execution"] = refuse
        case _:
            later += 2 * 3_600_000
    deployment = stack.deployment
    for moment in (later, later + STOP_AGAIN_MS):
        sweep(deployment.task_table, deployment.reconciler, partial(int, moment), 60)
    assert audited.lines() == [line("end", task_id, status=status)]


# what no line holds


def test_no_content_of_a_task_is_logged(audited: Audited) -> None:
    """No argument, result, answer, key or token of a task is logged, at the level DEBUG."""
    stack = audited.stack
    token = {"Authorization": f"Bearer {SECRET}"}
    signed: dict[str, Any] = {"user_arn": ALICE, "headers": token}
    keyed: dict[str, Any] = {"user_arn": ALICE, "headers": {**token, **KEY}}
    arguments = {"seats": 2, "name": SECRET}
    params = {"name": "book", "arguments": arguments}
    task_id = stack.post("tools/call", params, **keyed).result["taskId"]
    assert stack.post("tools/call", params, **keyed).result["taskId"] == task_id
    stack.call("book", {"seats": 3, "name": SECRET}, **keyed)
    stack.call("anything", {"text": SECRET}, **signed)
    stack.call("anything", {"else": SECRET}, **signed)
    stack.call("echo", {"text": SECRET}, **signed)
    stack.call("refuse", {"reason": SECRET}, **signed)
    stack.call("crash", {"secret": SECRET}, **signed)

    key = audited.question(task_id, token=f"token {SECRET}")
    stack.task(task_id, user_arn=ALICE)
    stack.update(task_id, {key: {"action": "accept", "content": {"note": 5}}}, **signed)
    answer = {key: {"action": "accept", "content": {"note": SECRET}}}
    stack.calls.instead["send_task_success"] = refusing("stepfunctions", "InvalidToken")
    stack.update(task_id, answer, **signed)
    stack.deployment.task_table.complete(task_id, {"content": [], "x": SECRET}, now_ms())
    assert SECRET in json.dumps(stack.task(task_id, user_arn=ALICE))

    failing = stack.created("count", {"upto": 3}, user_arn=ALICE)
    audited.finish(failing, "FAILED")
    logged = audited.text.getvalue()
    assert logged.count('"audit"') >= 8
    assert SECRET not in logged


def test_each_line_has_a_task_and_a_principal(audited: Audited) -> None:
    """Also in a deployment without authentication, where there is one principal."""
    task_id = audited.stack.created("count", {"upto": 3})
    audited.stack.task(task_id)
    audited.stack.cancel(task_id)
    assert [(found["task_id"], found["principal"]) for found in audited.lines()] == [
        (task_id, "anonymous")
    ] * 3
