"""Run a function for each item, side by side: `task.map` and `task.gather`.

The items are dealt out to lanes: of 10 lanes, lane 3 has the items 3, 13, 23, ... A lane is an
invocation of its own, of which the state machine runs all at once. It repeats the tool up to the
map, and then runs its items one after the other, each with as much time as a step has. When all
lanes have ended, the tool runs again, and sees whether there are items left.

So a map costs no transition for each item, and an item is not tied to the time of the others. The
functions and the items need not be sent anywhere: the lane has them from the tool itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from ..registry.durable_operations import StepOptions
from .attempts import Attempt, Attempts, failure_of
from .journal import item_id
from .record import Failure, Kind, Operation, Record, State
from .run import Run
from .slot import Slot
from .suspension import ReplayEnded
from .typed_value import TypedValue

MAX_ITEMS: Final = 10_000
MAX_LANES: Final = 40
"""Step Functions developer guide, "Map state processing modes": an inline Map has at most 40
iterations at once."""

MAX_STALLS: Final = 5
"""How often the lanes of a map may be killed without having done anything."""


@dataclass(frozen=True, slots=True)
class Map:
    """A map that the tool has come to."""

    attempts: Attempts
    slot: Slot
    calls: Sequence[Callable[[], Any]]
    types: Sequence[TypedValue]
    options: StepOptions

    @property
    def run(self) -> Run:
        """The run that has come to the map."""
        return self.attempts.run

    async def results(self, concurrency: int, tolerate: int) -> list[Any]:
        """What the function returned for each item; StepFailed or ToolError for one that failed.

        As many as `concurrency` run at once. Raises the failure of an item when more than
        `tolerate` have failed, and ValueError for too many items.
        """
        if len(self.calls) > MAX_ITEMS:
            raise ValueError(f"a map has at most {MAX_ITEMS} items")
        lanes = min(concurrency, len(self.calls), MAX_LANES)
        if not self.calls:
            return []
        lane, record = self.run.lane, self.slot.record
        if lane is not None and lane.map_id == self.slot.id:
            await self._run_lane(lane.number, lanes, tolerate)
        # Race: another run counts that lanes were killed, while this one writes the end of the map.
        while record is None or not record.ended:
            record = self._go_on(record, lanes, tolerate)
        if record.failure is not None:
            raise failure_of(self.slot.operation.name, record.failure)
        kept = self.run.journal.whole(self.run.journal.value(record))
        return [self._result(*each) for each in zip(kept, self.types, strict=True)]

    def _result(self, kept: Mapping[str, Any], typed: TypedValue) -> Any:
        if "failure" in kept:
            return failure_of(self.slot.operation.name, Failure(**kept["failure"]))
        return typed.from_json(kept["value"])

    def _go_on(self, record: Record | None, lanes: int, tolerate: int) -> Record:
        """Run the items that are left, or write the end of the map. Raises Suspended."""
        self.run.go_forward()
        found = self.run.journal.items(self.slot.id)
        record = self._count_stalls(record, found)
        if record.ended:
            return record
        ended = {index: each for index, each in found.items() if each.ended}
        failed = [each for _, each in sorted(ended.items()) if each.failure is not None]
        if len(failed) > tolerate:
            return self.run.journal.write(
                self.slot.new(State.FAILED, failure=failed[0].failure, attempts=1)
            )
        if len(ended) == len(self.calls):
            kept = [_kept(ended[index]) for index in range(len(self.calls))]
            return self.run.journal.write(self.slot.new(State.DONE, value=kept, attempts=1))
        waiting = [each.due_at or 0 for each in found.values() if each.state is State.WAITING]
        if len(waiting) + len(ended) == len(self.calls) and min(waiting) > self.run.clock():
            self.run.suspend(min(waiting))
        return self.run.suspend(0, self.slot.id, lanes)

    def _count_stalls(self, record: Record | None, found: Mapping[int, Record]) -> Record:
        """Begin the map, or count how often its lanes were killed and got nothing done.

        An item that kills its function each time would else do so as long as the task lives.
        """
        done = len(found) + sum(each.attempts for each in found.values())
        if record is None:
            return self.run.journal.write(self.slot.new(State.STARTED, value=done))
        if record.ended or not self.run.killed_lanes:
            return record
        stalls = record.attempts + 1 if record.value == done else 0
        if stalls > MAX_STALLS:
            failure = Failure("Killed", "its function was killed again and again")
            return self.run.journal.write(
                self.slot.new(State.FAILED, failure=failure, attempts=stalls)
            )
        return self.run.journal.write(self.slot.new(State.STARTED, value=done, attempts=stalls))

    async def _run_lane(self, number: int, lanes: int, tolerate: int) -> NoReturn:
        """Run the items of a lane that are left, as far as there is time."""
        found = self.run.journal.items(self.slot.id, f"{number:02}#")
        failures = sum(each.failure is not None for each in found.values())
        for index in range(number, len(self.calls), lanes):
            record = found.get(index)
            if record is not None and (record.ended or self._waits(record)):
                continue
            if failures > tolerate or not self.run.has_time(self.options.timeout):
                break
            self.run.check_cancelled_sometimes()
            record = await self.attempts.once(self._attempt(number, index, record), record)
            failures += record.failure is not None
        raise ReplayEnded

    def _attempt(self, lane: int, index: int, record: Record | None) -> Attempt:
        operation = Operation(Kind.ITEM, self.slot.operation.name)
        return Attempt(
            Slot(item_id(lane, index), operation, record),
            self.calls[index],
            self.types[index],
            self.options,
            map_id=self.slot.id,
        )

    def _waits(self, record: Record) -> bool:
        return (record.due_at or 0) > self.run.clock()


def _kept(record: Record) -> dict[str, Any]:
    """An item's result, as the map's record has it. A large one stays where it is."""
    if record.failure is not None:
        return {"failure": {"name": record.failure.name, "message": record.failure.message}}
    pointer = record.payload
    return {"value": record.value if pointer is None else pointer.as_json()}
