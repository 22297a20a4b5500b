"""Failing functions delay notifications, and lose none."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from infra.local.deployment import LocalStack
from infra.local.emulator import Emulator
from infra.local.gateway import Gateway
from tests.integration.client import Client, accept
from tests.integration.listening import Heard, Listen
from tests.integration.test_nothing_is_lost import kill_workers

NUMBERS = 4
CHANGES = ["working", "1", "2", "3", "4", "completed"]
"""Of a task that waited to be told, from then on."""


class Functions:
    """The stack's functions, which can be made to fail at every call."""

    def __init__(self, stack: LocalStack, aws: Any) -> None:
        self._lambda = aws("lambda")
        self._stack = stack.name

    def name(self, function: str) -> str:
        (name,) = [
            f["FunctionName"]
            for f in self._lambda.list_functions()["Functions"]
            if f["FunctionName"].startswith(f"{self._stack}-{function}Function")
        ]
        return str(name)

    def until_it_failed(self, name: str) -> None:
        """Wait until a batch was tried, and failed."""
        deadline = time.monotonic() + 30
        while True:
            (mapping,) = self._lambda.list_event_source_mappings(FunctionName=name)[
                "EventSourceMappings"
            ]
            if mapping["LastProcessingResult"] == "FAILED":
                return
            assert time.monotonic() < deadline, mapping
            time.sleep(0.1)

    @contextmanager
    def broken(self, name: str) -> Iterator[None]:
        """It fails at every call."""
        handler = self._lambda.get_function_configuration(FunctionName=name)["Handler"]
        self._lambda.update_function_configuration(FunctionName=name, Handler="missing.handler")
        try:
            yield
        finally:
            self._lambda.update_function_configuration(FunctionName=name, Handler=handler)


class Follower:
    """A listen in the background, for one task that waits to be told."""

    def __init__(self, client: Client, pool: ThreadPoolExecutor) -> None:
        self.client = client
        self.task_id = client.start("count_up", to=NUMBERS, every_ms=200, when_told=True)
        client.until_asked(self.task_id, "answer")
        self.listen = Listen(client, [self.task_id])
        begun = threading.Event()

        def note(heard: Heard) -> bool:
            if "taskId" in heard.message.get("params", {}):
                begun.set()
            return False

        self.running = pool.submit(self.listen.run, note)
        assert begun.wait(30)

    def tell(self) -> None:
        """Let the task go on."""
        (key,) = self.client.get(self.task_id)["inputRequests"]
        self.client.update(self.task_id, {key: accept(yes=True)})

    def told(self) -> list[str]:
        """The changes that were told since."""
        _, *states = self.listen.states(self.task_id)
        return [state.get("statusMessage") or state["status"] for state in states]


@pytest.mark.parametrize("function", ["Publish", "Deliver"])
def test_a_function_that_fails_for_a_while_loses_nothing(
    gateway: Gateway, stack: LocalStack, aws: Any, function: str
) -> None:
    """The table's stream and the queue keep what it could not take; it only comes later."""
    functions = Functions(stack, aws)
    name = functions.name(function)
    with ThreadPoolExecutor() as pool:
        follower = Follower(Client(gateway.url), pool)
        with functions.broken(name):
            follower.tell()
            assert follower.client.end(follower.task_id)["status"] == "completed"
            functions.until_it_failed(name)
            assert follower.told() == []
        follower.running.result(timeout=120)
    assert follower.told() == CHANGES


def test_killing_every_worker_loses_nothing(gateway: Gateway, emulator: Emulator) -> None:
    """Those of `publish` and `deliver` among them, again and again while changes come."""
    with ThreadPoolExecutor() as pool:
        follower = Follower(Client(gateway.url), pool)
        follower.tell()
        follower.client.end(follower.task_id)
        killed = 0
        while not follower.running.done() and killed < 30:
            killed += kill_workers(emulator)
            time.sleep(0.05)
        follower.running.result(timeout=120)
    assert killed
    assert follower.told() == CHANGES
