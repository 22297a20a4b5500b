"""One subscription, apart from the wire: which tasks it is for, and which changes to send.

    mailbox = mailboxes.open(Subscriber(principal, client), task_ids, until, limits, now)
    subscription = Subscription(task_table, mailboxes, detailed_task, principal)
    accepted = subscription.begin(mailbox, task_ids, until, permitted)
    for change in subscription.changes(live=True): ...
    subscription.end()

The mailbox follows the tasks before their rows are read, so that no change is lost in between. The
rows are read again from time to time, in case an event was lost for good.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final

from aws_lambda_powertools import Logger
from botocore.exceptions import BotoCoreError, ClientError

from ..tasks.errors import Busy, UnknownTask
from ..tasks.state import Status
from ..tasks.task import Task
from ..tasks.task_table import TaskTable
from .announced_changes import AnnouncedChanges
from .changes import Change, WireFormat, change_to
from .clock import SYSTEM_CLOCK, Clock
from .mailbox import AnyChange, Mailbox
from .mailboxes import Mailboxes
from .reorder_buffer import GAP_TIMEOUT_MS, ROW_GAP_TIMEOUT_MS, ReorderBuffer
from .server_changes import ServerChange

MIN_READ_INTERVAL_SECONDS: Final = 0.1
MAX_READ_INTERVAL_SECONDS: Final = 1.0
"""Between two reads of the mailbox. The interval grows as long as the mailbox is empty."""

ROW_READ_INTERVAL_MS: Final = 60_000
"""Between two reads of the tasks' rows."""

KEEP_ALIVE_INTERVAL_MS: Final = 15_000
"""The longest time without a message. API Gateway closes an idle stream after five minutes, and
other proxies do so earlier."""

MAX_READ_FAILURE_MS: Final = 60_000
"""How long reads may fail before a subscription ends with an error."""

DYNAMODB_ERRORS: Final = (Busy, BotoCoreError, ClientError)
"""What a call to DynamoDB raises when it fails. The next call may succeed."""

logger = Logger()


