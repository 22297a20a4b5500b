"""Tools that call tools, under every fault and in every order that a few steps make
(docs/reliability.md).

As in `test_durable`, whose histories these are: a program may call others, which may call others
again. `Trees` says what must hold.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize

from tests.campaigns.model import dynamodb
from tests.campaigns.model.actors import JOURNAL, OBJECTS, STATES, TASKS, Fault, Plan
from tests.campaigns.model.durable import Durable, running
from tests.campaigns.model.figures import figures
from tests.campaigns.model.histories import RUNS, SUSPENDED, check, on_moto
from tests.campaigns.model.history import OWNER
from tests.campaigns.model.state_machine import KILLED, SUBTASKS, Invocation
from tests.campaigns.model.test_durable import DurableTools, Spec, others, someone, steps
from tests.campaigns.model.trees import Trees, new_world, patched
from tests.unit.support.aws import TABLE

STEPS: Final = 16
RUNS_OF_TREES: Final = RUNS if "MODEL_RUNS" in os.environ else 40
"""A tree takes as long as several tools."""
NEWEST: Final = 4

endings = st.sampled_from([[]] * 4 + [[{"do": "end", "how": how}] for how in ("refuse", "crash")])
datas = st.sampled_from(("", "", "", "x" * 3000))


def calls_of(programs: st.SearchStrategy[list[Spec]]) -> st.SearchStrategy[Spec]:
    """A call of tools that run these programs."""
    arguments = st.fixed_dictionaries({"program": programs, "call": st.just(0), "data": datas})
    return st.fixed_dictionaries(
        {
            "do": st.just("call"),
            "tool": st.sampled_from(("quick", "slow")),
            "calls": st.lists(arguments, min_size=1, max_size=3),
            "lanes": st.integers(1, 3),
            "catch": st.sampled_from((True, True, False)),
        },
        optional={"alone": st.just(True), "tolerate": st.integers(0, 3)},
    )


def programs_of(operations: st.SearchStrategy[Spec], most: int) -> st.SearchStrategy[list[Spec]]:
    """Programs of some operations, which may have an end of their own."""
    return st.builds(
        lambda some, end: some + end, st.lists(operations, min_size=1, max_size=most), endings
    )


leaves = programs_of(st.one_of(steps, steps, others), 2)
branches = st.one_of(leaves, programs_of(st.one_of(steps, others, calls_of(leaves)), 2))
roots: st.SearchStrategy[list[Spec]] = st.builds(
    lambda before, call, after, end: [*before, call, *after, *end],
    st.lists(st.one_of(steps, others), max_size=1),
    calls_of(branches),
    st.lists(st.one_of(steps, steps, others, calls_of(leaves)), max_size=2),
    endings,
)
late_points = st.sampled_from(
    [(TASKS, n) for n in (0, 1, 1, 2, 2, 3, 4)]
    + [(STATES, n) for n in (0, 0, 1)]
    + [(JOURNAL, n) for n in (0, 1)]
    + [(OBJECTS, 0)]
)
"""Where a function waits that writes subtasks, begins one, or tells of its end."""
interrupted = st.one_of(
    st.builds(Plan, pauses=st.frozensets(late_points, min_size=1, max_size=1)),
    st.builds(Plan, pauses=st.frozensets(late_points, min_size=1, max_size=1)),
    st.builds(
        Plan,
        faults=st.dictionaries(late_points, st.sampled_from(Fault), min_size=1, max_size=2),
        pauses=st.frozensets(late_points, max_size=1),
    ),
)


class TreesOfTools(DurableTools):
    """Everything that happens to durable tools that call each other."""

    newest = NEWEST
    world: Trees

    @initialize(
        data=st.data(),
        lag=st.sampled_from((0, 0, 0, 20_000)),
        answering=st.booleans(),
        with_output=st.booleans(),
    )
    def begin(self, data: st.DataObject, lag: int, answering: bool, with_output: bool) -> None:
        self.begin_in(new_world(figures, self.workers), data)
        self.world.step_functions.lag_ms = lag
        self.world.step_functions.with_output = with_output
        self.answering = answering
        self.create(Plan())
        for _ in range(self.draw(st.integers(0, 8))):
            if self._stirring():
                self.run_calmly()

    def _actions(self) -> list[Callable[[], None]]:
        possible = super()._actions()
        if len(self.world.suspended) < SUSPENDED:
            if self._stirring():
                possible += [self.run_calmly] * 4
            if self._starting():
                possible += [self.start_beside] * 3
            if any(row.get("childTaskIds") for row in dynamodb.items(TABLE)):
                possible += [self.cancel_tree]
        return possible

    def _starting(self) -> list[Invocation]:
        """The functions that start subtasks, and were not run yet."""
        found = [i for e in running(self.world) for i in self._fresh(e)]
        return [each for each in found if each.function == SUBTASKS]

    def create(self, plan: Plan | None = None) -> None:
        self.world.create(
            self.draw(roots),
            plan or self._plan(),
            entry=Durable.tools[self.draw(st.integers(0, 1))],
            data=self.draw(datas),
        )

    def cancel_tree(self) -> None:
        """A task that has subtasks is cancelled, or one of those."""
        if self.draw(st.integers(0, 2)):
            return
        rows = [row for row in dynamodb.items(TABLE) if "childTaskIds" in row]
        row = rows[self.draw(st.integers(0, len(rows) - 1))]
        ids = [row["taskId"]["S"], *(each["S"] for each in row["childTaskIds"]["L"])]
        task_id = ids[self.draw(st.integers(0, min(1, len(ids) - 1)))]
        self.world.cancel(self.draw(someone), task_id, self._plan())

    def start_beside(self) -> None:
        """Subtasks are started while something else happens to their parent, or to them.

        Step Functions may lose sight of the function that starts them, and run it once more.
        """
        invocation = self._pick(self._starting())
        execution, world = invocation.execution, self.world
        before = list(world.suspended)
        world.invoke(invocation, self.draw(interrupted))
        slow = [actor for actor in world.suspended if actor not in before]
        match self.draw(st.sampled_from(("lose", "lose", "cancel", "break", "go on", "hear"))):
            case "lose":
                world.step_functions.failed(invocation, KILLED)
                self._run(execution)
            case "cancel":
                world.cancel(OWNER, world.task_of(execution), self.draw(interrupted))
            case "break":
                self.break_off()
            case "hear" if world.step_functions.events:
                self.hear()
            case _:
                for _ in range(4):
                    if self._stirring():
                        self.run_calmly()
        for actor in slow:
            if actor in world.suspended and self.draw(st.integers(0, 3)):
                world.go_on(actor)

    def _run(self, execution: Any) -> None:
        states = self.world.step_functions
        while lines := states.movable(execution):
            states.go_on(execution, lines[0])
        for invocation in self._fresh(execution):
            self.world.invoke(invocation)


@pytest.fixture(scope="module", autouse=True)
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder: Path = tmp_path_factory.mktemp("bundle")
    with on_moto(patched(folder)) as workers:
        TreesOfTools.workers = workers
        yield


def test_a_tree_ends_as_one_and_each_task_of_it_by_itself() -> None:
    check(TreesOfTools, STEPS, RUNS_OF_TREES)
