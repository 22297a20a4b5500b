"""One history: who does what and when, in an order that the test chooses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import SimpleNamespace
from typing import Any, Final

import pytest
from botocore.exceptions import ClientError
from hypothesis import note

from mcp_tasks.protocol.errors import ProtocolError
from tests.campaigns.model.actors import CALM, CLOCK, LATE_MS, STATES, Actor, Plan, Stage, Violation

START: Final = 1_700_000_000_000
MINUTE: Final = 60_000
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR

OWNER: Final = "alice"
STRANGER: Final = "mallory"
SECRET: Final = "the deployment's secret, 32 characters"


class History:
    """The actors of one run, and its time."""

    most_ms = MINUTE
    """How long a function may take at most, from its first call to its last."""

    def __init__(self, statistics: Counter[str]) -> None:
        self.statistics = statistics
        self.stage = Stage(statistics)
        self.ms = START
        self.suspended: list[Actor] = []
        self.told: list[str] = []
        """What actors did, for whoever reads a history that failed."""
        self._started: dict[Actor, int] = {}
        self._after: dict[Actor, Callable[[Actor], None]] = {}
        self._as: dict[Actor, str] = {}

    def run(
        self,
        name: str,
        work: Callable[[], Any],
        plan: Plan = CALM,
        *,
        as_: str = "",
        after: Callable[[Actor], None] = lambda actor: None,
    ) -> Any:
        """Let an actor begin; it may pause. Returns its result, if it has one already."""
        actor = Actor(self.stage, name, work, plan)
        note(f"{name}, {plan}")
        self._started[actor], self._after[actor], self._as[actor] = self.ms, after, as_
        self.statistics[f"runs of {name.partition(' ')[0]}"] += 1
        self.go_on(actor)
        return actor.result

    def go_on(self, actor: Actor, *, finish: bool = False, killed: bool = False) -> None:
        """Let an actor go on until it is done, or pauses."""
        if finish:
            actor.finish(killed)
        else:
            actor.go_on()
        told, self.told = self.told, []
        for line in told:
            note(f"    {line}")
        self.check()
        if actor in self.suspended:
            self.suspended.remove(actor)
        if not actor.done:
            self.suspended.append(actor)
            return
        error = actor.error
        if isinstance(error, Exception) and not actor.hit:
            expected = isinstance(error, ProtocolError)
            self.require(expected, f"{actor.name} raised {error!r}, and nothing had failed")
        after = self._after.pop(actor)
        after(actor)

    def advance(self, ms: int, killed: bool = False) -> None:
        """Let time pass. Nobody is interrupted for longer than functions may take."""
        note(f"{ms} ms pass")
        for actor in list(self.suspended):
            if self.ms + ms > self._started[actor] + self.most_ms:
                self.go_on(actor, finish=True, killed=killed)
        if ms >= LATE_MS:
            self.arrive()
        self.ms += ms

    def arrive(self) -> None:
        """What was on its way takes effect."""
        late, self.stage.late = self.stage.late, []
        for effect in late:
            with suppress(ClientError):
                self.stage.call(STATES, "late", effect)
        self.check()

    def require(self, holds: bool, message: str) -> None:
        """Fail, unless it holds."""
        if not holds:
            self.stage.violation = self.stage.violation or Violation(message)
            self.check()

    def check(self) -> None:
        """Fail if anything was seen that must never be."""
        if self.stage.violation is not None:
            self.statistics.setdefault("runs to the first failure", self.statistics["runs"])
            raise AssertionError(str(self.stage.violation)) from None

    # what the code under test finds in the place of the real thing

    def clock_ms(self) -> int:
        """The time, as the actor of the moment has it."""
        actor = self.stage.actor
        return self.ms + (actor.plan.skew_ms if actor else 0)

    def wait(self, seconds: float) -> None:
        """An actor lets time pass."""
        self.stage.call(CLOCK, "wait", lambda: None)
        self.ms += round(seconds * 1000)


_current: list[History] = []


def begin(history: History) -> None:
    """Let the clock of this history be the one that counts from now on."""
    _current[:] = [history]


def current() -> History:
    """The history whose clock counts."""
    return _current[-1]


@contextmanager
def clock_of_histories() -> Iterator[pytest.MonkeyPatch]:
    """Time is a history's."""
    with pytest.MonkeyPatch.context() as patch:
        clock = SimpleNamespace(time_ns=lambda: current().clock_ms() * 1_000_000)
        patch.setattr("mcp_tasks.tasks.task.time", clock)
        yield patch
