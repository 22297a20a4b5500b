"""Sessions, and calls that ask within their requests, under every fault (docs/reliability.md).

As in `test_model`, Hypothesis makes up what happens, and `Calls` says what must hold.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Final

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    initialize,
)

from mcp_tasks.sessions.call_table import RESPONSE_KEPT_MS, WAITS_MS
from tests.campaigns.model.actors import CALLERS, CLOCK, SESSIONS, TOOL, Fault, Plan
from tests.campaigns.model.calls import SKEW_MS, Calls, Client, new_calls, patched
from tests.campaigns.model.figures import figures
from tests.campaigns.model.histories import SUSPENDED, Histories, check, on_moto
from tests.campaigns.model.history import OWNER, STRANGER

STEPS: Final = 10
CLIENTS: Final = 3
ROUNDS: Final = ((1,), (1,), (2,), (1, 1), (2, 1))

points = st.sampled_from(
    [(SESSIONS, n) for n in (0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 5, 6)]
    + [(TOOL, 0), (TOOL, 0), (TOOL, 1), (TOOL, 1)]
    + [(CALLERS, n) for n in (0, 1, 2)]
    + [(CLOCK, 0)]
)
DEADLY: Final = (Fault.KILLED_BEFORE, Fault.KILLED_AFTER)
PASSING: Final = tuple(f for f in Fault if f not in (*DEADLY, Fault.LATE, Fault.REFUSED))
faults = st.one_of(
    st.dictionaries(points.filter(lambda p: p[0] in (SESSIONS, CALLERS)), st.sampled_from(PASSING)),
    st.dictionaries(points, st.sampled_from(DEADLY), max_size=1),
)
pauses = st.frozensets(points, min_size=1, max_size=3)
skews = st.sampled_from((0, SKEW_MS, -SKEW_MS))
plans = st.one_of(
    st.just(Plan()),
    st.builds(Plan, pauses=pauses, skew_ms=skews),
    st.builds(Plan, faults=faults, skew_ms=skews),
    st.builds(Plan, faults=faults, pauses=pauses),
)
times = st.sampled_from([1_000] * 3 + [6_000] * 2 + [40_000] * 3 + [RESPONSE_KEPT_MS, WAITS_MS])


class CallsInSessions(Histories):
    """Everything that happens to calls."""

    points, plans, newest = points, plans, 100
    world: Calls

    @initialize(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        self.begin_in(new_calls(figures), data)
        self.sessions = [self.world.new_session()]
        self.call()

    def _actions(self) -> list[Callable[[], None]]:
        possible: list[Callable[[], None]] = [self.delete_expired]
        if len(self.world.suspended) == SUSPENDED:
            return possible
        if len(self.world.clients) < CLIENTS:
            possible += [self.call]
        if self._idle():
            possible += [self.connect] * 6
        if self._asked():
            possible += [self.answer] * 6
        return [*possible, self.cancel, self.steal, self.end]

    def _idle(self) -> list[Client]:
        """Clients that may connect. After a broken connection a client makes another, though the
        function of the first may still run."""
        return [client for client in self.world.clients if client.response is None]

    def _asked(self) -> list[tuple[Client, str]]:
        return [(client, question) for client in self.world.clients for question in client.asked]

    # what clients do

    def call(self) -> None:
        """A call is sent, in a session of its own or with others."""
        if not self.draw(st.integers(0, 2)):
            self.sessions.append(self.world.new_session())
        rounds = self.draw(st.sampled_from(ROUNDS))
        self.world.connect(self.world.call(self._pick(self.sessions), rounds), self._plan())

    def connect(self) -> None:
        """A call is sent again, or its stream resumed."""
        client = self._pick(self._idle())
        streamed, lost = self.draw(st.booleans()), self.draw(st.sampled_from((0, 0, 0, 1, 2, 99)))
        self.world.connect(client, self._plan(), streamed=streamed, lost=lost)

    def answer(self) -> None:
        """A question is answered, perhaps not for the first time."""
        client, question = self._pick(self._asked())
        who = self.draw(st.sampled_from((OWNER,) * 9 + (STRANGER,)))
        self.world.answer(client, question, self._plan(), who)

    def cancel(self) -> None:
        if not self.draw(st.integers(0, 2)):
            self.world.cancel(self._pick(self.world.clients), self._plan())

    def end(self) -> None:
        if not self.draw(st.integers(0, 3)):
            self.world.end(self._pick(self.sessions), self._plan())

    def steal(self) -> None:
        self.world.steal(self._pick(self.world.clients))

    def wait(self) -> None:
        self.world.advance(self.draw(times), self.draw(st.booleans()))

    def delete_expired(self) -> None:
        self.world.delete_expired()

    def teardown(self) -> None:
        """Faults stop."""
        if sys.exc_info()[0] is None and hasattr(self, "draw"):
            self.world.settle()


@pytest.fixture(scope="module", autouse=True)
def aws() -> Iterator[None]:
    with on_moto(patched()):
        yield


def test_every_call_gets_one_response() -> None:
    check(CallsInSessions, STEPS)
