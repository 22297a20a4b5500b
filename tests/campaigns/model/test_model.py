"""The task core under every fault and in every order that a few steps make (docs/reliability.md).

Hypothesis makes up what clients, executions, schedules, clocks and AWS do; `World` says what must
hold. A failing run is made as short as may be, and printed as a test that can be copied.

`make test` runs the same 200 runs each time; `make model` 5,000 others, and says how it went.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    initialize,
)

from mcp_tasks.tasks.questions import Kind
from tests.campaigns.model import dynamodb
from tests.campaigns.model.actors import CALLERS, CLOCK, OBJECTS, STATES, TASKS, Fault, Plan
from tests.campaigns.model.figures import figures
from tests.campaigns.model.histories import SUSPENDED, Histories, check, on_moto
from tests.campaigns.model.history import DAY, MINUTE, OWNER, START, STRANGER
from tests.campaigns.model.step_functions import Script
from tests.campaigns.model.world import (
    SKEW_MS,
    TOOLS,
    Chosen,
    World,
    new_world,
    patched,
    running,
    waiting,
)
from tests.unit.support.aws import TABLE

STEPS: Final = 12
TASKS_AT_ONCE: Final = 2

END: Final = {"do": "end", "status": "SUCCEEDED"}
SCRIPTS: Final[tuple[list[dict[str, Any]], ...]] = (
    [END],
    [{"do": "report"}, END],
    [{"do": "ask", "asks": [1]}, END],
    [{"do": "ask", "asks": [2]}, {"do": "report"}, END],
    [{"do": "ask", "asks": [1, 1]}, END],
    [{"do": "ask", "asks": [1]}, {"do": "ask", "asks": [1]}, END],
    [{"do": "report"}, {"do": "end", "status": "FAILED"}],
    [{"do": "explain"}, {"do": "end", "status": "ToolError"}],
)

ASKING: Final = SCRIPTS[2:6]

CHOSEN: Final = (
    Chosen(OWNER, "client", "mine"),
    Chosen(OWNER, "request", "1"),
    Chosen(STRANGER, "client", "mine"),
)
"""Two callers choose the same id."""

points = st.sampled_from(
    [(TASKS, n) for n in (0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 5)]
    + [(STATES, n) for n in (0, 0, 0, 0, 1, 1, 2)]
    + [(CALLERS, n) for n in (0, 0, 1)]
    + [(OBJECTS, 0), (CLOCK, 0), (CLOCK, 2)]
)
faults = st.dictionaries(points, st.sampled_from(Fault), min_size=1, max_size=5)
outages = st.builds(
    lambda target, n, first, rest: (
        {(target, n): first} | {(target, n + i): rest for i in range(1, 5)}
    ),
    st.sampled_from((TASKS, STATES)),
    st.integers(0, 3),
    st.sampled_from((Fault.THROTTLED, Fault.FAILED_AFTER, Fault.UNANSWERED)),
    st.sampled_from((Fault.THROTTLED, Fault.UNREACHED)),
)
"""Nothing goes any more."""
pauses = st.frozensets(points, min_size=1, max_size=4)
skews = st.sampled_from((0, SKEW_MS, -SKEW_MS))
plans = st.one_of(
    st.just(Plan()),
    st.builds(Plan, pauses=pauses, skew_ms=skews),
    st.builds(Plan, faults=faults, skew_ms=skews),
    st.builds(Plan, faults=faults, pauses=pauses),
    st.builds(Plan, faults=outages, skew_ms=skews),
)
someone = st.sampled_from((OWNER,) * 11 + (STRANGER,))
times = st.sampled_from(
    [1_000] * 3 + [21_000] * 3 + [MINUTE + 1] * 3 + [4 * MINUTE, 40 * MINUTE, 25 * 60 * MINUTE, 0]
)
"""0 is until something is about to expire."""


class TaskCore(Histories):
    """Everything that happens to tasks."""

    points, plans, newest = points, plans, TASKS_AT_ONCE
    world: World

    @initialize(data=st.data(), lag=st.sampled_from((0, 20_000)), answering=st.booleans())
    def begin(self, data: st.DataObject, lag: int, answering: bool) -> None:
        self.begin_in(new_world(figures), data)
        self.world.step_functions.lag_ms = lag
        self.answering = answering
        first = (self.ask, self.ask, self.create, self.create_keyed, self.create_chosen)
        self.draw(st.sampled_from(first))()

    def _actions(self) -> list[Callable[[], None]]:
        """What clients, executions and AWS may do now."""
        world = self.world
        possible: list[Callable[[], None]] = []
        if world.ms > START + DAY:
            possible += [self.delete_expired]
        if waiting(world):
            possible += [self.time_out]
        if running(world):
            possible += [self.break_off]
        if len(world.suspended) == SUSPENDED:
            return possible
        possible += [self.get, self.cancel] + [self.sweep] * 4
        if len(running(world)) < TASKS_AT_ONCE:
            possible += [self.ask, self.create]
        possible += [self.repeat] * 2 if world.keyed else [self.create_keyed]
        possible += [self.create_chosen] * (2 if world.chosen else 1)
        if world.chosen:
            possible += [self.delete]
        if world.acknowledged:
            possible += [self.follow] * 2
        if world.questions:
            possible += [self.update] * 4
        if self._stirring():
            possible += [self.progress] * 6
        if world.stale:
            possible += [self.deliver_again]
        if world.step_functions.events:
            possible += [self.hear] * 3
        return possible

    def _tasks(self) -> list[str]:
        return sorted(row["taskId"]["S"] for row in dynamodb.items(TABLE)) or ["c1-" + "0" * 32]

    def _stirring(self) -> list[Script]:
        """Executions in which something goes on."""
        return [e for e in running(self.world) if e.ready or e.invocations]

    # clients

    def ask(self) -> None:
        """A task begins, and asks; nothing is in its way."""
        self.world.create(self.draw(st.sampled_from(ASKING)))
        for execution in [e for e in running(self.world) if e.position < 0][:1]:
            self.world.step_functions.enter(execution)
            for invocation in execution.invocations:
                self.world.invoke(invocation)

    def create(self, key: str | None = None) -> None:
        self.world.create(
            self.draw(st.sampled_from(SCRIPTS)),
            self._plan(),
            entry=self.draw(st.sampled_from(TOOLS)),
            key=key,
            can=frozenset({Kind.FORM} if self.draw(st.integers(0, 5)) else ()),
            data="" if self.draw(st.integers(0, 3)) else "x" * 3000,
        )

    def create_keyed(self) -> None:
        self.create("key")

    def repeat(self) -> None:
        """A call is repeated with its key, at once or after a while."""
        if self.draw(st.booleans()):
            self.world.advance(MINUTE + 1)
        self.world.create([], self._plan(), key="key")

    def create_chosen(self) -> None:
        """A call whose client has chosen an id, of the task or of the request."""
        self.world.create_chosen(
            self.draw(st.sampled_from(CHOSEN)),
            self.draw(st.sampled_from(SCRIPTS)),
            self._plan(),
            entry=self.draw(st.sampled_from(TOOLS)),
            repeat=bool(self.draw(st.integers(0, 3))),
        )

    def delete(self) -> None:
        """A task with its client's own id is deleted, by its owner or another with the same id."""
        self.world.delete(self.draw(someone), CHOSEN[0], self._plan())

    def get(self) -> None:
        self.world.get(self.draw(someone), self._pick(self._tasks()), self._plan())

    def update(self) -> None:
        task_id = self._pick(sorted(self.world.questions))
        keys = self.world.questions[task_id]
        some = self.draw(st.sampled_from((0, 0, 1, 2)))
        self.world.update(self.draw(someone), task_id, keys[-some:], self._plan())

    def follow(self) -> None:
        """A client that waits on its call's event stream resumes it, or begins to wait."""
        world = self.world
        waiting = [w for w in world.waiters if w.response is None and not w.connected]
        if not waiting or not self.draw(st.integers(0, 3)):
            waiting.append(world.wait_for(self._pick(sorted(world.acknowledged))))
        streamed, lost = self.draw(st.booleans()), self.draw(st.sampled_from((0, 0, 0, 1, 2, 99)))
        world.follow(self._pick(waiting), self._plan(), streamed=streamed, lost=lost)

    def cancel(self) -> None:
        """A task is cancelled; and perhaps the sweeper is just coming."""
        self.world.cancel(self.draw(someone), self._pick(self._tasks()), self._plan())
        if self.draw(st.booleans()):
            self.world.advance(self.world.due_in_ms())
            self.world.sweep()

    # executions

    def progress(self) -> None:
        """An execution's next state begins, or the function runs that it waits for."""
        execution = self._pick(self._stirring())
        if execution.ready:
            self.world.step_functions.enter(execution)
            if not self.draw(st.integers(0, 3)):
                return
        for invocation in execution.invocations[:1]:
            if not self.draw(st.integers(0, 3)):
                self.world.stale.append(invocation)
            self.world.invoke(invocation, self._plan())

    def deliver_again(self) -> None:
        self.world.invoke(self._pick(self.world.stale), self._plan())

    def time_out(self) -> None:
        """A state waits no longer; and perhaps the sweeper is just looking."""
        token = self._pick(waiting(self.world))
        self.world.step_functions.time_out(token, self.draw(st.booleans()))
        if self.draw(st.booleans()) and len(self.world.suspended) < SUSPENDED:
            self.world.advance(self.world.due_in_ms())
            point = self.draw(st.sampled_from([(STATES, 1), (TASKS, 3), (TASKS, 4)]))
            self._overtaken(self.sweep, point)

    def break_off(self) -> None:
        status = self.draw(st.sampled_from(("FAILED", "TIMED_OUT", "ABORTED")))
        self.world.step_functions.end(self._pick(running(self.world)), status)

    def hear(self) -> None:
        """A status event arrives: in any order, and perhaps once more. Or it never does."""
        events = self.world.step_functions.events
        event = self._pick(events)
        if self.draw(st.booleans()):
            events.remove(event)
        self.world.hear(event, self._plan())

    # schedules, clocks, and who was interrupted

    def sweep(self) -> None:
        if self.draw(st.booleans()):
            self.world.advance(self.world.due_in_ms())
        self.world.sweep(self._plan())

    def wait(self) -> None:
        ms = self.draw(times) or max(0, self.world.expires_in_ms() - SKEW_MS // 2)
        self.world.advance(ms, self.draw(st.booleans()))

    def delete_expired(self) -> None:
        self.world.delete_expired()

    def teardown(self) -> None:
        """Faults stop."""
        if sys.exc_info()[0] is None and hasattr(self, "draw"):
            self.world.settle(self.answering)
            self.world.come_late()


@pytest.fixture(scope="module", autouse=True)
def aws() -> Iterator[None]:
    with on_moto(patched()):
        yield


def test_every_task_ends_once_and_nothing_is_lost() -> None:
    check(TaskCore, STEPS)
