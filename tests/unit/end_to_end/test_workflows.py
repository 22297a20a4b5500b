"""Tasks from call to result, all functions in one process (see cloud.py)."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from moto import mock_aws

from tests.paths import PLATFORM_TOOLS
from tests.unit.conftest import EXAMPLE_TOOLS
from tests.unit.support.cloud import Cloud
from tests.unit.support.stack import LOGGER

CSV: Final = "colour,n\n" + "".join(f"{'crimson' if n % 3 else 'blue'},{n}\n" for n in range(120))


@pytest.fixture
def deploy(
    no_account: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Callable[[Path], Cloud]]:
    """Deploy a tools folder."""
    with mock_aws(config={"stepfunctions": {"execute_state_machine": True}}):
        yield lambda tools: Cloud(monkeypatch, tmp_path, tools)


@pytest.fixture
def cloud(deploy: Callable[[Path], Cloud]) -> Cloud:
    """The platform's own tools."""
    return deploy(PLATFORM_TOOLS)


# a function tool


def test_a_function_runs_as_a_task(cloud: Cloud) -> None:
    arguments = {"monthly": 100, "years": 10, "share_of_stocks": 0.5, "runs": 100}
    task = cloud.settled(cloud.start("estimate_savings", arguments))
    assert task["status"] == "completed"
    assert task["result"]["structuredContent"]["paid_in"] == 12_000
    assert json.loads(task["result"]["content"][0]["text"]) == task["result"]["structuredContent"]


def test_a_function_that_asks_runs_on_with_the_answer(cloud: Cloud) -> None:
    task_id = cloud.start("estimate_savings", {"monthly": 100, "years": 10, "runs": 100})
    task = cloud.settled(task_id)
    assert task["status"] == "input_required"
    ((_, request),) = task["inputRequests"].items()
    assert "share_of_stocks" in request["params"]["requestedSchema"]["properties"]

    assert cloud.answer(task_id, share_of_stocks=0.5).status == 200
    ended = cloud.settled(task_id)
    assert ended["status"] == "completed"

    given = {"monthly": 100, "years": 10, "share_of_stocks": 0.5, "runs": 100}
    same = cloud.settled(cloud.start("estimate_savings", given))
    assert ended["result"] == same["result"], "an answer is as good as an argument"


def test_a_declined_question_ends_the_call_as_a_tool_error(cloud: Cloud) -> None:
    task_id = cloud.start("estimate_savings", {"monthly": 100, "years": 10, "runs": 100})
    cloud.settled(task_id)
    cloud.answer(task_id, "decline")
    task = cloud.settled(task_id)
    assert task["status"] == "completed"
    assert task["result"]["isError"] is True


def test_a_task_whose_client_cannot_be_asked_fails_and_says_what_it_lacks(cloud: Cloud) -> None:
    capabilities: dict[str, Any] = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
    arguments = {"monthly": 100, "years": 10, "runs": 100}
    task = cloud.settled(cloud.start("estimate_savings", arguments, capabilities=capabilities))
    assert task["status"] == "failed"
    assert task["error"]["code"] == -32021
    assert task["error"]["data"] == {"requiredCapabilities": {"elicitation": {"form": {}}}}


def test_a_cancelled_task_stays_cancelled(cloud: Cloud) -> None:
    """Whatever comes later: an answer under way, another cancel."""
    task_id = cloud.start("estimate_savings", {"monthly": 100, "years": 10, "runs": 100})
    responses = {key: {"action": "decline"} for key in cloud.settled(task_id)["inputRequests"]}
    cloud.post("tasks/cancel", {"taskId": task_id})
    cancelled = cloud.get(task_id)
    assert cancelled["status"] == "cancelled"
    cloud.post("tasks/update", {"taskId": task_id, "inputResponses": responses})
    cloud.post("tasks/cancel", {"taskId": task_id})
    assert cloud.get(task_id) == cancelled


