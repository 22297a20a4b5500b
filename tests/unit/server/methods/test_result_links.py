"""Results that are too large for a row: whole in `tasks/get`, up to what a function returns.

Lambda developer guide, "Quotas": 6 MB for an answer that comes in one piece, with all its escapes.
"""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from mcp_tasks.payloads.pointer import PayloadPointer, payload_prefix
from mcp_tasks.payloads.s3_store import PayloadStore
from mcp_tasks.server.http.api_gateway import to_api_gateway
from mcp_tasks.server.methods.result_links import (
    MAX_LINK_SECONDS,
    MAX_POLLED_RESULT_BYTES,
    ResultLinks,
)
from mcp_tasks.server.response_channel import MAX_RESPONSE_BYTES, response_size
from mcp_tasks.tasks.state import Status
from mcp_tasks.tasks.task import Task, now_ms
from tests.unit.support.aws import Calls, refusing
from tests.unit.support.example_task import HOUR, ID, NOW, a_task
from tests.unit.support.stack import Stack

INTERNAL: Final = -32603
LAMBDA: Final = 6_291_556
"""Bytes that Lambda takes of a function: 6 MB (`RequestEntityTooLargeException` names them)."""
GONE: Final = {
    "content": [{"type": "text", "text": "The result is not there any more"}],
    "isError": True,
}
DAY: Final = 24 * HOUR
FILLINGS: Final = {"letters": "x", "quotes": '"', "backslashes": "\\", "cyrillic": "ж"}

each_filling = pytest.mark.parametrize("letter", FILLINGS.values(), ids=FILLINGS)


def result_of(size: int, letter: str = "x") -> dict[str, Any]:
    """A result that takes `size` bytes of a function's return value."""
    result = {"content": [{"type": "text", "text": ""}]}
    empty = response_size(json.dumps(result))
    letters = (size - empty) // (response_size(json.dumps(letter)) - response_size('""'))
    result["content"][0]["text"] = letter * letters
    rest = size - response_size(json.dumps(result))
    result["content"][0]["text"] += "x" * rest
    assert response_size(json.dumps(result)) == size
    return result


def stored(payloads: PayloadStore, result: Any, **changes: Any) -> Task:
    """A task with a result in S3."""
    payload = payloads.put(payload_prefix("count", ID), json.dumps(result))
    return a_task(status=Status.COMPLETED, reconcile_at=None, result_payload=payload, **changes)


@pytest.fixture
def results(payloads: PayloadStore) -> ResultLinks:
    return ResultLinks(payloads)


def link_in(result: dict[str, Any] | None) -> dict[str, Any] | None:
    """The link in a result that says where the result is; None for the result itself."""
    assert result is not None
    links = [block for block in result["content"] if block["type"] == "resource_link"]
    return links[0] if links else None


# whole, or a link


@pytest.mark.parametrize("status", Status)
def test_a_task_without_a_stored_result_is_as_it_is(
    results: ResultLinks, aws: Calls, status: Status
) -> None:
    """And no client of S3 is made."""
    task = a_task(status=status)
    assert results.with_result(task, NOW) is task
    assert aws.clients == []


@each_filling
def test_a_result_of_max_bytes_is_returned_whole(
    results: ResultLinks, payloads: PayloadStore, letter: str
) -> None:
    most = 50_000
    largest, larger = result_of(most, letter), result_of(most + 1, letter)
    assert results.with_result(stored(payloads, largest), NOW, most).result == largest
    assert link_in(results.with_result(stored(payloads, larger), NOW, most).result)


def test_a_result_stored_in_utf8_is_measured_as_it_is_returned(
    results: ResultLinks, payloads: PayloadStore
) -> None:
    """Two bytes in S3 are seven in an answer."""
    result = result_of(50_001, "ж")
    text = json.dumps(result, ensure_ascii=False, separators=(",", ":"))
    assert len(text.encode()) < 20_000
    payload = payloads.put(payload_prefix("count", ID), text)
    task = a_task(status=Status.COMPLETED, result_payload=payload)
    assert results.with_result(task, NOW, 50_001).result == result
    assert link_in(results.with_result(task, NOW, 50_000).result)


