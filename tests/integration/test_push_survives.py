"""Failing functions delay notifications, and lose none."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from local.deployment import LocalStack
from local.emulator import Emulator
from local.gateway import Gateway
from tests.integration.support.aws import event_source, function_name
from tests.integration.support.client import Client, accept
from tests.integration.support.listening import Heard, Listen
from tests.integration.test_nothing_is_lost import kill_workers

NUMBERS = 4
CHANGES = ["working", "1", "2", "3", "4", "completed"]
"""Of a task that waited to be told, from then on."""


@contextmanager
def broken(lambda_: Any, name: str) -> Iterator[None]:
    """A function fails at every call."""
    handler = lambda_.get_function_configuration(FunctionName=name)["Handler"]
    lambda_.update_function_configuration(FunctionName=name, Handler="missing.handler")
    try:
        yield
    finally:
        lambda_.update_function_configuration(FunctionName=name, Handler=handler)


@contextmanager
def impatient(stack: LocalStack, sqs: Any) -> Iterator[None]:
    """The queue gives a message again after a second, and not after half a minute."""
    url = stack.outputs["DeliverQueue"]
    name = "VisibilityTimeout"
    before = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=[name])["Attributes"][name]
    sqs.set_queue_attributes(QueueUrl=url, Attributes={name: "1"})
    try:
        yield
    finally:
        sqs.set_queue_attributes(QueueUrl=url, Attributes={name: before})


def until_it_failed(lambda_: Any, name: str) -> None:
    """Wait until a batch was tried, and failed."""
    deadline = time.monotonic() + 30
    while (mapping := event_source(lambda_, name))["LastProcessingResult"] != "FAILED":
        assert time.monotonic() < deadline, mapping
        time.sleep(0.1)


@dataclass(frozen=True, slots=True)
class Follower:
    """A listen in the background, for one task that waits to be told."""

    client: Client
    task_id: str
    listen: Listen
    running: Future[Listen]

    def tell(self) -> None:
        """Let the task go on."""
        (key,) = self.client.get(self.task_id)["inputRequests"]
        self.client.update(self.task_id, {key: accept(yes=True)})

    def told(self) -> list[str]:
        """The changes that were told since."""
        _, *states = self.listen.states(self.task_id)
        return [state.get("statusMessage") or state["status"] for state in states]


@contextmanager
def following(client: Client) -> Iterator[Follower]:
    """Begin such a listen. It is hung up in the end, whatever happened: nothing waits for it."""
    task_id = client.start("count_up", to=NUMBERS, every_ms=200, when_told=True)
    client.until_asked(task_id, "answer")
    listen, begun = Listen(client, [task_id]), threading.Event()

    def note(heard: Heard) -> bool:
        if "taskId" in heard.message.get("params", {}):
            begun.set()
        return False

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(listen.run, note)
        try:
            assert begun.wait(30), listen.heard
            yield Follower(client, task_id, listen, running)
        finally:
            listen.hang_up()


@pytest.mark.parametrize("function", ["Publish", "Deliver"])
def test_a_function_that_fails_for_a_while_loses_nothing(
    gateway: Gateway, stack: LocalStack, aws: Any, function: str
) -> None:
    """The table's stream and the queue keep what it could not take; it only comes later."""
    lambda_ = aws("lambda")
    name = function_name(stack, lambda_, function)
    with following(Client(gateway.url)) as follower:
        with broken(lambda_, name), impatient(stack, aws("sqs")):
            follower.tell()
            assert follower.client.end(follower.task_id)["status"] == "completed"
            until_it_failed(lambda_, name)
            assert follower.told() == []
        follower.running.result()
    assert follower.told() == CHANGES


@pytest.mark.usefixtures("all_deployed")
def test_killing_every_worker_loses_nothing(gateway: Gateway, emulator: Emulator) -> None:
    """Those of `publish` and `deliver` among them, again and again while changes come."""
    with following(Client(gateway.url)) as follower:
        follower.tell()
        follower.client.end(follower.task_id)
        killed = 0
        while not follower.running.done() and killed < 30:
            killed += kill_workers(emulator)
            time.sleep(0.05)
        follower.running.result()
    assert killed
    assert follower.told() == CHANGES