def test_a_function_that_runs_as_a_task_or_within_the_request_gives_the_same_result(
    cloud: Cloud,
) -> None:
    """tasks.md: the result is what the call would have returned."""
    arguments = {"monthly": 50, "years": 5, "share_of_stocks": 0.25, "runs": 100}
    task = cloud.settled(cloud.start("estimate_savings", arguments))
    within = cloud.post(
        "tools/call", {"name": "estimate_savings", "arguments": arguments}, capabilities={}
    ).result
    within.pop("_meta")
    assert task["result"] == within


# a workflow tool


def test_a_workflow_runs_from_call_to_result(cloud: Cloud) -> None:
    task_id = cloud.start("tally_columns", {"csv": CSV, "chunk_rows": 50})
    task = cloud.settled(task_id)
    assert task["status"] == "input_required"
    ((key, request),) = task["inputRequests"].items()
    assert key.startswith("publish-")
    assert "120 rows and 2 columns" in request["params"]["message"]
    assert "colour" in request["params"]["message"]
    assert task["statusMessage"] == "merged 3 chunks"

    assert cloud.answer(task_id, show_values=True, title="Colours").status == 200
    task = cloud.settled(task_id)
    assert task["status"] == "completed"
    tally = task["result"]["structuredContent"]
    assert (tally["title"], tally["rows"]) == ("Colours", 120)
    colour, n = tally["columns"]
    assert colour["most_frequent"] == [
        {"value": "crimson", "count": 80},
        {"value": "blue", "count": 40},
    ]
    assert n["distinct"] == 120


@pytest.mark.parametrize(
    ("action", "content"), [("decline", {}), ("cancel", {}), ("accept", {"show_values": False})]
)
def test_a_workflow_shows_no_values_without_consent(
    cloud: Cloud, action: str, content: dict[str, Any]
) -> None:
    task_id = cloud.start("tally_columns", {"csv": CSV})
    cloud.settled(task_id)
    cloud.answer(task_id, action, **content)
    task = cloud.settled(task_id)
    assert task["status"] == "completed"
    assert "crimson" not in json.dumps(task)


def test_a_workflow_of_one_chunk_runs(cloud: Cloud) -> None:
    """JSONata makes a single value of an array of one, unless told otherwise."""
    task_id = cloud.start("tally_columns", {"csv": "a\n1\n", "chunk_rows": 50})
    cloud.settled(task_id)
    cloud.answer(task_id, show_values=True)
    assert cloud.settled(task_id)["result"]["structuredContent"]["rows"] == 1


def test_a_tool_error_of_a_step_is_the_tools_error(cloud: Cloud) -> None:
    task = cloud.settled(cloud.start("tally_columns", {"csv": "a,b\n1\n"}))
    assert task["status"] == "completed"
    assert task["result"]["isError"] is True
    assert "Row 2 has 1 cells" in task["result"]["content"][0]["text"]


# asked first


def test_what_was_asked_before_the_task_is_known_to_it(deploy: Callable[[Path], Cloud]) -> None:
    """The function that asked first is asked again within the task, under the same key."""
    cloud = deploy(EXAMPLE_TOOLS)
    params = {"name": "book", "arguments": {"seats": 20}}
    asked = cloud.post("tools/call", params).result
    assert asked["resultType"] == "input_required"
    made = cloud.post(
        "tools/call",
        {
            **params,
            "requestState": asked["requestState"],
            "inputResponses": {"hall": {"action": "accept", "content": {"hall": "great"}}},
        },
    ).result
    assert made["resultType"] == "task"
    task = cloud.settled(made["taskId"])
    assert task["status"] == "completed"
    assert task["result"]["content"][0]["text"] == "20 seats in great"


# what is written down


