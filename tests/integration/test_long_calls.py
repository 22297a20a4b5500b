"""Calls that take longer than a connection lasts, by clients of the handshake revisions.

The clients wait most of the time, so all of them wait at the same time.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final

import pytest

from local.deployment import LocalStack
from local.gateway import Gateway
from tests.integration.support.foreign_clients import ForeignClient, Observed

SECONDS: Final = 32
"""API Gateway ends a response after 29 seconds, and the TypeScript SDK a request after 60."""
CALLS: Final = {
    "quiet": {"tool": "linger", "arguments": {"seconds": SECONDS}},
    "asking": {"tool": "linger", "arguments": {"seconds": SECONDS, "ask": True}},
}
SCENARIOS: Final = {
    "python": [("call", "quiet"), ("call", "asking")],
    "typescript": [
        ("call", "quiet"),
        ("call", "asking"),
        ("task_call", "quiet"),
        ("task_call", "asking"),
    ],
    "fastmcp": [("call", "quiet"), ("call", "asking"), ("task_call", "quiet")],
}
"""By client: how it calls, and what."""
ALL: Final = [
    (client, scenario, call, carrier)
    for client, scenarios in SCENARIOS.items()
    for scenario, call in scenarios
    for carrier in ("buffered", "streamed")
]

Plays = dict[tuple[str, str, str, str], Future[Observed]]


@pytest.fixture(scope="module")
def plays(
    stack: LocalStack,
    gateway: Gateway,
    python_sdk_1: ForeignClient,
    typescript_sdk_1: ForeignClient,
    fastmcp_2: ForeignClient,
) -> Iterator[Plays]:
    """All scenarios, which are played at the same time."""
    clients = {"python": python_sdk_1, "typescript": typescript_sdk_1, "fastmcp": fastmcp_2}
    urls = {"buffered": stack.url, "streamed": gateway.url}

    def play(client: str, scenario: str, call: str, carrier: str) -> Observed:
        options: dict[str, Any] = CALLS[call]
        return clients[client].play(urls[carrier], scenario, **options)

    with ThreadPoolExecutor(len(ALL)) as pool:
        yield {which: pool.submit(play, *which) for which in ALL}


def of(scenario: str) -> list[Any]:
    """The parameters of one scenario's tests."""
    return [pytest.param(which, id="-".join(which)) for which in ALL if which[1] == scenario]


def expect_result(observed: Observed, call: str) -> None:
    """The one result, and the one question."""
    name = "Ada" if call == "asking" else "nobody"
    assert observed.text == f"{SECONDS} seconds with {name}"
    asked = [event["method"] for event in observed.all("asked")]
    assert asked == (["elicitation/create"] if call == "asking" else [])


@pytest.mark.skip(reason="waits for a call that outlives its connection")
@pytest.mark.parametrize("which", of("call"))
def test_one_call_returns_what_takes_longer_than_a_connection(
    plays: Plays, which: tuple[str, str, str, str]
) -> None:
    """The client resumes the stream of its call, and learns of progress once."""
    *_, call, carrier = which
    observed = plays[which].result()
    expect_result(observed, call)
    if carrier == "buffered":
        assert observed.resumed
    progress = [event["progress"] for event in observed.all("progress")]
    assert progress == sorted(set(progress))
    assert len(progress) > SECONDS / 4


@pytest.mark.skip(reason="waits for tasks of 2025-11-25")
@pytest.mark.parametrize("which", of("task_call"))
def test_a_task_takes_longer_than_a_connection(
    plays: Plays, which: tuple[str, str, str, str]
) -> None:
    """The TypeScript SDK stays in tasks/result once the task has asked."""
    *_, call, _ = which
    observed = plays[which].result()
    expect_result(observed, call)
