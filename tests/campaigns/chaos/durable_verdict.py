"""What came of the tasks of durable tools: what they did, by the ledger, against their journals.

The ledger has each effect with the token of its step, and with when the run began in which it
happened. The journal has which operations have ended, and how; and the proxy has when a record of
that was written. So an effect that happens again is told apart:

- The run that repeated it began before the record was written: it could not know. That is promised
  of steps whose run is killed between the effect and the record. It has the same token.
- The run began afterwards: it has read the record, and has done a finished step again. A violation.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

from mcp_tasks.crash_report import without_reference
from mcp_tasks.durable.identity import unique_id
from mcp_tasks.durable.journal import HEAD, OUTCOME
from mcp_tasks.durable.record import Kind, Record, State
from mcp_tasks.durable.undo import UNDO
from mcp_tasks.workflows.execution_outcome import NOT_UNDONE
from tests.campaigns.chaos.clients import Life
from tests.campaigns.chaos.evidence import DurablyNoted

SOME_STEPS: Final = f"{NOT_UNDONE}some steps"
"""What a row says when the execution that undoes has failed."""

SUBTASK_FAILED: Final = "The tool failed: SubtaskFailed"
"""What a task says whose subtask was killed before its first operation."""


@dataclass(slots=True)
class DurableVerdict:
    """The figures of the tasks of durable tools."""

    tasks: int = 0
    steps: int = 0
    """Steps that are done, items of maps included."""
    repeated: int = 0
    """Steps, of these, whose effect came more than once, because a run was killed in between."""
    attempts: int = 0
    """Of steps that fail at first, or for good."""
    items: int = 0
    sleeps: int = 0
    undone: int = 0
    """Steps, and what `on_cancel` names, that were undone."""
    undone_again: int = 0
    """Of these, those whose undo was killed after its effect, and came again."""
    not_undone: int = 0
    """Steps that are named as not undone: their run was killed, or their undo was given up."""
    successors: int = 0
    """Executions that a task went on in."""
    named: Counter[str] = field(default_factory=Counter)
    """How these are named, and what their undo came to -> how often."""
    failures: Counter[str] = field(default_factory=Counter)
    """What the tasks failed with that were not to fail, and had begun no durable operation."""
    lost: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """Task -> what is missing, or wrong."""
    twice: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """Task -> what was done once more though it was known to be done."""


@dataclass(frozen=True, slots=True)
class Told:
    """A task of a durable tool, and all that is known of it."""

    task_id: str
    row: Mapping[str, Any] | None
    life: Life | None
    """None for a task that nobody was told of."""
    records: Mapping[str, Record]
    """By place."""
    ended: Mapping[str, float]
    """When the record of an operation's end was written, by place."""
    noted: Sequence[DurablyNoted]
    given_up: bool = False
    """Whether the execution that undoes has failed because it was killed again and again."""

    @property
    def status(self) -> str:
        """The row's."""
        return str(self.row["status"]["S"]) if self.row is not None else "gone"

    @property
    def ended_badly(self) -> bool:
        """Whether what it did was to be undone. A tool that fails writes so first."""
        return self.status in ("failed", "cancelled") or OUTCOME in self.records

    def place_of(self, token: str) -> str:
        """The place of the operation with a token; nothing when the journal has none."""
        tokens = {str(unique_id(self.task_id, place)): place for place in self.records}
        return tokens.get(token, "")


def judge_durable(tasks: Sequence[Told]) -> DurableVerdict:
    """Compare what durable tools did with what is promised."""
    verdict = DurableVerdict(tasks=len(tasks))
    for task in tasks:
        verdict.lost[task.task_id] += [
            *_steps(task, verdict),
            *_undone(task, verdict),
            *_sleeps(task, verdict),
            *_end(task, verdict),
        ]
        verdict.twice[task.task_id] += _again(task, verdict)
    verdict.lost = {task_id: wrong for task_id, wrong in verdict.lost.items() if wrong}
    verdict.twice = {task_id: wrong for task_id, wrong in verdict.twice.items() if wrong}
    return verdict


def _effects(task: Told, *whats: str) -> dict[str, list[DurablyNoted]]:
    """What was noted in steps, by the step's token."""
    found = defaultdict(list)
    for each in task.noted:
        if each.what in whats:
            found[each.token].append(each)
    return dict(found)


def _again(task: Told, verdict: DurableVerdict) -> Iterator[str]:
    """What was done by a run that could know that it was done, or twice by one run."""
    for token, effects in _effects(task, "did", "undid", "tried").items():
        place = task.place_of(token)
        what = f"{effects[-1].what} {effects[-1].key} ({place or token})"
        for each in effects:
            if place in task.ended and each.began > task.ended[place]:
                late = each.began - task.ended[place]
                yield f"{what} in a run that began {late:.2f} s after it had ended"
        done = [each for each in effects if each.what != "tried"]
        if len({each.began for each in done}) < len(done):
            yield f"{what} twice in one run"
        if len(done) > 1:
            verdict.repeated += done[0].what == "did"
            verdict.undone_again += done[0].what == "undid"
        verdict.attempts += len(effects) - len(done)


