"""What makes histories: Hypothesis draws what happens next, and who is interrupted by whom."""

from __future__ import annotations

import logging
import os
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import ClassVar, Final, TypeVar

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.internal.conjecture.providers import AVAILABLE_PROVIDERS
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test
from moto import mock_aws

from tests.campaigns.model import dynamodb
from tests.campaigns.model.actors import Plan, Point
from tests.campaigns.model.figures import figures
from tests.campaigns.model.history import History

T = TypeVar("T")

RUNS: Final = int(os.environ.get("MODEL_RUNS", "200"))
SUSPENDED: Final = 3
"""So many actors are interrupted at a time."""

BACKEND: Final = "as drawn"
# Hypothesis draws as ever, and does nothing besides. It would begin small, and make five of six
# runs by copying parts of another to other places in it, which are hardly ever a new history
# (Hypothesis documentation, "Alternative backends for Hypothesis").
AVAILABLE_PROVIDERS[BACKEND] = "hypothesis.internal.conjecture.providers.HypothesisProvider"


class Histories(RuleBasedStateMachine):
    """Everything that happens, one thing after the other, or within each other.

    There is one rule, which chooses among what is possible: Hypothesis leaves out half of many
    rules in each run, and without a create, or without progress, nothing happens.
    """

    points: ClassVar[st.SearchStrategy[Point]]
    """Where an actor may be interrupted."""
    plans: ClassVar[st.SearchStrategy[Plan]]
    newest: ClassVar[int]
    """Of several things, one of so many is picked."""
    world: History

    def begin_in(self, world: History, data: st.DataObject) -> None:
        """Begin a history."""
        figures["runs"] += 1
        self.world = world
        self.draw = data.draw
        self.fixed: Plan | None = None

    @rule(data=st.data())
    def steps(self, data: st.DataObject) -> None:
        """Three at once: Hypothesis likes to stop early."""
        self.draw = data.draw
        for _ in range(3):
            figures["steps"] += 1
            self.draw(st.sampled_from(self._possible()), label="step")()

    def _possible(self) -> list[Callable[[], None]]:
        """What can happen now, the more often the likelier."""
        possible: list[Callable[[], None]] = []
        if self.world.suspended:
            possible += [self.go_on] * 2
        possible += [self.wait] * 2
        if len(self.world.suspended) < SUSPENDED:
            possible += [self.overtake] * 5
        return possible + self._actions()

    @abstractmethod
    def _actions(self) -> list[Callable[[], None]]:
        """What clients and AWS may do now."""

    def _pick(self, things: Sequence[T]) -> T:
        """One of several, from the newest."""
        return things[-1 - self.draw(st.integers(0, min(len(things), self.newest) - 1))]

    def _plan(self) -> Plan:
        """The plan of the next actor."""
        if self.fixed is not None:
            plan, self.fixed = self.fixed, None
            return plan
        return self.draw(self.plans)

    @abstractmethod
    def wait(self) -> None:
        """Time passes."""

    def go_on(self) -> None:
        """One that was interrupted goes on."""
        self.world.go_on(self._pick(self.world.suspended))

    def overtake(self) -> None:
        """One begins, others do something before a call of the first."""
        action = self.draw(st.sampled_from(self._actions()), label="overtaken")
        self._overtaken(action, self.draw(self.points))

    def _overtaken(self, action: Callable[[], None], point: Point) -> None:
        before = list(self.world.suspended)
        self.fixed = Plan(pauses=frozenset({point}))
        action()
        self.fixed = None
        for first in [actor for actor in self.world.suspended if actor not in before]:
            for _ in range(self.draw(st.integers(1, 2))):
                self.draw(st.sampled_from([self.wait, *self._actions()]), label="overtakes")()
            if first in self.world.suspended:
                self.world.go_on(first)


@contextmanager
def on_moto(patched: AbstractContextManager[T]) -> Iterator[T]:
    """Let histories find moto's tables, empty, and what `patched` replaces, and yields."""
    logging.disable()  # a run logs more than it does
    with mock_aws(), patched as replaced:
        dynamodb.create_tables()
        yield replaced
    logging.disable(logging.NOTSET)


def check(histories: type[Histories], steps: int, runs: int = RUNS) -> None:
    """Make so many histories, of so many times three steps."""
    run_state_machine_as_test(
        histories,
        settings=settings(
            max_examples=runs,
            stateful_step_count=steps,
            derandomize="MODEL_RUNS" not in os.environ,
            backend=BACKEND,
            database=None,
            deadline=None,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
            print_blob=False,
        ),
    )
