"""The delivery of a batch of changes to the mailboxes that receive them, in a bounded time.

The changes of a batch are of several callers, so none may wait for another's. A delivery goes on by
steps of one call or two, and the smallest one takes its step first. When DynamoDB has no capacity
for a step, that delivery pauses, and the others go on. Whatever is left when the time is up is for
the queue to repeat.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from ..aws.errors import is_transient
from ..tasks.errors import Busy
from .clock import SYSTEM_CLOCK, Clock
from .mailbox import AnyChange
from .mailboxes import MAX_BATCH_WRITES, Mailboxes, Receiver

MAX_STEP_BYTES: Final = 1_000_000
"""What one step writes, so that it takes a fraction of a second."""

MAX_FAILURES: Final = 6
"""How many steps of one delivery may fail in a row. The pauses between them add up to 1.2 s."""

FIRST_PAUSE_MS: Final = 40
"""After the first failure in a row; each further pause is twice as long."""


@dataclass(slots=True)
class Delivery:
    """One change on its way."""

    change: AnyChange
    detail: str
    """The change as JSON."""
    receivers: list[Receiver] | None = None
    """Who has not got it yet; None until that is known."""
    mailboxes: int = 0
    """How many get it."""
    failures: int = 0
    """In a row."""
    due: int = 0
    """When the next step may be taken, in milliseconds since the epoch."""
    error: Exception | None = None
    """Why it was given up."""

    @property
    def done(self) -> bool:
        """Whether all have got it, or it was given up."""
        return self.receivers == [] or self.error is not None

    @property
    def bytes_left(self) -> int:
        """What is left to write, as far as it is known."""
        return len(self.detail) * len(self.receivers or ())


def deliver_all(
    mailboxes: Mailboxes,
    deliveries: Collection[Delivery],
    until: int,
    clock: Clock = SYSTEM_CLOCK,
) -> None:
    """Deliver changes until a time, in milliseconds since the epoch.

    Never raises: what failed has an `error`.
    """
    left = [delivery for delivery in deliveries if not delivery.done]
    while left and (now := clock.now_ms()) < until:
        ready = [delivery for delivery in left if delivery.due <= now]
        if ready:
            _attempt_step(mailboxes, min(ready, key=lambda each: each.bytes_left), clock)
        else:
            due = min(until, *(delivery.due for delivery in left))
            clock.sleep((due - now) / 1000)
        left = [delivery for delivery in left if not delivery.done]
    for delivery in left:
        delivery.error = Busy("the time was up")


def _attempt_step(mailboxes: Mailboxes, delivery: Delivery, clock: Clock) -> None:
    try:
        _step(mailboxes, delivery, clock.now_ms())
    except Exception as error:
        transient = is_transient(error) or isinstance(error, Busy)
        delivery.failures += 1
        delivery.due = clock.now_ms() + FIRST_PAUSE_MS * 2 ** (delivery.failures - 1)
        if not transient or delivery.failures == MAX_FAILURES:
            delivery.error = error
    else:
        delivery.failures = 0


def _step(mailboxes: Mailboxes, delivery: Delivery, now: int) -> None:
    """Read who receives the change, or write it into some mailboxes. Raises what that raises."""
    if delivery.receivers is None:
        delivery.receivers = mailboxes.receivers(delivery.change.topics, now)
        delivery.mailboxes = len(delivery.receivers)
        return
    count = max(1, min(MAX_BATCH_WRITES, MAX_STEP_BYTES // len(delivery.detail)))
    step, rest = delivery.receivers[:count], delivery.receivers[count:]
    refused = mailboxes.put_entries(delivery.change, delivery.detail, step, now)
    delivery.receivers = [*rest, *refused]
    if refused:
        raise Busy(f"DynamoDB did not take {len(refused)} writes")
