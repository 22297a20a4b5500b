"""Durable tools under every fault and in every order that a few steps make (docs/reliability.md).

As in `test_model`, Hypothesis makes up what happens: programs, whose steps are killed, lost sight
of and repeated, while their tasks are answered, cancelled and expire. `Durable` says what must
hold.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Final

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    initialize,
)

from tests.campaigns.model import dynamodb
from tests.campaigns.model.actors import JOURNAL, OBJECTS, STATES, TASKS, TOOL, Fault, Plan
from tests.campaigns.model.durable import (
    BROKEN_OFF,
    Durable,
    new_world,
    patched,
    running,
)
from tests.campaigns.model.figures import figures
from tests.campaigns.model.histories import SUSPENDED, Histories, check, on_moto
from tests.campaigns.model.history import DAY, MINUTE, OWNER, START, STRANGER
from tests.campaigns.model.state_machine import (
    KILLED,
    KILLS,
    THROTTLED,
    WORKER,
    FunctionExecution,
    Invocation,
)
from tests.campaigns.model.world import SKEW_MS
from tests.unit.support.aws import TABLE

STEPS: Final = 14
RUNS: Final = int(os.environ.get("MODEL_RUNS", "120"))
"""They take longer than those of the other checks."""
TASKS_AT_ONCE: Final = 2
AGAIN_MS: Final = 30_000
"""How long an invocation may be delivered a second time."""
MOST_OPERATIONS: Final = 5

takes = st.sampled_from((0, 0, 0, 1, 20, 40))
Spec = dict[str, Any]
steps: st.SearchStrategy[Spec] = st.fixed_dictionaries(
    {"do": st.just("step"), "undo": st.sampled_from((True, True, False)), "takes": takes},
    optional={
        "fails": st.sampled_from((1, 1, 2, 9)),
        "attempts": st.sampled_from((2, 3)),
        "catch": st.booleans(),
        "undo_fails": st.sampled_from((1, 2, 9)),
    },
)
maps: st.SearchStrategy[Spec] = st.fixed_dictionaries(
    {"do": st.just("map"), "items": st.sampled_from((0, 1, 3, 4)), "lanes": st.integers(1, 3)},
    optional={
        "takes": takes,
        "fails": st.just(1),
        "attempts": st.just(2),
        "tolerate": st.integers(0, 4),
        "catch": st.booleans(),
    },
)
others: st.SearchStrategy[Spec] = st.one_of(
    st.builds(lambda s: {"do": "sleep", "seconds": s}, st.sampled_from((5, 60, 600, 1800))),
    st.builds(
        lambda times, s: {"do": "wait_for", "times": times, "seconds": s, "catch": True},
        st.integers(1, 3),
        st.sampled_from((90, 600)),
    ),
    st.sampled_from([{"do": do} for do in ("ask", "ask", "on_cancel", "now", "uuid", "version")]),
)
ends = st.sampled_from([[]] * 3 + [[{"do": "end", "how": how}] for how in ("refuse", "crash")])
programs: st.SearchStrategy[list[Spec]] = st.builds(
    lambda operations, end: operations + end,
    st.lists(st.one_of(steps, steps, maps, others), min_size=1, max_size=MOST_OPERATIONS),
    ends,
)

points = st.sampled_from(
    [(TASKS, n) for n in (0, 0, 1, 1, 2, 3, 4)]
    + [(STATES, n) for n in (0, 0, 1, 1, 2)]
    + [(JOURNAL, n) for n in (0, 1, 1, 2, 2, 3, 3, 4, 5, 6, 8)]
    + [(TOOL, n) for n in (0, 0, 1, 1, 2, 3, 4, 5)]
    + [(OBJECTS, 0)]
)
late = st.sampled_from([(TASKS, 0), (TASKS, 1), (TASKS, 1), (STATES, 0), (STATES, 1)])
"""Where a function waits that hears of an end, or a run that says it is to be undone."""
DEADLY: Final = (Fault.KILLED_BEFORE, Fault.KILLED_AFTER)
passing = st.dictionaries(
    points.filter(lambda p: p[0] != TOOL), st.sampled_from(Fault), min_size=1, max_size=3
)
deadly = st.dictionaries(points, st.sampled_from(DEADLY), min_size=1, max_size=1)
pauses = st.frozensets(points, min_size=1, max_size=3)
skews = st.sampled_from((0, 0, SKEW_MS, -SKEW_MS))
calm = st.just(Plan())
plans = st.one_of(
    calm,
    calm,
    st.builds(Plan, pauses=pauses),
    st.builds(Plan, pauses=pauses, skew_ms=skews),
    st.builds(Plan, faults=deadly),
    st.builds(Plan, faults=passing, skew_ms=skews),
    st.builds(Plan, faults=passing, pauses=pauses),
)
someone = st.sampled_from((OWNER,) * 15 + (STRANGER,))
times = st.sampled_from(
    [1_000] * 3 + [11_000] * 4 + [MINUTE + 1] * 3 + [5 * MINUTE, 40 * MINUTE, 25 * 60 * MINUTE, 0]
)
"""0 is until something is about to expire."""


class DurableTools(Histories):
    """Everything that happens to durable tools."""

    points, plans, newest = points, plans, TASKS_AT_ONCE
    workers: ClassVar[dict[str, ModuleType]]
    world: Durable

    @initialize(
        data=st.data(),
        lag=st.sampled_from((0, 0, 20_000)),
        answering=st.booleans(),
        with_output=st.booleans(),
    )
    def begin(self, data: st.DataObject, lag: int, answering: bool, with_output: bool) -> None:
        self.begin_in(new_world(figures, self.workers), data)
        self.world.step_functions.lag_ms = lag
        self.world.step_functions.with_output = with_output
        self.answering = answering
        self.create(Plan())

    def _actions(self) -> list[Callable[[], None]]:
        """What clients, executions and AWS may do now."""
        world = self.world
        possible: list[Callable[[], None]] = []
        if world.ms > START + DAY:
            possible += [world.delete_expired]
        if running(world):
            possible += [self.break_off]
        if self._lost():
            possible += [self.lose] * 3
        if len(world.suspended) == SUSPENDED:
            return possible
        possible += [self.get, self.cancel, self.wait_for_execution] + [self.sweep] * 2
        if len(running(world)) < TASKS_AT_ONCE:
            possible += [self.create]
        if world.questions:
            possible += [self.update] * 5
        if self._stirring():
            possible += [self.progress] * 12
        if self._repeatable():
            possible += [self.deliver_again]
        if world.step_functions.events:
            possible += [self.hear] * 3 + [self.hear_late]
        if self._stirring():
            possible += [self.end_beside_run] * 2
        return possible

    def _tasks(self) -> list[str]:
        return sorted(row["taskId"]["S"] for row in dynamodb.items(TABLE)) or ["c1-" + "0" * 32]

    def _stirring(self) -> list[FunctionExecution]:
        """Executions in which something goes on."""
        found = running(self.world)
        return [e for e in found if self.world.step_functions.movable(e) or self._fresh(e)]

    def _fresh(self, execution: FunctionExecution) -> list[Invocation]:
        """Functions that were not run yet."""
        return [each for each in execution.invocations if not each.times]

    def _lost(self) -> list[Invocation]:
        """Functions that run, which Step Functions may lose sight of."""
        found = [i for e in running(self.world) for i in e.invocations]
        return [i for i in found if i.times]

    def _repeatable(self) -> list[Invocation]:
        return [i for i in self.world.stale if self.world.ms <= i.at + AGAIN_MS]

    # clients

    def create(self, plan: Plan | None = None) -> None:
        self.world.create(
            self.draw(programs),
            plan or self._plan(),
            entry=Durable.tools[self.draw(st.integers(0, 1))],
            data="" if self.draw(st.integers(0, 5)) else "x" * 3000,
        )

    def get(self) -> None:
        self.world.get(self.draw(someone), self._pick(self._tasks()), self._plan())

    def update(self) -> None:
        task_id = self._pick(sorted(self.world.questions))
        keys = self.world.questions[task_id]
        self.world.update(self.draw(someone), task_id, keys[-1:], self._plan())

    def cancel(self) -> None:
        """A task is cancelled; and perhaps its execution's end is told at once."""
        if self.draw(st.integers(0, 1)):
            return
        self.world.cancel(self.draw(someone), self._pick(self._tasks()), self._plan())
        if self.draw(st.booleans()) and self.world.step_functions.events:
            self.hear()

    # executions

    def progress(self) -> None:
        """An execution goes on to its next functions, and runs one of them."""
        execution, states = self._pick(self._stirring()), self.world.step_functions
        while lines := states.movable(execution):
            states.go_on(execution, lines[0])
        fresh = self._fresh(execution)
        if not fresh:
            return
        invocation = fresh[self.draw(st.integers(0, len(fresh) - 1))]
        if not self.draw(st.integers(0, 15)):
            states.failed(invocation, THROTTLED)
            return
        if not self.draw(st.integers(0, 3)):
            self.world.stale.append(invocation)
        self.world.invoke(invocation, self._plan(), self.draw(st.sampled_from(KILLS)))

    def lose(self) -> None:
        """Step Functions loses sight of a function that runs on."""
        invocation = self._pick(self._lost())
        self.world.step_functions.failed(invocation, KILLED)
        if self.draw(st.booleans()) and invocation.function == WORKER:
            self.world.advance(11_000)
            self.progress_if_any()

    def progress_if_any(self) -> None:
        if self._stirring() and len(self.world.suspended) < SUSPENDED:
            self.progress()

    def deliver_again(self) -> None:
        self.world.invoke(self._pick(self._repeatable()), self._plan())

    def break_off(self) -> None:
        """An operator ends an execution, or it runs out of time."""
        if self.draw(st.integers(0, 4)):
            return
        status = self.draw(st.sampled_from(("FAILED", "TIMED_OUT", "ABORTED")))
        self.world.step_functions.close(self._pick(running(self.world)), status, "E", BROKEN_OFF)

    def hear(self) -> None:
        """A status event arrives: in any order, and perhaps once more. Or it never does."""
        events = self.world.step_functions.events
        event = self._pick(events)
        if self.draw(st.integers(0, 3)):
            events.remove(event)
        self.world.hear(event, self._plan())

    def hear_late(self) -> None:
        """A function that hears of an end is overtaken by all that follows from that end."""
        event = self._pick(self.world.step_functions.events)
        self.world.hear(event, Plan(pauses=frozenset({self.draw(late)})))
        slow = self.world.suspended[-1:]
        self.world.hear(event)
        for _ in range(self.draw(st.sampled_from((2, 12)))):
            if self._stirring():
                self.run_calmly()
            elif self.world.step_functions.events[-1] is not event:
                event = self.world.step_functions.events[-1]
                self.world.hear(event)
        for actor in slow:
            if actor in self.world.suspended:
                self.world.go_on(actor, finish=True)

    def run_calmly(self) -> None:
        """An execution goes on, with nothing in its way."""
        execution, states = self._pick(self._stirring()), self.world.step_functions
        while lines := states.movable(execution):
            states.go_on(execution, lines[0])
        for invocation in self._fresh(execution):
            self.world.invoke(invocation)

    def end_beside_run(self) -> None:
        """An execution ends while a function of it runs on, also beside the one that hears of it.

        The execution is broken off, or its task is cancelled.
        """
        self.fixed = Plan(pauses=frozenset({self.draw(late)}))
        self.progress()
        self.fixed = None
        world, suspended = self.world, list(self.world.suspended)
        if running(world):
            execution = self._pick(running(world))
            status = self.draw(st.sampled_from(("FAILED", "TIMED_OUT", "ABORTED", "cancel")))
            if status == "cancel":
                world.cancel(OWNER, world.task_of(execution))
            else:
                world.step_functions.close(execution, status, "E", BROKEN_OFF)
        if world.step_functions.events:
            event = world.step_functions.events[-1]
            world.hear(event, Plan(pauses=frozenset({self.draw(late)})))
        for actor in [*suspended, *(a for a in world.suspended if a not in suspended)]:
            if actor in world.suspended and self.draw(st.booleans()):
                world.go_on(actor)

    # schedules, clocks, and who was interrupted

    def sweep(self) -> None:
        if self.draw(st.booleans()):
            self.world.advance(self.world.due_in_ms())
        self.world.sweep(self._plan())

    def wait_for_execution(self) -> None:
        """Time passes until an execution goes on."""
        waits: Any = self.world.step_functions.waits()
        self.world.advance(max(0, min(waits, default=self.world.ms) - self.world.ms))
        self.progress_if_any()

    def wait(self) -> None:
        ms = self.draw(times) or max(0, self.world.expires_in_ms() - SKEW_MS // 2)
        self.world.advance(ms, self.draw(st.booleans()))

    def teardown(self) -> None:
        """Faults stop."""
        if sys.exc_info()[0] is None and hasattr(self, "draw"):
            self.world.settle(self.answering)
            self.world.come_late()


@pytest.fixture(scope="module", autouse=True)
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder: Path = tmp_path_factory.mktemp("bundle")
    with on_moto(patched(folder)) as workers:
        DurableTools.workers = workers
        yield


def test_what_is_done_is_kept_and_what_failed_is_undone() -> None:
    check(DurableTools, STEPS, RUNS)
