"""The way from the tasks table to the mailboxes: stream, function, bus, function."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest
from moto.dynamodb.models import dynamodb_backends

from mcp_tasks.notifications.changes import Change, changes_to_publish, read_change
from mcp_tasks.notifications.clock import Clock
from mcp_tasks.notifications.delivery import Delivery, deliver_all
from mcp_tasks.notifications.event_bus import EventBus
from mcp_tasks.notifications.mailbox import AnyChange, MailboxEntry
from mcp_tasks.notifications.mailboxes import Mailboxes
from mcp_tasks.server.methods.task_wire_format import detailed_task
from mcp_tasks.tasks.task import now_ms
from tests.unit.support import event_bridge
from tests.unit.support.aws import ACCOUNT, MAILBOXES, REGION, TABLE, real


def deliver(mailboxes: Mailboxes, change: AnyChange, now: int) -> int:
    """Deliver a change at a moment; returns how many mailboxes got it. Raises what went wrong."""
    delivery = Delivery(change, change.detail())
    clock = Clock(lambda: now, lambda seconds: pytest.fail(f"a pause of {seconds} s"))
    deliver_all(mailboxes, [delivery], now + 1, clock)
    if delivery.error is not None:
        raise delivery.error
    return delivery.mailboxes


def task_changes(entries: Iterable[MailboxEntry]) -> list[Change]:
    """The changes of tasks in a mailbox, in which there are no others."""
    changes = [entry.change for entry in entries]
    return [change for change in changes if isinstance(change, Change) or pytest.fail(str(change))]


@dataclass
class Push:
    """Moves what the table's stream holds on to the mailboxes, when a test says so.

    A test may take events out of `events`, repeat them or put them into another order.
    """

    events: list[dict[str, Any]] = field(default_factory=list)
    """What is on the bus, and was not delivered."""
    heard: list[dict[str, Any]] = field(default_factory=list)
    """The details of all events, in the order in which they came to the bus."""
    clock: Callable[[], int] = now_ms

    def __post_init__(self) -> None:
        # moto's own client of table streams finds none of its servers.
        table = dynamodb_backends[ACCOUNT][REGION].tables[TABLE]
        self._written: list[Any] = table.stream_shard.items  # type: ignore[union-attr]
        self._read = 0
        self._bus = EventBus(self, "bus")  # type: ignore[arg-type]
        self.mailboxes = Mailboxes(real("dynamodb"), MAILBOXES)

    def put_events(self, Entries: list[dict[str, Any]]) -> dict[str, Any]:
        """EventBridge's, as far as it is called."""
        answer = event_bridge.answer(Entries)
        for entry, result in zip(Entries, answer["Entries"], strict=True):
            if "ErrorCode" not in result:
                self.heard.append(json.loads(entry["Detail"]))
                self.events.append(self.heard[-1])
        return answer

    def records(self) -> list[dict[str, Any]]:
        """What is new in the table's stream."""
        records = [record.to_json() for record in self._written[self._read :]]
        self._read += len(records)
        return records

    def publish(self) -> int:
        """The function `publish`, on all that is new; returns how many changes it put out."""
        return self._bus.publish(changes_to_publish(self.records(), detailed_task))

    def deliver(self) -> None:
        """The function `deliver`, on all that is on the bus."""
        while self.events:
            deliver(self.mailboxes, read_change(self.events.pop(0)), self.clock())

    def run(self) -> None:
        """All the way."""
        self.publish()
        self.deliver()
