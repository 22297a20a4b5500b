"""Arguments that are too large for a row and for an execution: in S3, and nobody notices.

Step Functions developer guide, "Quotas": 256 KiB; DynamoDB developer guide, "Quotas": 400 KB.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Final

import pytest

from mcp_tasks.payloads.pointer import POINTER, PayloadPointer, payload_prefix
from mcp_tasks.payloads.s3_store import PayloadStore
from mcp_tasks.workflows.execution_input import (
    MAX_EXECUTION_INPUT_BYTES,
    MAX_INLINE_INPUT_BYTES,
)
from tests.unit.support.aws import CALLERS, raw_rows, real, refusing
from tests.unit.support.stack import Stack

PARAMS, INTERNAL = -32602, -32603
TRACE: Final = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
LARGE: Final = "x" * 300_000
KEY: Final = {"Idempotency-Key": "k"}


@pytest.fixture
def stack(stack: Stack, payloads: PayloadStore) -> Stack:
    """A server with its bucket, of which nothing was asked yet."""
    stack.calls.forget()
    return stack


def input_of(stack: Stack, task_id: str) -> Any:
    """What the task's execution starts with; its row keeps the same, byte for byte."""
    (start,) = [call for call in stack.calls.made if call.operation == "start_execution"]
    (row,) = raw_rows()
    assert (start.arguments["name"], row["taskId"]) == (task_id, {"S": task_id})
    assert row["input"] == {"S": start.arguments["input"]}
    assert len(start.arguments["input"]) <= MAX_INLINE_INPUT_BYTES + 1000
    return json.loads(start.arguments["input"])


def places() -> list[str]:
    """The tasks in the caller's quota."""
    items = real("dynamodb").scan(TableName=CALLERS)["Items"]
    return [task_id for item in items if "open" in item for task_id in item["open"]["M"]]


def test_a_functions_large_arguments_reach_its_worker(stack: Stack, payloads: PayloadStore) -> None:
    arguments = {"title": "few", "rows": [LARGE, "small"], "story": LARGE}
    task_id = stack.created("anything", {**arguments, "story": "a"})
    found = input_of(stack, task_id)
    assert found["arguments"]["title"] == "few", "what is small stays in its place"
    assert found["arguments"]["rows"][1] == "small"
    assert LARGE not in json.dumps(found)
    whole = payloads.resolve(found, payload_prefix("anything", task_id))
    assert whole["arguments"] == {**arguments, "story": "a"}


def test_a_workflows_large_arguments_reach_its_steps(stack: Stack, payloads: PayloadStore) -> None:
    task_id = stack.created("review", {"text": LARGE})
    found = input_of(stack, task_id)
    assert found.keys() == {"text", "_meta"}
    assert found["text"].keys() == {POINTER}
    assert payloads.resolve(found, payload_prefix("review", task_id))["text"] == LARGE


def test_the_members_that_state_machines_read_are_not_stored(stack: Stack) -> None:
    """Whatever else is large: `JSONPath` and JSONata see no S3."""
    arguments = {"name": "anything", "arguments": {"story": LARGE}, "_meta": TRACE}
    task_id = stack.post("tools/call", arguments).result["taskId"]
    found = input_of(stack, task_id)
    assert found["arguments"]["story"].keys() == {POINTER}
    assert {name: found[name] for name in found if name != "arguments"} == {
        "answers": {},
        "client_can": ["form"],
        "schema": 2,
        "trace": TRACE,
    }


def test_answers_are_not_stored_beside_large_arguments(stack: Stack) -> None:
    """Also when they are larger: they have a limit of their own."""
    call = {"name": "book", "arguments": {"seats": 20, "name": "x" * 49_940}}
    asked = stack.post("tools/call", call)
    (key,) = asked.result["inputRequests"]
    answer = {"action": "accept", "content": {"hall": "y" * 49_950}}
    task_id = stack.repeat("tools/call", call, asked, {key: answer}).result["taskId"]
    found = input_of(stack, task_id)
    assert found["answers"] == {"hall": answer}
    assert found["arguments"]["name"].keys() == {POINTER}


def test_all_that_is_large_is_one_object_of_the_tasks_own(stack: Stack) -> None:
    task_id = stack.created("anything", {"a": LARGE, "b": LARGE, "c": [LARGE]})
    (put,) = [call for call in stack.calls.made if call.operation == "put_object"]
    assert put.arguments["Key"].startswith(f"anything/{task_id}/")
    operations = stack.calls.operations
    assert operations[-3:] == ["put_object", "put_item", "start_execution"]


@pytest.mark.parametrize(("more", "stored"), [(0, False), (1, True)])
def test_arguments_that_fit_are_not_stored(stack: Stack, more: int, stored: bool) -> None:
    """Nor is a client of S3 made."""
    task_id = stack.created("anything", {"story": ""})
    beside = len(json.dumps(input_of(stack, task_id), separators=(",", ":")))
    stack.calls.forget()
    stack.created("anything", {"story": "x" * (MAX_INLINE_INPUT_BYTES - beside + more)})
    assert ("put_object" in stack.calls.operations) is stored
    assert ("s3" in stack.calls.clients) is stored


