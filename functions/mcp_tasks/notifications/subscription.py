"""One listen, apart from the wire: which tasks it follows, and what there is to tell of them.

    following = Following(rows, mailboxes, shape, principal, owner)
    accepted = following.begin(task_ids, until)
    for change in following.changes(live=True): ...
    following.end()

The mailbox follows the tasks before their rows are read, so no change falls between the two. Rows
are read again from time to time, in case that an event was lost for good.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from aws_lambda_powertools import Logger
from botocore.exceptions import BotoCoreError, ClientError

from ..tasks.errors import Busy, UnknownTask
from ..tasks.state import Status
from ..tasks.task import Task, now_ms
from ..tasks.task_table import TaskTable
from .changes import Change, Shape, change_to
from .mailboxes import Mailbox, MailboxEntry, Mailboxes
from .reorder_buffer import OUTAGE_MS, PATIENCE_MS, ReorderBuffer

FIRST_BEAT: Final = 0.1
SLOWEST_BEAT: Final = 1.0
"""Seconds between two looks into the mailbox: they slow down as long as nothing comes."""

READ_AGAIN_MS: Final = 60_000
"""After which time the tasks' rows are read once more."""

KEEP_ALIVE_MS: Final = 15_000
"""The longest silence; API Gateway closes a silent stream after five minutes, others earlier."""

GIVE_UP_MS: Final = 60_000
"""How long nothing can be read before a listen ends with an error."""

FAULTS: Final = (Busy, BotoCoreError, ClientError)
"""What a call to DynamoDB may come to, and the next one need not."""

logger = Logger()


def _as_it_is(task: Task, now: int) -> Task:
    """A task whose result is in its row."""
    return task


