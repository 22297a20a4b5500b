"""The function that asks a task's client, for states that wait on a task token."""

from __future__ import annotations

from typing import Any, Final

import pytest

from mcp_tasks.tasks.forms import InvalidQuestion
from mcp_tasks.tasks.questions import FormQuestion, Kind, question
from mcp_tasks.tasks.state import Status
from mcp_tasks.tasks.task_table import TaskTable
from mcp_tasks.workflows.ask import ask
from mcp_tasks.workflows.executions import Executions
from tests.unit.support.aws import Calls, raw_rows
from tests.unit.support.example_task import HOUR, ID, NOW, a_task

FORM: Final = {"type": "object", "properties": {"sure": {"type": "boolean"}}, "required": ["sure"]}
REQUESTS: Final = {"sure": {"message": "Sure?", "schema": FORM}}


@pytest.fixture
def executions(aws: Calls) -> Executions:
    aws.instead["stop_execution"] = lambda **arguments: {}
    return Executions(lambda: aws.client("stepfunctions"))


def event(requests: Any = REQUESTS, token: str = "token") -> dict[str, Any]:
    return {"task": ID, "token": token, "requests": requests}


def test_a_question_reaches_the_row(rows: TaskTable, executions: Executions) -> None:
    rows.create(a_task())
    assert ask(event(), rows, executions, NOW) == "asked"
    task = rows.get(ID, NOW)
    assert task.status is Status.INPUT_REQUIRED
    ((key, asked),) = task.outstanding.items()
    assert asked == FormQuestion("Sure?", FORM)
    (opened,) = task.asks.values()
    assert (opened.token, opened.names) == ("token", {key: "sure"})


def test_a_question_that_is_delivered_twice_is_asked_once(
    rows: TaskTable, executions: Executions
) -> None:
    """Lambda and Step Functions deliver at least once."""
    rows.create(a_task())
    ask(event(), rows, executions, NOW)
    before = raw_rows()
    assert ask(event(), rows, executions, NOW + 1) == "asked"
    assert raw_rows() == before


def test_the_same_question_again_has_another_key(rows: TaskTable, executions: Executions) -> None:
    """A loop that asks each time round; each waits on a token of its own."""
    rows.create(a_task())
    ask(event(token="first"), rows, executions, NOW)
    ask(event(token="second"), rows, executions, NOW)
    assert len(rows.get(ID, NOW).outstanding) == 2


@pytest.mark.parametrize("end", ["cancel", "complete"])
def test_a_task_that_ended_is_not_asked(rows: TaskTable, executions: Executions, end: str) -> None:
    rows.create(a_task())
    if end == "cancel":
        rows.cancel(ID, NOW, "alice")
    else:
        rows.complete(ID, {"content": []}, NOW)
    before = raw_rows()
    assert ask(event(), rows, executions, NOW) == "ended"
    assert raw_rows() == before


def test_a_task_that_is_gone_is_not_asked(rows: TaskTable, executions: Executions) -> None:
    assert ask(event(), rows, executions, NOW) == "ended"
    rows.create(a_task())
    assert ask(event(), rows, executions, NOW + HOUR) == "ended"


EVERY: Final[dict[Kind, dict[str, Any]]] = {
    Kind.FORM: REQUESTS["sure"],
    Kind.URL: {"message": "Pay there", "url": "https://pay.example/1"},
    Kind.SAMPLING: {"sampling": {"messages": [{"role": "user"}], "maxTokens": 9}},
    Kind.ROOTS: {"roots": {}},
}


@pytest.mark.parametrize("kind", Kind)
def test_a_workflow_asks_for_anything_that_a_client_can_be_asked_for(
    rows: TaskTable, executions: Executions, kind: Kind
) -> None:
    rows.create(a_task(accepts=frozenset({kind})))
    assert ask(event({"it": EVERY[kind]}), rows, executions, NOW) == "asked"
    assert list(rows.get(ID, NOW).outstanding.values()) == [question(EVERY[kind])]


CANNOT: Final[dict[str, tuple[list[Kind], dict[str, Any]]]] = {
    "form": ([Kind.FORM], {"elicitation": {"form": {}}}),
    "url": ([Kind.URL], {"elicitation": {"url": {}}}),
    "sampling": ([Kind.SAMPLING], {"sampling": {}}),
    "roots": ([Kind.ROOTS], {"roots": {}}),
    "several": (
        list(Kind),
        {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}},
    ),
}