def _steps(task: Told, verdict: DurableVerdict) -> Iterator[str]:
    """What is not done of what the journal says is done, or is done otherwise."""
    effects = _effects(task, "did")
    for place, record in task.records.items():
        if record.operation.kind not in (Kind.STEP, Kind.ITEM) or record.state is not State.DONE:
            continue
        verdict.steps += 1
        verdict.items += record.operation.kind is Kind.ITEM
        values = {each.value for each in effects.get(str(unique_id(task.task_id, place)), ())}
        if record.value not in values:
            yield f"{record.operation} ({place}) is done, and has no effect"
    unfinished = [
        each[0].key
        for token, each in effects.items()
        if not _done(task.records.get(task.place_of(token)))
    ]
    if unfinished and task.status == "completed" and not task.ended_badly:
        yield f"is completed, and these are not done: {unfinished}"
    if task.life is not None and task.life.fate == "completed" and task.life.last is not None:
        result = task.life.last["result"]
        if not result.get("isError"):
            yield from _results(task, result["structuredContent"])


def _results(task: Told, found: Mapping[str, Any]) -> Iterator[str]:
    """What a task has returned that its journal does not have."""
    steps = {
        each.operation.key: each.value
        for each in task.records.values()
        if each.operation.kind is Kind.STEP
    }
    maps = [
        [each["value"] for each in record.value]
        for record in task.records.values()
        if record.operation.kind is Kind.MAP and record.state is State.DONE
    ]
    of_functions = {value for values in maps for value in values}
    for key, value in found["steps"].items():
        if steps.get(key) != value and value not in of_functions:
            yield f"returned {value} for {key}, and the journal has {steps.get(key)}"
    items = {
        int(each.key): each.value
        for each in task.noted
        if each.what == "did" and each.key.isdigit() and each.value in found["items"]
    }
    if found["items"] and found["items"] not in maps:
        yield "returned items that the journal does not have"
    if [items.get(index) for index in range(len(found["items"]))] != found["items"]:
        yield f"returned items out of order: {found['items']}, {items}"


def _undone(task: Told, verdict: DurableVerdict) -> Iterator[str]:
    """What is not undone and was to be, is undone and was not to be, or in another order."""
    undid = [each for each in task.noted if each.what == "undid"]
    if not task.ended_badly:
        if undid:
            yield f"is {task.status}, and {len(undid)} were undone"
        return
    places = [task.place_of(each.token).removeprefix(UNDO) for each in undid]
    if any(before < after for before, after in pairwise(places)):
        yield f"was undone in the order {places}"
    for place, each in zip(places, undid, strict=True):
        record = task.records.get(place)
        if record is None or (record.value or "on cancel") != each.value:
            yield f"undid {each.value}, which is not what {place or each.token} did"
    row = json.dumps(task.row)
    some = (SOME_STEPS,) if task.given_up else ()
    for place, record in task.records.items():
        if record.undo is None or record.state is State.FAILED:
            continue
        if record.state is State.STARTED and not _began(task, place):
            continue  # the task was cancelled before the step began
        undo = task.records.get(f"{UNDO}{place}")
        if undo is not None and undo.state is State.DONE and place in places:
            verdict.undone += 1
        elif record.state is State.DONE and not (undo and undo.state is State.FAILED):
            yield from _not_undone(record, place, verdict, row, some)
        else:
            named = (f"{NOT_UNDONE}{record.operation.name}", f", {record.operation.name}")
            yield from _not_undone(record, place, verdict, row, (*some, *named))


def _began(task: Told, place: str) -> bool:
    """Whether a step has had an effect, or its task's row says that it may have had one."""
    token = str(unique_id(task.task_id, place))
    noted = any(each.token == token for each in task.noted)
    return noted or "undo" in (task.row or {})


def _not_undone(
    record: Record, place: str, verdict: DurableVerdict, row: str, names: Sequence[str]
) -> Iterator[str]:
    """A step that is not undone is one that its task's row names."""
    found = next((name for name in names if name in row), None)
    if found is not None:
        verdict.not_undone += 1
        verdict.named[f"{found}: {record.operation.kind}, {record.state}"] += 1
    else:
        yield f"{record.operation} ({place}, {record.state}) is not undone, and nobody says so"


def _sleeps(task: Told, verdict: DurableVerdict) -> Iterator[str]:
    """The sleeps that were too short. A later run comes to the same sleep, and wakes at once."""
    began: dict[str, DurablyNoted] = {}
    woke: set[str] = set()
    for each in task.noted:
        if each.what == "sleeps":
            began.setdefault(each.key, each)
        elif each.what == "woke" and each.key not in woke:
            woke.add(each.key)
            verdict.sleeps += 1
            before = began[each.key]
            if each.at < before.at + before.value:
                yield f"slept {each.at - before.at:.2f} s, and not {before.value}"


def _end(task: Told, verdict: DurableVerdict) -> Iterator[str]:
    """What is wrong with the end of a task that its client was told of."""
    life = task.life
    if life is None or life.fate != "failed" or life.last is None:
        return
    message = without_reference(life.last["error"]["message"])
    if life.call.kind.crashes and message.startswith("The tool failed: ValueError"):
        return
    of_subtask = life.call.kind.tool == "grow" and message == SUBTASK_FAILED
    if HEAD not in task.records or of_subtask:
        verdict.failures[message] += 1
    else:
        yield f"failed, and was not to: {message}"


def _done(record: Record | None) -> bool:
    return record is not None and record.state is State.DONE
