"""Large arguments, step outputs and results, from call to result (see cloud.py)."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import pytest
from moto import mock_aws

from mcp_tasks.payloads.s3_store import PayloadStore
from tests.paths import ROOT
from tests.unit.support.aws import PAYLOADS, raw_rows, real
from tests.unit.support.cloud import Cloud

TOOLS: Final = ROOT / "tests" / "integration" / "tools"
LIMIT: Final = 256 * 1024
"""Bytes that Step Functions carries (developer guide, "Quotas")."""
WRITE: Final = '''
from pydantic import BaseModel

from mcp_tasks import TaskContext, tool


class Page(BaseModel):
    text: str


@tool(task="required")
def write(pages: int, task: TaskContext) -> str:
    """Have so many pages written, one after the other."""
    return "".join(task.ask(f"Page {n}", Page, key=f"p{n}").text for n in range(pages))
'''
OTHERS: Final = f"echo/c1-{'0' * 32}/{'a' * 32}"


@pytest.fixture
def cloud(no_account: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Cloud]:
    """The tools whose values are large."""
    tools = tmp_path / "tools"
    shutil.copytree(TOOLS / "large_flow", tools / "large_flow")
    shutil.copy(TOOLS / "large.py", tools)
    (tools / "write.py").write_text(WRITE)
    (tmp_path / "bundle").mkdir()
    with mock_aws(config={"stepfunctions": {"execute_state_machine": True}}):
        yield Cloud(monkeypatch, tmp_path / "bundle", tools)


def ended(cloud: Cloud, tool: str, arguments: dict[str, Any], *answers: str) -> dict[str, Any]:
    """The task, when it is over; nothing of it was ever larger than Step Functions takes."""
    task_id = cloud.start(tool, arguments)
    for text in answers:
        assert cloud.settled(task_id)["status"] == "input_required"
        assert cloud.answer(task_id, text=text).status == 200
    task = cloud.settled(task_id)
    arn = cloud.row(task_id).state_machine_arn.replace(":stateMachine:", ":execution:")
    history = real("stepfunctions").get_execution_history(executionArn=f"{arn}:{task_id}")
    for event in history["events"]:
        for details in event.values():
            if isinstance(details, dict):
                assert max((len(str(value)) for value in details.values()), default=0) < LIMIT
    assert task["status"] == "completed", task
    return task


def objects() -> list[str]:
    """The keys in the bucket."""
    return [o["Key"] for o in real("s3").list_objects_v2(Bucket=PAYLOADS).get("Contents", ())]


def test_large_values_go_from_step_to_step(cloud: Cloud) -> None:
    """Its author did nothing for it: a Choice sees a small member beside a large one, a Map goes
    through a list, and steps get all of it."""
    text = "x" * 300_000
    arguments = {"text": text, "times": 4, "parts": 5, "size": 100_000}
    task = ended(cloud, "large_flow", arguments)
    output = task["result"]["structuredContent"]
    assert output["text"] == text * 4
    texts = [f"{n}:" + f"{n:>10}" * 10_000 for n in range(5)]
    assert output["digests"] == [sha256(text.encode()).hexdigest() for text in texts]
    (row,) = raw_rows()
    assert len(json.dumps(row)) < 110_000
    # The arguments, what the first step made, five parts, the last step's output, and the result.
    assert len(objects()) == 9
    assert all(key.startswith(f"large_flow/{task['taskId']}/") for key in objects())


def test_a_large_result_of_a_function_is_stored_once(cloud: Cloud) -> None:
    task = ended(cloud, "fill", {"size": 1_000_000})
    ((block,),) = [task["result"]["content"]]
    assert len(block["text"]) == 1_000_000
    assert len(objects()) == 1


def test_a_worker_loads_all_that_its_tool_is_given(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How much memory it has is for its tool's author to say; other functions have a most."""
    monkeypatch.setattr(PayloadStore.resolve, "__defaults__", (1000,))
    value = {"text": "x" * 300_000}
    assert ended(cloud, "echo", {"value": value})["result"]["structuredContent"] == value


def test_answers_add_up_to_more_than_step_functions_carries(cloud: Cloud) -> None:
    """The function gets all of them at each run; what is carried from run to run stays small."""
    pages = [letter * 49_000 for letter in "abcdefg"]
    task = ended(cloud, "write", {"pages": 7}, *pages)
    ((block,),) = [task["result"]["content"]]
    assert block["text"] == "".join(pages)


def test_what_is_small_is_never_stored(cloud: Cloud) -> None:
    ended(cloud, "fill", {"size": 1000})
    ended(cloud, "write", {"pages": 3}, *["x" * 1000] * 3)
    ended(cloud, "large_flow", {"text": "x", "times": 1, "parts": 2, "size": 10})
    assert objects() == []


@pytest.mark.parametrize("beside", ["", "x" * 300_000], ids=["small", "large"])
def test_a_client_s_pointer_to_what_is_another_task_s_is_a_value(cloud: Cloud, beside: str) -> None:
    """Even where it is the same tool's: there the worker's role would let it read."""
    real("s3").put_object(Bucket=PAYLOADS, Key=OTHERS, Body=b'"secret"')
    value = {
        "forged": {"mcp-tasks/payload": {"key": OTHERS, "offset": 0, "size": 8}},
        "beside": beside,
    }
    task = ended(cloud, "echo", {"value": value})
    assert task["result"]["structuredContent"] == value


def test_what_is_gone_fails_the_task_that_it_belongs_to(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the lifecycle rule had come too early."""
    write = real("s3").put_object
    monkeypatch.setattr(
        real("s3"), "put_object", lambda **call: write(**{**call, "Key": f"{call['Key']}x"})
    )
    task = cloud.settled(cloud.start("echo", {"value": {"text": "x" * 300_000}}))
    assert task["status"] == "failed"
    assert task["error"]["message"].startswith("The tool failed: PayloadNotFound (reference ")
