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
"""API Gateway ends a response after 29 seconds."""
ASKING: Final = {"tool": "linger", "arguments": {"seconds": SECONDS, "ask": True}}
QUIET: Final = {"tool": "linger", "arguments": {"seconds": SECONDS}}
SCENARIOS: Final[dict[tuple[str, str], dict[str, Any]]] = {
    ("python", "call"): ASKING,
    ("typescript", "call"): ASKING,
    ("fastmcp", "call"): ASKING,
    ("typescript", "task_call"): ASKING,
    ("fastmcp", "task_call"): QUIET,
}
"""By the client and how it calls: what it calls."""
CARRIERS: Final = ("buffered", "streamed")

Play = tuple[str, str, str]
"""A client, how it calls, and the carrier."""
Plays = dict[Play, Future[Observed]]


def of(scenario: str) -> list[Any]:
    """The parameters of one scenario's tests."""
    clients = [client for client, how in SCENARIOS if how == scenario]
    found = [(client, scenario, carrier) for client in clients for carrier in CARRIERS]
    return [pytest.param(play, id=f"{play[0]}-{play[2]}") for play in found]


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
    urls = dict(zip(CARRIERS, (stack.url, gateway.url), strict=True))
    with ThreadPoolExecutor(len(SCENARIOS) * len(CARRIERS)) as pool:
        yield {
            (client, how, carrier): pool.submit(clients[client].play, urls[carrier], how, **call)
            for (client, how), call in SCENARIOS.items()
            for carrier in CARRIERS
        }


@pytest.mark.parametrize("play", of("call"))
def test_one_call_returns_what_takes_longer_than_a_connection(plays: Plays, play: Play) -> None:
    """Buffered, the client resumes the stream of its call. It is asked once, and told once."""
    observed = plays[play].result()
    assert observed.text == f"{SECONDS} seconds with Ada"
    assert [event["method"] for event in observed.all("asked")] == ["elicitation/create"]
    assert observed.resumed or play[-1] == "streamed"
    progress = [event["progress"] for event in observed.all("progress")]
    assert progress == sorted(set(progress))
    assert len(progress) > SECONDS / 4


@pytest.mark.parametrize("play", of("task_call"))
def test_a_task_takes_longer_than_a_connection(plays: Plays, play: Play) -> None:
    """The TypeScript SDK stays in tasks/result once the task has asked."""
    observed = plays[play].result()
    name = "Ada" if SCENARIOS[play[:2]] is ASKING else "nobody"
    assert observed.text == f"{SECONDS} seconds with {name}"
