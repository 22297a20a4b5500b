"""Arguments, step outputs and results above the limits of DynamoDB, Step Functions and Lambda."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from hashlib import sha256
from typing import Any, Final

import pytest

from local.deployment import LocalStack
from tests.integration.support.aws import listed
from tests.integration.support.client import Client, accept
from tests.integration.support.traces import Traces
from tests.integration.tools.large import lines

LIMIT: Final = 256 * 1024
"""The largest input or output of a state (Step Functions developer guide, "Quotas")."""
ROW: Final = 400_000
"""The largest item (DynamoDB developer guide, "Quotas")."""


def check_sizes(traces: Traces, aws: Any, task_id: str) -> None:
    """Check the task's row and states against AWS's limits: the emulator has none."""
    row = traces.row(task_id)
    assert len(json.dumps(row)) < ROW
    arn = row["stateMachineArn"]["S"].replace(":stateMachine:", ":execution:")
    about = {"executionArn": f"{arn}:{task_id}"}
    for event in listed(aws("stepfunctions"), "get_execution_history", "events", **about):
        for details in event.values():
            if isinstance(details, dict):
                texts = [value for value in details.values() if isinstance(value, str)]
                assert max((len(text.encode()) for text in texts), default=0) <= LIMIT


def completed(client: Client, task_id: str) -> dict[str, Any]:
    task = client.end(task_id)
    assert task["status"] == "completed", task
    result: dict[str, Any] = task["result"]
    return result


def test_large_arguments_reach_the_tool(client: Client, traces: Traces, aws: Any) -> None:
    text = lines(600_000)
    task_id = client.start("count_lines", text=text)
    assert completed(client, task_id)["structuredContent"] == len(text.splitlines())
    check_sizes(traces, aws, task_id)


def test_steps_pass_each_other_large_values(client: Client, traces: Traces, aws: Any) -> None:
    """1 MB to the next step, and 40 times 100 KB out of a Map, without code of the author's."""
    text = lines(10_000)
    task_id = client.start("large_flow", text=text, times=100, parts=40, size=100_000)
    output = completed(client, task_id)["structuredContent"]
    assert output["text"] == text * 100
    parts = [f"{n}:" + f"{n:>10}" * 10_000 for n in range(40)]
    assert output["digests"] == [sha256(part.encode()).hexdigest() for part in parts]
    check_sizes(traces, aws, task_id)


def test_answers_that_add_up_reach_the_tool(client: Client, traces: Traces, aws: Any) -> None:
    """On AWS each answer fits into a state's input, but all of them together do not.

    The emulator takes more, and does not say what a function was called with.
    """
    pages = [lines(46_000 - n) for n in range(6)]
    assert sum(map(len, pages)) > LIMIT
    task_id = client.start("gather", pages=len(pages))
    for n, page in enumerate(pages):
        key = client.until_asked(task_id, f"page{n}")[f"page{n}"]
        assert "result" in client.update(task_id, {key: accept(text=page)}).message
    assert completed(client, task_id)["structuredContent"] == pages
    check_sizes(traces, aws, task_id)


def test_a_result_of_5_mb_is_in_the_response(client: Client, traces: Traces, aws: Any) -> None:
    task_id = client.start("fill", size=5_000_000)
    assert completed(client, task_id)["content"] == [{"type": "text", "text": lines(5_000_000)}]
    check_sizes(traces, aws, task_id)


def test_a_result_of_50_mb_is_a_link(client: Client, traces: Traces, aws: Any) -> None:
    task_id = client.start("fill", size=50_000_000)
    text, link = completed(client, task_id)["content"]
    assert text["type"] == "text"
    assert (link["type"], link["mimeType"]) == ("resource_link", "application/json")
    with urllib.request.urlopen(link["uri"], timeout=60) as response:
        assert response.headers["Content-Type"] == "application/json"
        content = response.read()
    assert len(content) == link["size"]
    whole = {"content": [{"type": "text", "text": lines(50_000_000)}]}
    assert json.loads(content) == whole
    check_sizes(traces, aws, task_id)


def test_a_link_is_good_for_one_result_only(client: Client) -> None:
    links = [
        completed(client, client.start("fill", size=7_000_000))["content"][1]["uri"]
        for _ in range(2)
    ]
    (path, query), (other, _) = (link.split("?", 1) for link in links)
    for url in (path, f"{other}?{query}"):
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(url, timeout=60)
        with refused.value:
            assert refused.value.code == 403


def test_objects_have_their_tasks_prefix(client: Client, stack: LocalStack, aws: Any) -> None:
    task_id = client.start("fill", size=1_000_000)
    completed(client, task_id)
    about = {"Bucket": stack.outputs["PayloadsBucket"], "Prefix": f"fill/{task_id}/"}
    (stored,) = listed(aws("s3"), "list_objects_v2", "Contents", **about)
    assert stored["Size"] > 1_000_000