def test_a_trace_is_logged_by_every_function_that_works_for_it(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEP-414: the log lines of one call are found by its trace."""
    log = io.StringIO()
    monkeypatch.setattr(LOGGER.registered_handler, "stream", log)
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    params = {
        "name": "estimate_savings",
        "arguments": {"monthly": 1, "years": 1, "share_of_stocks": 0.5, "runs": 100},
        "_meta": {"traceparent": parent},
    }
    task_id = cloud.post("tools/call", params).result["taskId"]
    cloud.settled(task_id)
    cloud.get(task_id)

    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    traced = [line["message"] for line in lines if line.get("traceparent") == parent]
    assert sorted(traced) == ["audit", "request answered", "step ran"], (
        "the call and its run, and not the poll"
    )


def test_no_argument_answer_result_or_token_is_logged(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From call to result, through all four functions."""
    log = io.StringIO()
    monkeypatch.setattr(LOGGER.registered_handler, "stream", log)
    secret = "hunter2"
    task_id = cloud.start("tally_columns", {"csv": f"name\n{secret}\n{secret}\n"})
    cloud.settled(task_id)
    (ask,) = cloud.row(task_id).asks.values()
    cloud.answer(task_id, show_values=True, title=secret)
    assert secret in json.dumps(cloud.settled(task_id))
    cloud.post("tools/call", {"name": "hello", "arguments": {"name": secret}})
    cloud.post("tools/call", {"name": "hello", "arguments": {"name": [secret]}})
    cloud.post("tools/call", {"name": secret, "arguments": {}})
    cloud.start("estimate_savings", {"monthly": 271828.18, "years": 10, "runs": 100})

    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    assert {"request answered", "step ran", "ask handled", "execution ended"} <= {
        line["message"] for line in lines
    }
    assert any(line.get("task_id") == task_id for line in lines)
    assert secret not in log.getvalue()
    assert "271828" not in log.getvalue()
    assert ask.token not in log.getvalue()


def test_keys_of_one_request_are_not_logged_with_the_next(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = io.StringIO()
    monkeypatch.setattr(LOGGER.registered_handler, "stream", log)
    cloud.start("estimate_savings", {"monthly": 1, "years": 1, "runs": 100})
    log.truncate(0)
    log.seek(0)
    cloud.post("server/discover", {})
    lines = [json.loads(line) for line in log.getvalue().splitlines() if "discover" in line]
    assert len(lines) == 1
    assert "tool" not in lines[0]
    assert "task_id" not in lines[0]


# crashes


def test_a_crash_is_a_failed_task_that_tells_nothing(
    deploy: Callable[[Path], Cloud], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "crash.py").write_text(
        "from mcp_tasks import tool\n\n"
        "@tool(task='required')\n"
        "def crash(secret: str) -> str:\n"
        "    '''Crash.'''\n"
        "    raise KeyError(secret)\n"
    )
    cloud = deploy(tools)
    task = cloud.settled(cloud.start("crash", {"secret": "hunter2"}))
    assert task["status"] == "failed"
    reference = task["error"]["data"]["reference"]
    message = f"The tool failed: KeyError (reference {reference})"
    assert task["error"] == {"code": -32603, "message": message, "data": {"reference": reference}}
    assert task["statusMessage"] == message
    logged = [vars(each) for each in caplog.records if "reference" in vars(each)]
    assert [(each["reference"], each["exception"]) for each in logged] == [(reference, "KeyError")]
    assert logged[0]["frames"] == ["tools/crash.py:6 crash"]
    assert "hunter2" not in json.dumps(task)


def test_the_example_tools_run(deploy: Callable[[Path], Cloud]) -> None:
    cloud = deploy(EXAMPLE_TOOLS)
    counted = cloud.settled(cloud.start("count", {"upto": 4}))
    assert counted["result"]["structuredContent"] == {"total": 10}
    reviewed = cloud.settled(cloud.start("review", {"text": "two words"}))
    assert reviewed["result"]["structuredContent"] == {"words": 2}
    refused = cloud.settled(cloud.start("review", {"text": "  "}))
    assert refused["result"]["isError"] is True
    assert refused["result"]["content"][0]["text"] == "There is nothing to review"