def many(count: int) -> dict[str, str]:
    """Arguments that are too small to be pointed to, and too large together."""
    return {"text": "a"} | {f"a{n}": "x" * 50 for n in range(count)}


def test_a_function_gets_any_number_of_arguments(stack: Stack, payloads: PayloadStore) -> None:
    task_id = stack.created("anything", many(6_000))
    whole = payloads.resolve(input_of(stack, task_id), payload_prefix("anything", task_id))
    assert whole["arguments"] == many(6_000)


@pytest.fixture
def workflow(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> Stack:
    """The tool that takes anything, as a workflow."""
    tools = stack.catalogue.tools
    monkeypatch.setitem(tools, "anything", replace(tools["anything"], kind="workflow"))
    return stack


def test_a_workflow_gets_as_many_arguments_as_an_execution_takes(
    workflow: Stack, payloads: PayloadStore
) -> None:
    """Each has to be there by its name, for its states: one pointer to all of them helps none."""
    task_id = workflow.created("anything", many(2_500))
    (row,) = raw_rows()
    whole = payloads.resolve(json.loads(row["input"]["S"]), payload_prefix("anything", task_id))
    assert whole == {**many(2_500), "_meta": {"schema": 2}}
    assert len(row["input"]["S"]) > MAX_INLINE_INPUT_BYTES


def test_more_arguments_than_an_execution_takes_are_refused(workflow: Stack) -> None:
    answer = workflow.call("anything", many(6_000), headers=KEY)
    assert (answer.status, answer.code) == (400, PARAMS)
    assert f"{MAX_EXECUTION_INPUT_BYTES} bytes" in answer.error["message"]
    assert_nothing_left(workflow)


@pytest.mark.parametrize(
    ("length", "status"), [(MAX_EXECUTION_INPUT_BYTES - 20, 200), (MAX_EXECUTION_INPUT_BYTES, 400)]
)
def test_a_state_machine_that_existed_before_gets_what_an_execution_takes(
    stack: Stack, length: int, status: int
) -> None:
    """It knows of no pointers."""
    answer = stack.call("orders", {"item": "x" * length}, headers=KEY)
    assert answer.status == status
    assert "put_object" not in stack.calls.operations
    if status == 400:
        assert answer.code == PARAMS
        assert_nothing_left(stack)


def assert_nothing_left(stack: Stack) -> None:
    """No task, no quota, no key: the call may be repeated."""
    assert stack.rows == []
    assert places() == []
    items = real("dynamodb").scan(TableName=CALLERS)["Items"]
    assert not [item for item in items if item["pk"]["S"].startswith("key#")]
    assert "start_execution" not in stack.calls.operations


@pytest.mark.parametrize("code", ["SlowDown", "InternalError"])
def test_arguments_that_a_busy_s3_does_not_store_are_refused(stack: Stack, code: str) -> None:
    stack.calls.instead["put_object"] = refusing("s3", code)
    answer = stack.call("anything", {"story": LARGE}, headers=KEY)
    assert (answer.status, answer.code) == (503, INTERNAL)
    assert answer.headers["Retry-After"] == "1"
    assert_nothing_left(stack)
    del stack.calls.instead["put_object"]
    assert stack.created("anything", {"story": LARGE}, headers=KEY)


def test_an_argument_that_looks_like_a_pointer_is_an_argument(
    stack: Stack, payloads: PayloadStore
) -> None:
    """Clients know no keys; one who guesses gets what it has sent."""
    guessed = PayloadPointer(f"anything/c1-{'0' * 32}/{'0' * 32}", 0, 9).as_json()
    task_id = stack.created("anything", {"guessed": guessed, "story": LARGE})
    whole = payloads.resolve(input_of(stack, task_id), payload_prefix("anything", task_id))
    assert whole["arguments"] == {"guessed": guessed, "story": LARGE}


def test_small_arguments_need_no_bucket(stack: Stack) -> None:
    """In mid-deployment: a function's code is replaced before its environment."""
    del stack.environment["PAYLOADS_BUCKET"]
    stack.serve()
    task_id = stack.created("anything", {"story": "a"})
    assert stack.task(task_id)["status"] == "working"


def test_a_call_that_is_repeated_with_its_key_stores_nothing_more(stack: Stack) -> None:
    """A key stands for the arguments as they were sent, not for where they are."""
    task_id = stack.created("anything", {"story": LARGE}, headers=KEY)
    assert stack.created("anything", {"story": LARGE}, headers=KEY) == task_id
    assert stack.calls.operations.count("put_object") == 1


def test_a_start_that_is_repeated_carries_the_same_pointers(stack: Stack) -> None:
    """StartExecution is idempotent for the same name and input (API reference)."""
    started: list[str] = []

    def start(**arguments: Any) -> Any:
        started.append(arguments["input"])
        return refusing("stepfunctions", "ThrottlingException")()

    stack.calls.instead["start_execution"] = start
    stack.created("anything", {"story": LARGE})
    (row,) = raw_rows()
    task = stack.deployment.task_table.find(row["taskId"]["S"])
    assert task is not None
    assert task.reconcile_at is not None
    stack.deployment.reconciler.reconcile(task, task.reconcile_at)
    assert len(started) == 2
    assert started[0] == started[1] == row["input"]["S"]
