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
from tests.integration.support.subscriptions import Received, Subscription
from tests.integration.test_nothing_is_lost import kill_workers

NUMBERS = 4
CHANGES = ["working", "1", "2", "3", "4", "completed"]
"""The changes of a task of `count_up` after its start was accepted."""


@contextmanager
def broken(lambda_: Any, name: str) -> Iterator[None]:
    """Make a function fail at every invocation."""
    handler = lambda_.get_function_configuration(FunctionName=name)["Handler"]
    lambda_.update_function_configuration(FunctionName=name, Handler="missing.handler")
    try:
        yield
    finally:
        lambda_.update_function_configuration(FunctionName=name, Handler=handler)


@contextmanager
def short_visibility_timeout(stack: LocalStack, sqs: Any) -> Iterator[None]:
    """Let the queue deliver a message again after a second instead of half a minute."""
    url = stack.outputs["DeliverQueueUrl"]
    name = "VisibilityTimeout"
    before = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=[name])["Attributes"][name]
    sqs.set_queue_attributes(QueueUrl=url, Attributes={name: "1"})
    try:
        yield
    finally:
        sqs.set_queue_attributes(QueueUrl=url, Attributes={name: before})


def until_it_failed(lambda_: Any, name: str) -> None:
    """Wait until the function has failed at a batch."""
    deadline = time.monotonic() + 30
    while (mapping := event_source(lambda_, name))["LastProcessingResult"] != "FAILED":
        assert time.monotonic() < deadline, mapping
        time.sleep(0.1)


@dataclass(frozen=True, slots=True)
class Subscriber:
    """A subscription in the background to a task that waits for its start to be accepted."""

    client: Client
    task_id: str
    subscription: Subscription
    running: Future[Subscription]

    def accept_start(self) -> None:
        """Answer the task's question: it goes on."""
        (key,) = self.client.get(self.task_id)["inputRequests"]
        self.client.update(self.task_id, {key: accept(yes=True)})

    def delivered(self) -> list[str]:
        """The changes that were delivered after the start."""
        _, *states = self.subscription.changes(self.task_id)
        return [state.get("statusMessage") or state["status"] for state in states]


@contextmanager
def subscribed(client: Client) -> Iterator[Subscriber]:
    """Start a task and subscribe to it. The subscription ends with the context."""
    task_id = client.start("count_up", to=NUMBERS, every_ms=200, ask_first=True)
    client.until_asked(task_id, "answer")
    subscription, begun = Subscription(client, [task_id]), threading.Event()

    def begin(received: Received) -> bool:
        if "taskId" in received.message.get("params", {}):
            begun.set()
        return False

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(subscription.run, begin)
        try:
            assert begun.wait(30), subscription.received
            yield Subscriber(client, task_id, subscription, running)
        finally:
            subscription.disconnect()


@pytest.mark.parametrize("function", ["Publish", "Deliver"])
def test_a_function_that_fails_for_a_while_loses_nothing(
    gateway: Gateway, stack: LocalStack, aws: Any, function: str
) -> None:
    """The table's stream and the queue keep the changes: they are only delivered later."""
    lambda_ = aws("lambda")
    name = function_name(stack, lambda_, function)
    with subscribed(Client(gateway.url)) as subscriber:
        with broken(lambda_, name), short_visibility_timeout(stack, aws("sqs")):
            subscriber.accept_start()
            assert subscriber.client.end(subscriber.task_id)["status"] == "completed"
            until_it_failed(lambda_, name)
            assert subscriber.delivered() == []
        subscriber.running.result()
    assert subscriber.delivered() == CHANGES


def test_killing_every_worker_loses_nothing(
    gateway: Gateway, stack: LocalStack, emulator: Emulator, aws: Any
) -> None:
    """The workers of `publish` and `deliver` are killed again and again while changes arrive.

    No other worker is: a tool that is killed four times fails, as it should.
    """
    lambda_ = aws("lambda")
    functions = [function_name(stack, lambda_, name) for name in ("Publish", "Deliver")]
    with subscribed(Client(gateway.url)) as subscriber:
        subscriber.accept_start()
        killed = 0
        while not subscriber.running.done() and killed < 30:
            killed += kill_workers(emulator, *functions)
            time.sleep(0.05)
        subscriber.client.end(subscriber.task_id)
        subscriber.running.result()
    assert killed
    assert subscriber.delivered() == CHANGES