def test_a_result_that_is_surely_too_large_is_not_loaded(
    results: ResultLinks, payloads: PayloadStore, aws: Calls
) -> None:
    """50 MB would not fit into the function, either."""
    task = stored(payloads, result_of(50_000))
    aws.forget()
    assert link_in(results.with_result(task, NOW, 1_000).result)
    assert aws.operations == ["generate_presigned_url"]


def test_a_link_leads_to_the_whole_result(results: ResultLinks, payloads: PayloadStore) -> None:
    """server/tools.mdx, "Resource Links"; and a text for clients that do not follow it."""
    result = result_of(50_000)
    task = stored(payloads, result)
    told = results.with_result(task, NOW, 1_000).result
    assert told is not None
    assert told.keys() == {"content"}
    text, link = told["content"]
    assert task.result_payload is not None
    size = task.result_payload.size
    assert {**link, "uri": None} == {
        "type": "resource_link",
        "uri": None,
        "name": "result.json",
        "description": "The whole CallToolResult",
        "mimeType": "application/json",
        "size": size,
    }
    assert urlsplit(link["uri"]).path.endswith(task.result_payload.key)
    assert json.loads(payloads.get(task.result_payload)) == result
    assert str(size) in text["text"]
    assert "2023-11-14T23:13:20.000Z" in text["text"], "until when it can be asked for"


@pytest.mark.parametrize(
    ("ttl", "now", "seconds"),
    [
        (HOUR, NOW, 3600),
        (HOUR, NOW + HOUR - 1500, 1),
        (HOUR, NOW + HOUR - 1, 1),
        (7 * DAY, NOW, MAX_LINK_SECONDS),
        (30 * DAY, NOW, MAX_LINK_SECONDS),
        (30 * DAY, NOW + 29 * DAY, 24 * 3600),
    ],
)
def test_a_link_is_good_for_as_long_as_the_task_and_seven_days_at_most(
    results: ResultLinks, payloads: PayloadStore, aws: Calls, ttl: int, now: int, seconds: int
) -> None:
    """S3 user guide, "Download and upload objects with presigned URLs"."""
    task = stored(payloads, [1], ttl_ms=ttl)
    aws.forget()
    assert link_in(results.with_result(task, now, 1).result)
    assert [call.arguments["ExpiresIn"] for call in aws.made] == [seconds]


