"""One run of a tool: a Lambda invocation that begins at the tool's first line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final, NoReturn

from .journal import OUTCOME, Journal
from .suspension import ReplayEnded, Suspended

CHECK_CANCELLED_MS: Final = 1000
"""How often a run asks whether its task has ended: one read in this time, before an operation."""

STEP_MARGIN_MS: Final = 1000
"""Of a run's time, what is left when a step's timeout has passed: to write that it failed."""


class Mode(StrEnum):
    """What a run is for."""

    FORWARD = "forward"
    """To go on with the tool."""
    LANE = "lane"
    """To run some items of a map. What comes before the map is only repeated from the journal."""
    UNDO = "undo"
    """To find what has to be undone. Nothing is done that is not in the journal."""
    REPLAY = "replay"
    """To see whether the tool takes the way of its journal. Nothing is done at all."""


@dataclass(frozen=True, slots=True)
class Lane:
    """The part of a map that a run works on: of all lanes, the one with this number."""

    map_id: str
    number: int


def _nothing() -> None:
    """Stand for a call that is not needed."""


def _itself(function: Callable[..., Any]) -> Callable[..., Any]:
    """Stand for a choice that is not needed."""
    return function


@dataclass(slots=True)
class Run:
    """What the operations of a run share."""

    journal: Journal
    clock: Callable[[], int]
    deadline: int
    """When the run has to have ended, in milliseconds since the epoch."""
    ttl: timedelta
    """The tool's: nothing waits for longer."""
    mode: Mode = Mode.FORWARD
    lane: Lane | None = None
    killed_lanes: int = 0
    """Of the map that has just run: how many of its lanes were killed."""
    check_cancelled: Callable[[], None] = _nothing
    """Raises TaskCancelled when the task has ended."""
    announce_undo: Callable[[], None] = _nothing
    """Writes to the task's row that it has to be undone. Raises TaskCancelled when it has ended."""
    stand_in: Callable[[Callable[..., Any]], Callable[..., Any]] = _itself
    """What is called in the place of a step's function: in tests, another one."""
    suspension: Suspended | None = None
    """How the run ends, when an operation waits. Of several, the one that goes on first."""
    answers: dict[str, Any] = field(default_factory=dict)
    """The answers that the tool has used before its first durable operation."""
    in_flight: int = 0
    """How many steps are running: several, in coroutines."""
    task_ended: bool = field(init=False)
    """Whether the run is of the execution that undoes what an ended task did."""
    _began: int = 0
    _checked: int = 0
    _moved: bool = False

    def __post_init__(self) -> None:
        self._began = self._checked = self.clock()
        self.task_ended = self.mode is Mode.UNDO

    @property
    def length_ms(self) -> int:
        """How long a run may take."""
        return self.deadline - self._began

    def enter(self) -> None:
        """Open the journal, before the first durable operation."""
        if self.journal.opened:
            return
        if self.mode is Mode.FORWARD:
            self.journal.open(self.answers)
        else:
            self.journal.read()
            self.journal.opened = True
        if self.journal.find(OUTCOME) is not None:
            self.mode = Mode.UNDO  # the tool has failed; the run that undid it was killed

    def answered(self, key: str, answer: Any) -> None:
        """Keep an answer that the tool uses."""
        self.answers[key] = answer
        if self.journal.opened and self.mode is Mode.FORWARD:
            self.journal.keep_answer(key, answer)

    def go_forward(self, step_timeout: timedelta | None = None) -> None:
        """Prepare to do what is not recorded.

        Raises ReplayEnded in a run that only repeats, TaskCancelled, and Suspended when the run's
        time is nearly up, or another operation waits: then the tool goes on in another run.
        """
        if self.mode is not Mode.FORWARD:
            raise ReplayEnded
        if self.suspension is not None:
            raise self.suspension
        if not self.has_time(step_timeout):
            self.suspend(self.clock())
        self.check_cancelled_sometimes()

    def check_cancelled_sometimes(self) -> None:
        """Raises TaskCancelled when the task has ended, as far as it is known."""
        now = self.clock()
        if now >= self._checked + CHECK_CANCELLED_MS:
            self._checked = now
            self.check_cancelled()

    def has_time(self, step_timeout: timedelta | None = None) -> bool:
        """Whether a run has time for an operation. It always has for the first one.

        A step without a timeout may take half of a run's time.
        """
        first, self._moved = not self._moved, True
        needed = self.length_ms // 2
        if step_timeout is not None:
            needed = milliseconds(step_timeout) + STEP_MARGIN_MS
        return first or self.clock() + needed <= self.deadline

    def check_step_timeout(self, timeout: timedelta | None) -> None:
        """Raises ValueError for a timeout that no run has the time for."""
        longest = self.length_ms - STEP_MARGIN_MS
        if timeout is not None and not 0 < milliseconds(timeout) <= longest:
            raise ValueError(
                f"a step's timeout is at most {longest / 1000:g} s here: the tool's own timeout, "
                "less a margin"
            )

    def suspend(self, until: int, map_id: str | None = None, lanes: int = 0) -> NoReturn:
        """End the run until then; a map with items to run goes first."""
        wanted = Suspended(until, map_id, lanes)
        if self.suspension is None or until < self.suspension.until:
            self.suspension = wanted
        raise wanted

    def time(self, until: timedelta | datetime) -> int:
        """A time in milliseconds since the epoch.

        Raises ValueError for a datetime without a time zone, and for a time beyond the tool's ttl.
        """
        now = self.clock()
        if isinstance(until, datetime):
            if until.tzinfo is None:
                raise ValueError("a datetime to wait for needs a time zone")
            due_at = round(until.timestamp() * 1000)
        else:
            due_at = now + milliseconds(until)
        if due_at > now + milliseconds(self.ttl):
            raise ValueError(f"a task cannot wait for longer than its tool's ttl, {self.ttl}")
        return due_at


def milliseconds(duration: timedelta) -> int:
    """A duration in whole milliseconds."""
    return round(duration.total_seconds() * 1000)