class Subscription:
    """The changes of some tasks, for one client, until all are terminal or its time is up.

    `with_result` returns a task with its result, which may be stored in S3, at a time in
    milliseconds.
    """

    def __init__(
        self,
        task_table: TaskTable,
        mailboxes: Mailboxes,
        wire_format: WireFormat,
        principal: str,
        with_result: Callable[[Task, int], Task] = lambda task, now: task,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._task_table = task_table
        self._mailboxes = mailboxes
        self._wire_format = wire_format
        self._principal = principal
        self._with_result = with_result
        self._clock = clock
        self._until = 0
        self._open: set[str] = set()
        """The tasks that are not known to be terminal or expired."""
        self._known: set[str] = set()
        """The tasks that the client was sent a state of, now or in an earlier subscription."""
        self._continues = False
        """Whether the client had a subscription to any of these tasks a moment ago."""
        self._mailbox: Mailbox | None = None
        self._mailbox_read_at = 0
        self._read_rows_at = 0
        self._order = ReorderBuffer({})
        self._entries: dict[str, Change] = {}
        self._topics: frozenset[str] = frozenset()
        """The resources and lists that are followed."""
        self._announced = AnnouncedChanges()

    def begin(
        self,
        mailbox: Mailbox,
        task_ids: Iterable[str],
        until: int,
        permitted: Callable[[Iterable[Task]], Collection[str]],
        topics: Collection[str] = (),
    ) -> list[str]:
        """Subscribe to topics, and to those of the tasks that exist and are the principal's;
        returns the ids of these.

        `mailbox` was opened for these tasks, and until the same time in milliseconds since the
        epoch. `permitted` returns the ids of those of the found tasks that the subscriber may read,
        or raises.
        """
        now = self._clock.now_ms()
        wanted = list(dict.fromkeys(task_ids))
        found = self._task_table.get_many(wanted, now, self._principal) if wanted else {}
        ids = permitted(found.values()) if wanted else ()
        accepted = [task_id for task_id in wanted if task_id in ids]
        # The other tasks of the mailbox are forgotten, and begin anew in a later subscription.
        delivered = {t: r for t, r in mailbox.delivered.items() if t in accepted}
        mailbox.delivered = delivered | dict.fromkeys(mailbox.delivered.keys() & set(topics), 0)
        self._mailbox = mailbox
        self._until = until
        self._open = set(accepted)
        # A terminal task never changes, so there is nothing to follow.
        going_on = [task_id for task_id in accepted if not found[task_id].status.terminal]
        self._topics = frozenset(topics)
        self._mailboxes.follow(mailbox, [*going_on, *topics], until)
        self._order = ReorderBuffer(delivered)
        self._known = set(delivered)
        self._continues = bool(self._known)
        return accepted

    def changes(self, live: bool) -> Iterator[AnyChange | None]:
        """Each task's current state, then every change; None when a keep-alive is due.

        Ends when all tasks are terminal and there are no topics, when the time is up, or when a
        later subscription of the same client has replaced it. If it is not `live`, the client sees
        nothing before the end, so it also ends as soon as there is something new.
        """
        if self._mailbox is None or not self._follows:
            return
        news = False
        self._mailbox_read_at = sent_at = self._clock.now_ms()
        interval = MIN_READ_INTERVAL_SECONDS
        while True:
            delivered_before = self._read(self._mailbox)
            while (change := self._next()) is not None:
                news = news or self._is_news(change)
                yield self._deliver(change)
                sent_at, interval = self._clock.now_ms(), MIN_READ_INTERVAL_SECONDS
            for announced in self._announced.take():
                news, sent_at, interval = True, self._clock.now_ms(), MIN_READ_INTERVAL_SECONDS
                yield announced
            # Last, because a buffered response that is full must have room for new states first.
            yield from self._repeat(delivered_before)
            self._remove_delivered(self._mailbox)
            now = self._clock.now_ms()
            over = now >= self._until or self._mailbox.replaced
            if not self._follows or over or (news and not live):
                return
            if now - sent_at >= KEEP_ALIVE_INTERVAL_MS:
                yield None
                sent_at = now
            self._clock.sleep(min(interval, (self._until - now) / 1000))
            interval = min(interval * 1.5, MAX_READ_INTERVAL_SECONDS)

    def end(self) -> None:
        """Stop. The next subscription of the same client continues from here."""
        mailbox = self._mailbox
        if mailbox is None or mailbox.replaced:
            return
        if not self._follows:
            self._mailboxes.close(mailbox)
            return
        # A task whose first state did not fit into the response begins anew.
        mailbox.delivered = {t: r for t, r in self._order.delivered.items() if t in self._known}
        mailbox.delivered |= dict.fromkeys(self._topics, 0)
        self._mailboxes.release(mailbox, self._clock.now_ms())

    @property
    def _follows(self) -> bool:
        """Whether anything may still change."""
        return bool(self._open or self._topics)

    def _read(self, mailbox: Mailbox) -> list[Change]:
        """Read the mailbox, and the rows when it is time.

        The first call returns the states that the client was sent in an earlier subscription.
        Raises what DynamoDB raises when reads have failed for MAX_READ_FAILURE_MS.
        """
        now = self._clock.now_ms()
        rows_due, first = now >= self._read_rows_at, self._read_rows_at == 0
        try:
            delivered_before = self._read_rows() if rows_due else []
            for entry in self._mailboxes.entries(mailbox):
                if isinstance(entry.change, ServerChange):
                    self._announced.add(entry.key, entry.change)
                    continue
                self._entries[entry.key] = entry.change
                if entry.change.task_id in self._open:
                    self._order.add(entry.change, entry.arrived_at + GAP_TIMEOUT_MS)
        except DYNAMODB_ERRORS as error:
            if now - self._mailbox_read_at >= MAX_READ_FAILURE_MS:
                raise
            logger.warning("A mailbox or its tasks could not be read", error=type(error).__name__)
            return []
        if rows_due:
            self._read_rows_at = now + ROW_READ_INTERVAL_MS
        self._mailbox_read_at = now
        return delivered_before if first else []

    def _read_rows(self) -> list[Change]:
        """Add the tasks' states to the buffer; returns those that were delivered before."""
        now = self._clock.now_ms()
        if not self._open:
            return []
        tasks = self._task_table.get_many(sorted(self._open), now, self._principal)
        self._open &= tasks.keys()  # The others have expired.
        for task_id in tasks.keys() - self._order.delivered.keys():
            # The first state is the current one; earlier changes are not waited for.
            self._order.skip_to(task_id, tasks[task_id].revision - 1)
        found = [(task, change_to(task, now, self._wire_format)) for task in tasks.values()]
        return [
            change
            for task, change in found
            if not self._order.add(change, task.last_updated_at + ROW_GAP_TIMEOUT_MS)
        ]

    def _next(self) -> Change | None:
        """The next change to send; None when there is none, or its row cannot be read now."""
        while (change := self._order.next(now := self._clock.now_ms())) is not None:
            try:
                complete = self._resolve(change)
            except DYNAMODB_ERRORS as error:
                logger.warning("A task could not be read", error=type(error).__name__)
                self._order.put_back(change, now)
                return None
            if complete is not None:
                return complete
        return None

    def _repeat(self, delivered_before: Iterable[Change]) -> Iterator[Change]:
        """Those states that were delivered before, and are still the last that were delivered."""
        for change in delivered_before:
            if self._order.delivered[change.task_id] != change.revision:
                continue
            try:
                complete = self._resolve(change)
            except DYNAMODB_ERRORS as error:
                logger.warning("A task could not be read", error=type(error).__name__)
                continue
            if complete is not None:
                yield self._deliver(complete)

    def _is_news(self, change: Change) -> bool:
        """Whether a client that sees nothing before the end should get its response now.

        In a client's first subscription, the first state of a task is no news as long as it is
        `working`: the client has just created the task.
        """
        known = self._continues or change.task_id in self._known
        return known or change.params["status"] != Status.WORKING

    def _resolve(self, change: Change) -> Change | None:
        """A change with the members that its event left out, from the task's row.

        None when the row has expired.
        """
        if not change.left_out:
            return change
        now = self._clock.now_ms()
        try:
            task = self._task_table.get(change.task_id, now, self._principal)
        except UnknownTask:
            self._open.discard(change.task_id)
            return None
        # The row may have a later state. The state of the change is then nowhere any more.
        self._order.skip_to(task.task_id, task.revision)
        return change_to(self._with_result(task, now), now, self._wire_format)

    def _deliver(self, change: Change) -> Change:
        self._known.add(change.task_id)
        if change.terminal:
            self._open.discard(change.task_id)
        return change

    def _remove_delivered(self, mailbox: Mailbox) -> None:
        """Remove the entries that were delivered, or that are of no use any more."""
        done = [
            key
            for key, change in self._entries.items()
            if change.task_id not in self._open
            or change.revision <= self._order.delivered.get(change.task_id, 0)
        ]
        done += self._announced.to_remove
        self._entries = {}
        # After the last change, DynamoDB removes what is left by its TTL, at no cost.
        if done and self._follows:
            try:
                self._mailboxes.remove(mailbox, done)
                self._announced.removed()
            except DYNAMODB_ERRORS as error:
                # They will be read again, and are then known to be delivered.
                logger.warning("Mailbox entries could not be removed", error=type(error).__name__)