@pytest.mark.parametrize(("kinds", "required"), CANNOT.values(), ids=CANNOT)
def test_a_client_that_cannot_be_asked_gets_an_error_and_the_execution_ends(
    rows: TaskTable,
    executions: Executions,
    aws: Calls,
    kinds: list[Kind],
    required: dict[str, Any],
) -> None:
    """basic/index.mdx: what needs an undeclared capability is -32021, and names it."""
    rows.create(a_task(accepts=frozenset(Kind) - {kinds[-1]}))
    requests = {str(kind): EVERY[kind] for kind in kinds}
    assert ask(event(requests), rows, executions, NOW) == "refused"
    task = rows.get(ID, NOW)
    assert task.status is Status.FAILED
    assert task.error is not None
    assert task.error["code"] == -32021
    assert task.error["data"] == {"requiredCapabilities": required}
    (stop,) = (call for call in aws.made if call.operation == "stop_execution")
    assert stop.arguments["executionArn"].endswith(f":execution:count:{ID}")


@pytest.mark.parametrize("sequential", [True, False])
def test_a_client_that_cannot_be_asked_has_a_step_running_only_beside_the_question(
    rows: TaskTable, executions: Executions, sequential: bool
) -> None:
    """In another branch of a Parallel: the task counts in its caller's quota until that ends."""
    rows.create(a_task(accepts=frozenset(), sequential=sequential))
    assert ask(event(), rows, executions, NOW) == "refused"
    assert rows.are_open([ID], NOW) == {ID: not sequential}


@pytest.mark.parametrize("requests", [None, [], "sure", 5])
def test_requests_that_are_no_object_are_invalid(
    rows: TaskTable, executions: Executions, requests: Any
) -> None:
    rows.create(a_task())
    with pytest.raises(InvalidQuestion, match="object"):
        ask(event(requests), rows, executions, NOW)


def test_asking_nothing_is_invalid(rows: TaskTable, executions: Executions) -> None:
    rows.create(a_task())
    with pytest.raises(InvalidQuestion, match="at least one"):
        ask(event({}), rows, executions, NOW)


NO_FORMS: Final[dict[str, Any]] = {
    "no question": "Sure?",
    "no message": {"schema": FORM},
    "a message that is no text": {"message": 5, "schema": FORM},
    "no schema": {"message": "Sure?"},
    "a schema that is no object": {"message": "Sure?", "schema": []},
    "a url that is none": {"message": "Pay there", "url": "pay.example"},
    "sampling without messages": {"sampling": {"messages": [], "maxTokens": 9}},
    # client/elicitation.mdx, "Requested Schema": flat objects with primitive properties only.
    "an empty schema": {"message": "Sure?", "schema": {}},
    "no type": {"message": "Sure?", "schema": {"properties": {}}},
    "a form of another type": {"message": "Sure?", "schema": {"type": "string"}},
    "a nested form": {
        "message": "Sure?",
        "schema": {"type": "object", "properties": {"who": {"type": "object"}}},
    },
    "a list of objects": {
        "message": "Sure?",
        "schema": {
            "type": "object",
            "properties": {"who": {"type": "array", "items": {"type": "object"}}},
        },
    },
    "an optional field as pydantic writes it": {
        "message": "Sure?",
        "schema": {
            "type": "object",
            "properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
        },
    },
    "no JSON Schema": {
        "message": "Sure?",
        "schema": {"type": "object", "properties": {"a": {"type": "colour"}}},
    },
}


@pytest.mark.parametrize("request_", NO_FORMS.values(), ids=NO_FORMS)
def test_what_no_form_can_show_is_invalid_and_names_its_question(
    rows: TaskTable, executions: Executions, request_: Any
) -> None:
    """Asked all the same, it would be a message that clients refuse, and never be answered."""
    rows.create(a_task())
    before = raw_rows()
    with pytest.raises(InvalidQuestion, match="my question"):
        ask(event({"my question": request_}), rows, executions, NOW)
    assert raw_rows() == before