def test_each_answer_has_a_link_of_its_own(results: ResultLinks, payloads: PayloadStore) -> None:
    """The row holds none: it would be no good by the time that it is read."""
    task = stored(payloads, [1])
    first, later = (results.with_result(task, NOW + age, 1) for age in (0, HOUR // 2))
    assert link_in(first.result) != link_in(later.result)


def gone() -> Task:
    """A task whose result was removed."""
    payload = PayloadPointer(f"{payload_prefix('count', ID)}/{'0' * 32}", 0, 9)
    return a_task(status=Status.COMPLETED, reconcile_at=None, result_payload=payload)


def test_a_missing_result_is_reported_in_the_result(results: ResultLinks) -> None:
    """By a result: the task has ended, and nothing else that is asked for is to fail for it."""
    task = results.with_result(gone(), NOW)
    assert (task.status, task.result) == (Status.COMPLETED, GONE)


@pytest.mark.usefixtures("payloads")
def test_a_busy_s3_is_not_taken_for_a_missing_result(results: ResultLinks, aws: Calls) -> None:
    aws.instead["get_object"] = refusing("s3", "SlowDown")
    with pytest.raises(ClientError, match="SlowDown"):
        results.with_result(gone(), NOW)


# tasks/get


def completed(stack: Stack, result: Any) -> str:
    """A task that has ended with a result that is in S3."""
    task_id = stack.created("count", {"upto": 3})
    payload = stack.deployment.payloads.put(payload_prefix("count", task_id), json.dumps(result))
    stack.deployment.task_table.complete(task_id, payload, now_ms())
    stack.calls.forget()
    stack.serve()
    return task_id


@pytest.mark.usefixtures("payloads")
@each_filling
def test_the_largest_result_that_is_polled_is_one_that_lambda_carries(
    stack: Stack, letter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """5 MB of text as well as what is mostly escapes."""
    sizes: list[int] = []

    def way(server: Any, http: Any) -> Any:
        response = to_api_gateway(server.answer(http))
        sizes.append(len(json.dumps(response).encode()))
        return response

    stack.way = way
    result = result_of(MAX_POLLED_RESULT_BYTES, letter)
    task = stack.task(completed(stack, result), request_id="1" * 100)
    assert task["result"] == {"resultType": "complete", **result}
    assert MAX_POLLED_RESULT_BYTES < sizes[-1] <= MAX_RESPONSE_BYTES + 2000 < LAMBDA

    link = link_in(
        stack.task(completed(stack, result_of(MAX_POLLED_RESULT_BYTES + 1, letter)))["result"]
    )
    assert link is not None
    assert sizes[-1] < 10_000


@pytest.mark.usefixtures("payloads")
def test_a_poll_of_a_stored_result_is_a_read_of_each(stack: Stack) -> None:
    task_id = completed(stack, result_of(1000))
    stack.task(task_id)
    assert stack.calls.operations == ["get_item", "get_object"]
    assert stack.calls.clients == ["dynamodb", "s3"]


@pytest.mark.usefixtures("payloads")
def test_a_poll_of_a_missing_result_is_no_error_of_the_poll(stack: Stack) -> None:
    """Not one that may be repeated, and not "Task not found": there is such a task."""
    task_id = completed(stack, [1])
    stack.calls.instead["get_object"] = refusing("s3", "NoSuchKey")
    task = stack.task(task_id)
    assert (task["status"], task["result"]) == (
        "completed",
        {"resultType": "complete", **GONE},
    )


@pytest.mark.usefixtures("payloads")
@pytest.mark.parametrize("code", ["SlowDown", "InternalError"])
def test_a_poll_while_s3_is_busy_may_be_repeated(stack: Stack, code: str) -> None:
    task_id = completed(stack, result_of(1000))
    stack.calls.instead["get_object"] = refusing("s3", code)
    answer = stack.post("tasks/get", {"taskId": task_id})
    assert (answer.status, answer.code) == (503, INTERNAL)
    assert answer.headers["Retry-After"] == "1"
    del stack.calls.instead["get_object"]
    assert stack.task(task_id)["status"] == "completed"


@pytest.mark.usefixtures("payloads")
def test_a_poll_waits_for_s3_in_api_gateways_time(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of its 29 seconds, some are the row's. Later, the answer would be API Gateway's own: 504."""
    made: dict[str, Any] = {}
    bodies: list[str] = []
    make = stack.calls.client

    def client(service: str, config: Any) -> Any:
        made[service] = config
        return make(service)

    def breaks_off() -> bytes:
        bodies.append("read")
        raise ReadTimeoutError(endpoint_url="https://s3")

    monkeypatch.setattr(stack.calls, "client", client)
    task_id = completed(stack, result_of(1000))
    body = SimpleNamespace(read=breaks_off)
    stack.calls.instead["get_object"] = lambda **_: {"Body": body}
    answer = stack.post("tasks/get", {"taskId": task_id})
    assert (answer.status, answer.code) == (503, INTERNAL)
    assert bodies == ["read"], "and what breaks off is not read again"
    attempts = made["s3"].retries["total_max_attempts"]
    seconds = attempts * (made["s3"].connect_timeout + made["s3"].read_timeout)
    assert seconds + made["s3"].read_timeout < 20


@pytest.mark.usefixtures("payloads")
def test_a_stored_result_is_for_its_caller_alone(stack: Stack) -> None:
    """Nor does anybody else learn that there is one."""
    task_id = completed(stack, result_of(1000))
    other = stack.post("tasks/get", {"taskId": task_id}, user_arn="arn:aws:iam::1:user/mallory")
    assert other.code == -32602
    assert "get_object" not in stack.calls.operations