class Subscription:
    """What one client is told of some tasks, until they are over or its time is up."""

    def __init__(
        self,
        task_table: TaskTable,
        mailboxes: Mailboxes,
        shape: Shape,
        principal: str,
        owner: str,
        clock: Callable[[], int] = now_ms,
        wait: Callable[[float], None] = time.sleep,
        with_result: Callable[[Task, int], Task] = _as_it_is,
    ) -> None:
        self._rows = task_table
        self._mailboxes = mailboxes
        self._shape = shape
        self._principal = principal
        self._owner = owner
        self._clock = clock
        self._wait = wait
        self._with_result = with_result
        self._until = 0
        self._read_next = 0
        self._open: set[str] = set()
        self._known: set[str] = set()
        self._goes_on = False
        self._mailbox: Mailbox | None = None
        self._order = ReorderBuffer({})
        self._letters: dict[str, MailboxEntry] = {}

    def begin(self, task_ids: Iterable[str], until: int) -> list[str]:
        """Follow those of the tasks that exist and are the principal's, and return their ids."""
        now = self._clock()
        wanted = list(dict.fromkeys(task_ids))
        found = self._rows.get_many(wanted, now, self._principal) if wanted else {}
        accepted = [task_id for task_id in wanted if task_id in found]
        self._until = until
        self._open = set(accepted)
        if accepted:
            self._mailbox = self._mailboxes.open(self._owner, accepted, until, now)
            self._order = ReorderBuffer(self._mailbox.told)
            self._known = set(self._mailbox.told)
            self._goes_on = bool(self._known)
        return accepted

    def changes(self, live: bool) -> Iterator[Change | None]:
        """Each task's current state, then every change; None when it was silent for long.

        Ends when all tasks are over, or the time is up. Unless `live`, when nobody sees anything
        before the end, it also ends as soon as there is something new.
        """
        if self._mailbox is None:
            return
        news = False
        heard_at = spoke_at = self._clock()
        beat = FIRST_BEAT
        while True:
            now, repeated = self._clock(), []
            try:
                repeated = self._hear(self._mailbox, now)
                heard_at = now
            except FAULTS as error:
                if now - heard_at >= GIVE_UP_MS:
                    raise
                logger.warning("Nothing is heard", error=type(error).__name__)
            while (change := self._next()) is not None:
                news = news or self._is_news(change)
                yield self._tell(change)
                spoke_at, beat = self._clock(), FIRST_BEAT
            # What was told before comes last: a full answer has to leave room for what was not.
            for change in repeated:
                if self._order.told[change.task_id] != change.revision:
                    continue
                try:
                    whole = self._whole(change) if change.left_out else change
                except FAULTS as error:
                    logger.warning("A row is not read", error=type(error).__name__)
                    continue
                if whole is not None:
                    yield self._tell(whole)
            self._throw_away(self._mailbox)
            now = self._clock()
            if not self._open or now >= self._until or (news and not live):
                return
            if now - spoke_at >= KEEP_ALIVE_MS:
                yield None
                spoke_at = now
            self._wait(min(beat, (self._until - now) / 1000))
            beat = min(beat * 1.5, SLOWEST_BEAT)

    def end(self) -> None:
        """Stop following; the client's next listen goes on from here."""
        if self._mailbox is not None and self._open:
            # A task that there was no room for begins anew.
            told = {t: r for t, r in self._order.told.items() if t in self._known}
            self._mailbox.told = told
            self._mailboxes.leave(self._owner, self._mailbox, self._clock())

    def _hear(self, mailbox: Mailbox, now: int) -> list[Change]:
        """Look into the mailbox, and at the rows when it is time; returns, when it is the first
        time, the states that were told before.
        """
        due, first = now >= self._read_next, self._read_next == 0
        told_before = self._read_rows() if due else []
        for letter in self._mailboxes.collect(mailbox):
            self._letters[letter.key] = letter
            if letter.change.task_id in self._open:
                self._order.add(letter.change, letter.arrived_at + PATIENCE_MS)
        if due:
            self._read_next = now + READ_AGAIN_MS
        return told_before if first else []

    def _read_rows(self) -> list[Change]:
        """Hear of the tasks from their rows; returns the states that were told before."""
        now = self._clock()
        states = self._rows.get_many(sorted(self._open), now, self._principal)
        self._open &= states.keys()  # the others have expired
        for task_id in states.keys() - self._order.told.keys():
            # It begins with its current state: what led there is not waited for.
            self._order.pass_over(task_id, states[task_id].revision - 1)
        found = [(task, change_to(task, now, self._shape)) for task in states.values()]
        return [
            change
            for task, change in found
            if not self._order.add(change, task.last_updated_at + OUTAGE_MS)
        ]

    def _next(self) -> Change | None:
        while (change := self._order.next(now := self._clock())) is not None:
            try:
                whole = self._whole(change) if change.left_out else change
            except FAULTS as error:
                logger.warning("A row is not read", error=type(error).__name__)
                self._order.put_back(change, now)
                return None
            if whole is not None:
                return whole
        return None

    def _is_news(self, change: Change) -> bool:
        """Whether a client that cannot see it should not be kept waiting for more.

        In a first listen, a task's first state is none as long as it only works: its client has
        created it.
        """
        known = self._goes_on or change.task_id in self._known
        return known or change.params["status"] != Status.WORKING

    def _whole(self, change: Change) -> Change | None:
        """A change whose event left something out, from its row; None when the row is gone."""
        now = self._clock()
        try:
            task = self._rows.get(change.task_id, now, self._principal)
        except UnknownTask:
            self._open.discard(change.task_id)
            return None
        # The row may be further by now. A state that is over is not there to be told any more.
        self._order.pass_over(task.task_id, task.revision)
        return change_to(self._with_result(task, now), now, self._shape)

    def _tell(self, change: Change) -> Change:
        self._known.add(change.task_id)
        if change.terminal:
            self._open.discard(change.task_id)
        return change

    def _throw_away(self, mailbox: Mailbox) -> None:
        """Remove the letters that were told, or need not be any more."""
        done = [
            letter.key
            for letter in self._letters.values()
            if letter.change.task_id not in self._open
            or letter.change.revision <= self._order.told.get(letter.change.task_id, 0)
        ]
        self._letters = {}
        if done and self._open:  # what is left at the very end, DynamoDB removes for nothing
            try:
                self._mailboxes.remove(mailbox, done)
            except FAULTS as error:
                # They will be found again, and are known to be told.
                logger.warning("Letters are not removed", error=type(error).__name__)
