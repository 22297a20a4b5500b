"""`tools/call`: within the request, or as a task (server/tools.mdx; tasks.md, "Task Creation")."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from tests.unit.support.aws import real, refusing
from tests.unit.support.stack import TASKS, WITH_TASKS, Stack

PARAMS, INTERNAL, CAPABILITY = -32602, -32603, -32021
NEEDS_TASKS: Final[dict[str, Any]] = {"requiredCapabilities": {"extensions": {TASKS: {}}}}

TRACE: Final = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}

WITHOUT_TASKS: Final[dict[str, Any]] = {
    "nothing": {},
    "another extension": {"extensions": {"com.example/tasks": {}}},
    "no extensions": {"extensions": {}},
    "extensions as a list": {"extensions": [TASKS]},
    "settings that are no object": {"extensions": {TASKS: True}},
    "null settings": {"extensions": {TASKS: None}},
    "an earlier design's capability": {"tasks": {"requests": {"tools": {"call": {}}}}},
}


# within the request


def test_a_tool_answers_within_the_request(stack: Stack) -> None:
    answer = stack.call("echo", {"text": "a", "times": 3})
    assert answer.result["resultType"] == "complete"
    assert answer.result["content"] == [{"type": "text", "text": "aaa"}]


def test_a_sync_tool_never_becomes_a_task(stack: Stack) -> None:
    assert stack.call("echo", {"text": "a"}).result["resultType"] == "complete"


def test_arguments_may_be_left_out(stack: Stack) -> None:
    assert stack.post("tools/call", {"name": "routed"}).result["resultType"] == "complete"


def test_a_tool_error_is_a_result(stack: Stack) -> None:
    """tools.mdx, "Error Handling"."""
    result = stack.call("refuse", {"reason": "no such file"}).result
    assert result["isError"] is True
    assert result["content"] == [{"type": "text", "text": "Refused: no such file"}]


def test_a_crash_is_an_internal_error_that_tells_nothing(stack: Stack) -> None:
    answer = stack.call("crash", {"secret": "hunter2"})
    assert (answer.status, answer.code) == (500, INTERNAL)
    assert "KeyError" in answer.error["message"]
    assert "hunter2" not in json.dumps(answer.message)
    assert "Traceback" not in json.dumps(answer.message)


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({}, "text"),
        ({"text": 5}, "text"),
        ({"text": None}, "text"),
        ({"text": "a", "times": "5"}, "times"),
        ({"text": "a", "times": 1.5}, "times"),
        ({"text": "a", "times": 1e300}, "times"),
        ({"text": "a", "times": True}, "times"),
        ({"text": "a", "tiems": 2}, "tiems"),
    ],
)
def test_bad_arguments_are_a_result_that_names_the_field(
    stack: Stack, arguments: dict[str, Any], field: str
) -> None:
    """tools.mdx: input validation is a tool execution error, so that a model can correct itself."""
    answer = stack.call("echo", arguments)
    assert answer.status == 200
    assert answer.result["isError"] is True
    assert f"{field}:" in answer.result["content"][0]["text"]


def test_an_integer_may_be_written_with_a_fraction_of_zero(stack: Stack) -> None:
    """JSON Schema 2020-12, "type": an integer is any number with a zero fractional part."""
    assert stack.call("echo", {"text": "a", "times": 3.0}).result["content"][0]["text"] == "aaa"


def test_a_schema_of_the_authors_own_is_what_arguments_are_checked_against(
    unlimited: Stack,
) -> None:
    given = {"text": "short", "else": 1}
    assert unlimited.call("anything", given, capabilities={}).result["content"][0]["text"] == (
        "else, text"
    )
    refused = unlimited.call("anything", {"text": "hunter2"})
    assert refused.result["isError"] is True
    assert "text:" in refused.result["content"][0]["text"]
    assert "hunter2" not in json.dumps(refused.message)
    assert unlimited.calls.made == []


def test_a_bad_argument_is_not_repeated_in_the_error(stack: Stack) -> None:
    result = stack.call("echo", {"text": ["hunter2"]}).result
    assert "hunter2" not in json.dumps(result)


def test_every_bad_field_is_named_at_once(stack: Stack) -> None:
    text = stack.call("echo", {"times": "x", "more": 1}).result["content"][0]["text"]
    assert all(f"{field}:" in text for field in ("text", "times", "more"))


@pytest.mark.parametrize("name", ["nothing", "", "ECHO", "echo ", "__class__", "x" * 10_000])
def test_an_unknown_tool_is_invalid_params(stack: Stack, name: str) -> None:
    """tools.mdx, "Error Handling": a protocol error."""
    answer = stack.call(name, headers={"Mcp-Name": "=?base64?" + _base64(name) + "?="})
    assert (answer.status, answer.code) == (400, PARAMS)
    assert "Unknown tool" in answer.error["message"]
    assert len(answer.error["message"]) < 200
    assert stack.calls.made == []


@pytest.mark.parametrize("name", [None, 5, ["echo"], {}])
def test_a_tool_name_that_is_no_string_is_invalid_params(stack: Stack, name: object) -> None:
    answer = stack.post("tools/call", {"name": name, "arguments": {}})
    assert (answer.status, answer.code) == (400, PARAMS)
    assert "name" in answer.error["message"]


@pytest.mark.parametrize("arguments", [None, [], "text", 5])
def test_arguments_that_are_no_object_are_invalid_params(stack: Stack, arguments: object) -> None:
    answer = stack.post("tools/call", {"name": "count", "arguments": arguments})
    assert (answer.status, answer.code) == (400, PARAMS)
    assert "arguments" in answer.error["message"]
    assert stack.calls.made == []


# as a task


def test_a_task_is_created_with_what_its_tool_declares(stack: Stack) -> None:
    result = stack.call("count", {"upto": 3}).result
    assert result["resultType"] == "task"
    assert result["status"] == "working"
    assert result["ttlMs"] == 3_600_000
    assert result["pollIntervalMs"] == 3_000
    assert result["createdAt"] == result["lastUpdatedAt"]
    assert result["taskId"].startswith("c1-")


def test_a_task_is_readable_before_its_handle_is_returned(unlimited: Stack) -> None:
    """tasks.md, "Task Creation"; here by order: the write comes first, and reads are consistent."""
    task_id = unlimited.created("count", {"upto": 3})
    assert unlimited.calls.operations == ["put_item", "start_execution"]
    assert unlimited.task(task_id)["status"] == "working"


def inputs(stack: Stack) -> list[str]:
    """What the executions were started with."""
    starts = [call for call in stack.calls.made if call.operation == "start_execution"]
    return [start.arguments["input"] for start in starts]


@pytest.mark.parametrize("tool", ["count", "anything"])
def test_the_execution_gets_an_input_byte_for_byte_the_same_each_time(
    stack: Stack, tool: str
) -> None:
    """A start that is repeated must carry the same input, or AWS refuses it."""
    arguments = {"upto": 3, "ask": True}
    stack.call(tool, arguments)
    stack.call(tool, dict(reversed(arguments.items())))
    first, second = inputs(stack)
    assert first == second


def test_a_functions_execution_knows_all_that_its_worker_needs(stack: Stack) -> None:
    capabilities = {**WITH_TASKS, "roots": {}}
    params = {"name": "count", "arguments": {"upto": 3}, "_meta": TRACE}
    stack.post("tools/call", params, capabilities=capabilities)
    (text,) = inputs(stack)
    assert json.loads(text) == {
        "arguments": {"upto": 3},
        "answers": {},
        "client_can": ["form", "roots"],
        "schema": 2,
        "trace": TRACE,
    }


def test_a_workflows_input_is_its_arguments(stack: Stack) -> None:
    """Whoever writes one needs to know nothing of MCP. Beside them, the version of what may be
    there: an execution may be older than the code of its steps."""
    stack.call("review", {"text": "a"})
    assert [json.loads(text) for text in inputs(stack)] == [{"text": "a", "_meta": {"schema": 2}}]


def test_a_strangers_input_is_its_arguments_and_nothing_else(stack: Stack) -> None:
    """It may refuse what it does not know."""
    stack.call("orders", {"item": "tea"})
    assert [json.loads(text) for text in inputs(stack)] == [{"item": "tea"}]


@pytest.mark.parametrize(
    ("tool", "arguments", "more"),
    [("review", {"text": "a"}, {"_meta": {"schema": 2, **TRACE}}), ("orders", {"item": "tea"}, {})],
)
def test_a_trace_goes_beside_a_workflows_arguments_and_not_to_a_strangers(
    stack: Stack, tool: str, arguments: dict[str, Any], more: dict[str, Any]
) -> None:
    """SEP-414. A state machine that existed before may refuse what it does not know."""
    stack.post("tools/call", {"name": tool, "arguments": arguments, "_meta": TRACE})
    assert [json.loads(text) for text in inputs(stack)] == [{**arguments, **more}]


@pytest.mark.parametrize("tool", ["wait", "review", "orders"])
@pytest.mark.parametrize("capabilities", WITHOUT_TASKS.values(), ids=WITHOUT_TASKS)
def test_a_required_task_is_refused_to_a_client_without_the_extension(
    stack: Stack, tool: str, capabilities: dict[str, Any]
) -> None:
    """tasks.md, "Capability Negotiation": -32021 naming the extension."""
    answer = stack.call(tool, {"text": "a", "item": "a"}, capabilities=capabilities)
    assert (answer.status, answer.code) == (400, CAPABILITY)
    assert answer.error["data"] == NEEDS_TASKS
    assert stack.calls.made == []
    assert stack.rows == []


@pytest.mark.parametrize("capabilities", WITHOUT_TASKS.values(), ids=WITHOUT_TASKS)
def test_an_optional_task_runs_within_the_request_for_a_client_without_the_extension(
    unlimited: Stack, capabilities: dict[str, Any]
) -> None:
    """tasks.md: CreateTaskResult must not be returned to such a client."""
    answer = unlimited.call("count", {"upto": 3}, capabilities=capabilities)
    assert answer.result["resultType"] == "complete"
    assert answer.result["structuredContent"] == {"total": 6}
    assert unlimited.calls.made == []


@pytest.mark.parametrize(
    ("capabilities", "accepts"),
    [
        ({}, set()),
        ({"elicitation": {}}, {"form"}),
        ({"elicitation": {"url": {}}}, {"url"}),
        ({"elicitation": {"form": {}}, "sampling": {}, "roots": {}}, {"form", "sampling", "roots"}),
    ],
)
def test_a_task_remembers_what_its_client_can_be_asked_for(
    stack: Stack, capabilities: dict[str, Any], accepts: set[str]
) -> None:
    """By the time it asks, the request and its capabilities are gone."""
    capabilities = {"extensions": {TASKS: {}}, **capabilities}
    stack.created("count", {"upto": 1}, capabilities=capabilities)
    (row,) = stack.rows
    assert set(row["accepts"]["M"]) == accepts


def test_settings_of_the_extension_are_ignored(stack: Stack) -> None:
    capabilities = {"extensions": {TASKS: {"later": True}}}
    assert stack.created("count", {"upto": 1}, capabilities=capabilities)


def test_bad_arguments_leave_no_row_and_start_nothing(stack: Stack) -> None:
    answer = stack.call("count", {"upto": "3"})
    assert answer.result["resultType"] == "complete"
    assert answer.result["isError"] is True
    assert "upto:" in answer.result["content"][0]["text"]
    assert stack.calls.made == []
    assert stack.rows == []


def test_a_task_keeps_an_earlier_designs_parameter_out(stack: Stack) -> None:
    """SEP-2663, "Backward Compatibility": a `task` parameter is ignored."""
    params = {"name": "count", "arguments": {"upto": 1}, "task": {"ttl": 5}}
    assert stack.post("tools/call", params).result["ttlMs"] == 3_600_000
    without = stack.post("tools/call", params, capabilities={})
    assert without.result["resultType"] == "complete"


# questions within the request


ASKING: Final[dict[str, tuple[str, dict[str, Any], Any]]] = {
    "an optional task for a client without tasks": (
        "count",
        {"upto": 3, "ask": True},
        {"elicitation": {}},
    ),
    "a tool that never runs as a task": ("nosy", {}, WITH_TASKS),
}


@pytest.mark.parametrize(("tool", "arguments", "capabilities"), ASKING.values(), ids=ASKING)
def test_a_tool_asks_within_the_request(
    stack: Stack, tool: str, arguments: dict[str, Any], capabilities: Any
) -> None:
    """mrtr.mdx, "Basic Workflow": the client repeats the request with its answers."""
    params = {"name": tool, "arguments": arguments}
    asked = stack.post("tools/call", params, capabilities=capabilities)
    assert asked.status == 200
    ((key, request),) = asked.result["inputRequests"].items()
    assert request["method"] == "elicitation/create"
    yes = {key: {"action": "accept", "content": {"sure": True}}}
    answered = stack.repeat("tools/call", params, asked, yes, capabilities=capabilities)
    assert answered.result["resultType"] == "complete"
    assert "isError" not in answered.result
    assert stack.rows == []


@pytest.mark.parametrize(("tool", "arguments", "capabilities"), ASKING.values(), ids=ASKING)
def test_a_client_that_cannot_be_asked_learns_which_capability_is_missing(
    unlimited: Stack, tool: str, arguments: dict[str, Any], capabilities: Any
) -> None:
    """mrtr.mdx, "Server Requirements": only what the client declared."""
    cannot = {**capabilities, "elicitation": {"url": {}}}
    answer = unlimited.call(tool, arguments, capabilities=cannot)
    assert (answer.status, answer.code) == (400, CAPABILITY)
    assert answer.error["data"] == {"requiredCapabilities": {"elicitation": {"form": {}}}}
    assert unlimited.calls.made == []


def test_a_declined_question_within_the_request_is_a_tool_error(stack: Stack) -> None:
    params = {"name": "nosy", "arguments": {}}
    asked = stack.post("tools/call", params)
    answer = stack.repeat("tools/call", params, asked, {"answer": {"action": "decline"}})
    assert answer.result["isError"] is True
    assert "decline" in answer.result["content"][0]["text"]


# questions before there is a task


HALL: Final = {"hall": {"action": "accept", "content": {"hall": "great"}}}


def test_what_has_to_be_known_first_is_asked_before_there_is_a_task(stack: Stack) -> None:
    """tasks.md, "Task Creation": questions come before CreateTaskResult."""
    params = {"name": "book", "arguments": {"seats": 20, "name": "Ada"}}
    asked = stack.post("tools/call", params)
    assert list(asked.result["inputRequests"]) == ["hall"]
    assert stack.rows == []
    made = stack.repeat("tools/call", params, asked, HALL)
    assert made.result["resultType"] == "task"
    (text,) = inputs(stack)
    assert json.loads(text)["answers"] == HALL


def test_what_is_known_is_not_asked_first(stack: Stack) -> None:
    stack.created("book", {"seats": 2})
    (text,) = inputs(stack)
    assert json.loads(text)["answers"] == {}


def test_who_declines_what_has_to_be_known_first_gets_no_task(stack: Stack) -> None:
    params = {"name": "book", "arguments": {"seats": 20}}
    asked = stack.post("tools/call", params)
    answer = stack.repeat("tools/call", params, asked, {"hall": {"action": "cancel"}})
    assert answer.result["isError"] is True
    assert stack.rows == []
    assert inputs(stack) == []


def test_without_tasks_the_same_tool_asks_within_the_request(stack: Stack) -> None:
    capabilities: dict[str, Any] = {"elicitation": {}}
    params = {"name": "book", "arguments": {"seats": 20}}
    asked = stack.post("tools/call", params, capabilities=capabilities)
    answer = stack.repeat("tools/call", params, asked, HALL, capabilities=capabilities)
    assert answer.result["content"][0]["text"] == "20 seats in great"


# errors of AWS


REFUSALS: Final = ["StateMachineDoesNotExist", "InvalidExecutionInput", "AccessDeniedException"]
"""What will not be otherwise another time; see test_backpressure for what may be."""


@pytest.mark.parametrize("code", REFUSALS)
def test_a_start_that_is_refused_fails_the_row_and_the_call(stack: Stack, code: str) -> None:
    """docs/design.md, "Row first": no row may go on saying that something works."""
    stack.calls.instead["start_execution"] = refusing("stepfunctions", code)
    answer = stack.call("count", {"upto": 3})
    assert (answer.status, answer.code) == (500, INTERNAL)
    assert "could not be started" in answer.error["message"]
    assert code not in json.dumps(answer.message)
    (row,) = stack.rows
    assert row["status"] == {"S": "failed"}
    assert json.loads(row["error"]["S"])["code"] == INTERNAL
    assert "reconcileAt" in row, "the sweeper may have been faster, and not been refused"


def test_a_refused_start_has_nothing_to_stop(unlimited: Stack) -> None:
    refused = refusing("stepfunctions", "StateMachineDoesNotExist")
    unlimited.calls.instead["start_execution"] = refused
    unlimited.call("count", {"upto": 3})
    assert unlimited.calls.operations == ["put_item", "start_execution", "update_item"]


def test_an_execution_that_was_started_already_is_started(stack: Stack) -> None:
    """StartExecution: a start repeated after a lost answer meets its own execution."""
    stack.calls.instead["start_execution"] = refusing("stepfunctions", "ExecutionAlreadyExists")
    task_id = stack.created("count", {"upto": 3})
    assert stack.task(task_id)["status"] == "working"


def test_a_create_whose_first_answer_was_lost_starts_all_the_same(unlimited: Stack) -> None:
    """botocore repeats the PutItem, whose condition then meets the row that it wrote itself."""

    def lost(**arguments: Any) -> Any:
        real("dynamodb").put_item(**arguments)
        return real("dynamodb").put_item(**arguments)

    unlimited.calls.instead["put_item"] = lost
    task_id = unlimited.created("count", {"upto": 3})
    assert unlimited.calls.operations == ["put_item", "start_execution"]
    assert unlimited.task(task_id)["status"] == "working"


@pytest.mark.parametrize(
    ("code", "status"), [("InternalServerError", 503), ("ValidationException", 500)]
)
def test_a_row_that_cannot_be_written_starts_nothing(
    unlimited: Stack, code: str, status: int
) -> None:
    """Whether it may be repeated is what the status says."""
    unlimited.calls.instead["put_item"] = refusing("dynamodb", code)
    answer = unlimited.call("count", {"upto": 3})
    assert (answer.status, answer.code) == (status, INTERNAL)
    assert "start_execution" not in unlimited.calls.operations


def _base64(text: str) -> str:
    import base64

    return base64.b64encode(text.encode()).decode()
