"""A `tools/call` that is repeated with its idempotency key is one task, whatever happens."""

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
from tests.integration.support.client import Answer, Client
from tests.integration.support.issuer import Issuer
from tests.integration.support.stacks import SCOPE
from tests.integration.support.traces import Traces

CALLS: Final = 200
BUSY: Final = (409, 429, 500, 502, 503, 504)
"""What a client repeats."""


@pytest.fixture(params=["emulator", "gateway"])
def url(request: pytest.FixtureRequest, guarded: LocalStack) -> str:
    if request.param == "emulator":
        return guarded.url
    gateway: Gateway = request.getfixturevalue("guarded_gateway")
    return gateway.url


def call(client: Client, key: str, tool: str, **arguments: Any) -> Answer:
    """One try."""
    params = {"name": tool, "arguments": arguments}
    body, headers = client.compose("tools/call", params, {"Idempotency-Key": key})
    return client.send(body, headers)


def insist(client: Client, key: str, tool: str, **arguments: Any) -> str:
    """Repeat a call until there is a task, also when an answer is lost; returns its id."""
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
        # As clients should: later each time, and not all at once.
        time.sleep(random.uniform(0.2, 1) * min(2**attempt, 16) / 2)
    raise AssertionError


def test_two_hundred_calls_at_once_with_one_key_are_one_task(
    gateway: Gateway, stack: LocalStack, aws: Any
) -> None:
    """Through the local gateway, which refuses what is too many for its instances (429); the
    emulator would start a process for each."""
    client = Client(gateway.url)
    traces = Traces(stack, aws)
    before = traces.rows(), traces.executions()
    together = threading.Barrier(CALLS)

    def one(_: int) -> str:
        together.wait(30)
        return insist(client, "one", "refuse", reason="once")

    with ThreadPoolExecutor(CALLS) as pool:
        task_ids = set(pool.map(one, range(CALLS)))
    assert len(task_ids) == 1
    (task_id,) = task_ids
    assert client.end(task_id)["status"] == "completed"
    assert (traces.rows(), traces.executions()) == (before[0] + 1, before[1] + 1)


def test_a_key_is_its_callers_and_its_calls(url: str, issuer: Issuer) -> None:
    alice = Client(url, token=issuer.mint(scope=SCOPE, sub="alice"))
    bob = Client(url, token=issuer.mint(scope=SCOPE, sub="bob"))
    key = f"two {url}"
    first = insist(alice, key, "note", text="a")
    assert insist(alice, key, "note", text="a") == first
    assert insist(bob, key, "note", text="a") != first
    refused = call(alice, key, "note", text="b")
    assert refused.status == 422
    assert refused.error["code"] == -32602
    assert alice.end(first)["status"] == "completed"
    assert insist(alice, key, "note", text="a") == first, "as long as the task is kept"
