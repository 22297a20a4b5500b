"""Calls with the same idempotency key create one task, also when responses are lost."""

from __future__ import annotations

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any, Final

import pytest

from local.deployment import LocalStack
from local.gateway import Gateway
from tests.integration.support.client import Client, HttpResponse
from tests.integration.support.issuer import Issuer
from tests.integration.support.stacks import SCOPE
from tests.integration.support.traces import Traces

CALLS: Final = 200
BUSY: Final = (409, 429, 500, 502, 503, 504)
"""The arguments of the repeated call."""


@pytest.fixture(params=["emulator", "gateway"])
def url(request: pytest.FixtureRequest, guarded: LocalStack) -> str:
    if request.param == "emulator":
        return guarded.url
    gateway: Gateway = request.getfixturevalue("guarded_gateway")
    return gateway.url


def call(client: Client, key: str, tool: str, **arguments: Any) -> HttpResponse:
    """Send the call once."""
    params = {"name": tool, "arguments": arguments}
    body, headers = client.compose("tools/call", params, {"Idempotency-Key": key})
    return client.send(body, headers)


def call_until_created(client: Client, key: str, tool: str, **arguments: Any) -> str:
    """Repeat a call until a response names its task. Returns the task's id."""
    seen: list[object] = []
    deadline = time.monotonic() + 60
    for attempt in count():
        assert time.monotonic() < deadline, seen
        try:
            answer = call(client, key, tool, **arguments)
        except OSError as error:
            seen.append(error)
        else:
            if answer.status not in BUSY:
                task_id: str = answer.result["taskId"]
                return task_id
            seen.append((answer.status, answer.body))
        # Clients should wait longer each time, with jitter.
        time.sleep(random.uniform(0.2, 1) * min(2**attempt, 16) / 2)
    raise AssertionError


def test_two_hundred_calls_at_once_with_one_key_are_one_task(
    gateway: Gateway, stack: LocalStack, aws: Any
) -> None:
    """The local gateway throttles calls beyond its instances (429); the emulator would start a
    process for each call."""
    client = Client(gateway.url)
    traces = Traces(stack, aws)
    before = traces.rows(), traces.executions()
    together = threading.Barrier(CALLS)

    def one(_: int) -> str:
        together.wait(30)
        return call_until_created(client, "one", "refuse", reason="once")

    with ThreadPoolExecutor(CALLS) as pool:
        task_ids = set(pool.map(one, range(CALLS)))
    assert len(task_ids) == 1
    (task_id,) = task_ids
    assert client.end(task_id)["status"] == "completed"
    assert (traces.rows(), traces.executions()) == (before[0] + 1, before[1] + 1)


def test_a_key_counts_for_one_caller_and_one_call(url: str, issuer: Issuer) -> None:
    alice = Client(url, token=issuer.mint(scope=SCOPE, sub="alice"))
    bob = Client(url, token=issuer.mint(scope=SCOPE, sub="bob"))
    key = f"two {url}"
    first = call_until_created(alice, key, "note", text="a")
    assert call_until_created(alice, key, "note", text="a") == first
    assert call_until_created(bob, key, "note", text="a") != first
    refused = call(alice, key, "note", text="b")
    assert refused.status == 422
    assert refused.error["code"] == -32602
    assert alice.end(first)["status"] == "completed"
    assert call_until_created(alice, key, "note", text="a") == first, "as long as the task is kept"
