"""A `tools/call` that is repeated with its idempotency key is one task, whatever happens."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final

import pytest

from infra.local.deployment import LocalStack
from infra.local.gateway import Gateway
from tests.integration.client import Answer, Client
from tests.integration.conftest import SCOPE
from tests.integration.issuer import Issuer
from tests.integration.traces import Traces

CALLS: Final = 200
BUSY: Final = (409, 429, 500, 502, 503, 504)
"""What a client repeats: the emulator has few workers, and refuses what is too many for them."""


@pytest.fixture(params=["emulator", "gateway"])
def url(request: pytest.FixtureRequest, guarded: LocalStack) -> str:
    if request.param == "emulator":
        return guarded.url
    gateway: Gateway = request.getfixturevalue("guarded_gateway")
    return gateway.url


def call(client: Client, key: str, **arguments: Any) -> Answer:
    """One try."""
    params = {"name": "note", "arguments": arguments}
    body, headers = client.compose("tools/call", params, {"Idempotency-Key": key})
    return client.send(body, headers)


def insist(client: Client, key: str, **arguments: Any) -> str:
    """Repeat a call until there is a task, also when an answer is lost; returns its id."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        with suppress(OSError):
            answer = call(client, key, **arguments)
            if answer.status not in BUSY:
                task_id: str = answer.result["taskId"]
                return task_id
        time.sleep(0.2)
    raise AssertionError("there is no task after two minutes")


def test_two_hundred_calls_at_once_with_one_key_are_one_task(
    url: str, guarded: LocalStack, issuer: Issuer, aws: Any
) -> None:
    client = Client(url, token=issuer.mint(scope=SCOPE, sub="hasty"))
    client.request("tools/list")
    traces = Traces(guarded, aws)
    before = traces.rows(), traces.executions()
    together = threading.Barrier(CALLS)

    def one(_: int) -> str:
        together.wait()
        return insist(client, f"one {url}", text="once")

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
    first = insist(alice, key, text="a")
    assert insist(alice, key, text="a") == first
    assert insist(bob, key, text="a") != first
    refused = call(alice, key, text="b")
    assert refused.status == 422
    assert refused.error["code"] == -32602
    assert alice.end(first)["status"] == "completed"
    assert insist(alice, key, text="a") == first, "as long as the task is kept"
