"""Durable tools over moto's DynamoDB and a double of Step Functions, and what must hold of them.

The workers' own handler runs programs (`programs.py`) as the real definition says
(`state_machine.py`). Every write to a row and to a journal is looked at as it happens, and all that
a program does: its steps, its undos, and what it gets from its operations.

A task of a program has a row, executions and a journal of its own. There may be several in one
history, also of each other's making: all that is kept here is kept by the task's id.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar, Final, cast

from mcp_tasks.durable.journal import OUTCOME
from mcp_tasks.durable.journal_table import JournalTable, record_of
from mcp_tasks.durable.record import Kind, Record, State
from mcp_tasks.durable.run import CHECK_CANCELLED_MS, Run
from mcp_tasks.durable.undo import UNDO
from mcp_tasks.registry.catalogue import FILE_NAME, Catalogue
from mcp_tasks.tasks.state import Status
from mcp_tasks.tasks.task import Task, now_ms
from mcp_tasks.tasks.task_item import task_of
from mcp_tasks.workflows.ask import ask
from mcp_tasks.workflows.execution_names import UNDO as UNDOING
from mcp_tasks.workflows.execution_names import execution_name, task_of_execution, undo_name
from mcp_tasks.workflows.execution_outcome import NOT_STARTED, NOT_UNDONE
from mcp_tasks.workflows.retry import TRANSIENT_ERROR
from tests.campaigns.model import dynamodb, programs
from tests.campaigns.model.actors import CALM, JOURNAL, TOOL, Actor, Killed, Plan
from tests.campaigns.model.dynamodb import Item
from tests.campaigns.model.history import MINUTE, START, begin, current
from tests.campaigns.model.programs import Trouble
from tests.campaigns.model.state_machine import (
    ASK,
    KILLED,
    KILLS,
    THROTTLED,
    TIMEOUT,
    WORKER,
    FunctionExecution,
    FunctionExecutions,
    Invocation,
    definitions,
)
from tests.campaigns.model.world import DUE, MACHINE, SKEW_MS, TOOLS, TaskWorld
from tests.campaigns.model.world import patched as tasks_patched
from tests.paths import ROOT
from tests.unit.support.aws import JOURNAL as JOURNAL_TABLE
from tests.unit.support.aws import TABLE

MAX_EVENTS: Final = 60
"""Of an execution's history, before its task goes on in another one: four runs, or a run with a map
of three lanes."""
FUNCTION_MS: Final = round(programs.TIMEOUT.total_seconds() * 1000) + 5_000
"""When Lambda stops a worker (`state_machine_definition.worker_timeout`)."""
ROUNDS: Final = 300
"""So often may something happen, or time pass, until all is settled."""
SWEEPS: Final = 16
"""So many looks of the sweeper end every task, once nothing fails and nothing waits any more."""

EXPECTED: Final = ("Boom", "StepFailed", "SubtaskFailed", "WaitTimedOut", "TaskCancelled")
"""What a worker may raise when nothing has failed."""
BREAKS: Final = frozenset({TRANSIENT_ERROR, THROTTLED, TIMEOUT, *KILLS})
"""What an execution that undoes may fail of, besides its end from outside."""


@dataclass(eq=False)
class Effect:
    """A step, an item of a map, or what undoes a step: each time that it was begun."""

    actor: Actor
    began: int
    """When, as a count of all that happened."""
    happened: bool = False
    """Whether it was not killed before it had its effect."""
    value: int | None = None
    """What it returned, if it did."""
    kept: bool = False
    """Of an undo: whether it was written how it ended."""


@dataclass(eq=False)
class Kept:
    """A record of a journal, when it was written, and by whom."""

    record: Record
    at: int
    by: Actor | None


@dataclass(eq=False)
class Log:
    """What happened to one task."""

    steps: dict[str, list[Effect]] = field(default_factory=lambda: defaultdict(list))
    """By place."""
    undos: dict[str, list[Effect]] = field(default_factory=lambda: defaultdict(list))
    specs: dict[str, dict[str, Any]] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)
    saw: dict[str, Any] = field(default_factory=dict)
    looks: Counter[str] = field(default_factory=Counter)
    undoing: int | None = None
    """When the first undo began, as a count."""
    ended_ms: int | None = None
    """When the row became terminal."""
    answered: set[str] = field(default_factory=set)
    """The questions whose answers have reached their state."""
    reported: list[tuple[str, int]] = field(default_factory=list)
    """What the operator was told is not undone; and when who said so had read the journal."""


class Durable(TaskWorld[FunctionExecutions]):
    """All there is in one run."""

    tools = tuple(replace(entry, module=programs.__name__, attribute=entry.name) for entry in TOOLS)
    script: ClassVar = "program"
    may_change: ClassVar = frozenset({*DUE, "undo", "statusMessage"})
    most_ms = FUNCTION_MS
    sweeps: ClassVar = SWEEPS
    rounds: ClassVar = ROUNDS

    def __init__(self, statistics: Counter[str], workers: dict[str, ModuleType]) -> None:
        super().__init__(statistics)
        dynamodb.empty(JOURNAL_TABLE)
        self.stale: list[Invocation] = []
        """Functions whose invocation may be delivered a second time."""
        self.logs: dict[str, Log] = defaultdict(Log)
        self.journals: dict[str, dict[str, Kept]] = defaultdict(dict)
        """The records by partition and id, as they are in the table."""
        self._read: dict[tuple[Actor | None, str], int] = {}
        """When an actor has read a partition last, as a count."""
        self._count = 0
        self._values = 0
        self._limits: dict[Actor, int] = {}
        """When an actor is stopped by Lambda."""
        self.begins: dict[Actor, int] = {}
        """When an actor began its run of a tool, which then asks each second whether to go on."""
        self.step_functions.on_end = self._check_execution
        journal: Any = self.stage.client(JOURNAL, dynamodb.InProcess(), self._journal)
        self._workers = workers
        for name, worker in workers.items():
            own: Any = worker
            own.entry, own.TOOL = self.catalogue.tools[name], name
            own.deployment = SimpleNamespace(
                task_table=self.rows,
                payloads=self.payloads,
                journal_table=JournalTable(journal, JOURNAL_TABLE),
                catalogue=self.catalogue,
            )

    def _account(self) -> FunctionExecutions:
        return FunctionExecutions(
            lambda: self.ms,
            self._arguments_of,
            lambda arn: DEFINITIONS[arn.removeprefix(MACHINE)],
        )

    # what goes on

    def invoke(self, invocation: Invocation, plan: Plan = CALM, killed_as: str = KILLED) -> None:
        """A state's function: a tool's worker, or the one that asks."""
        event = json.loads(json.dumps(invocation.event))
        invocation.times += 1
        worker = invocation.function == WORKER

        def work() -> Any:
            actor = self.stage.actor
            assert actor is not None
            self._limits[actor] = self._started[actor] + FUNCTION_MS
            if not worker:
                return self._serve(invocation.function, event)
            handler = self._workers[invocation.execution.machine.removeprefix(MACHINE)].handler
            try:
                return handler(event, Context(self._limits[actor] - self.ms))
            except Exception as error:
                name = type(error).__name__
                expected = bool(actor.hit) or name in EXPECTED
                self.require(expected, f"{actor.name} raised {error!r}, and nothing had failed")
                cause = json.dumps({"errorMessage": str(error), "errorType": name})
                return Failed(name, cause)

        def after(actor: Actor) -> None:
            if isinstance(actor.error, Killed):
                self.step_functions.failed(invocation, killed_as)
            elif actor.error is not None:
                self.step_functions.failed(invocation, type(actor.error).__name__)
            elif isinstance(actor.result, Failed):
                self.step_functions.failed(invocation, actor.result.error, actor.result.cause)
            else:
                self._check_output(actor, invocation)
                self.step_functions.returned(invocation, actor.result)

        what = f"{invocation.function.strip('${}')} {invocation.execution.name}"
        self.run(f"{what} at {invocation.line.at}", work, plan, after=after)

    def _serve(self, function: str, event: dict[str, Any]) -> Any:
        """A function of the stack that a state calls, and that is no tool's worker."""
        assert function == ASK
        return ask(event, self.rows, self.executions, now_ms())

    def task_of(self, execution: FunctionExecution) -> str:
        """The id of the task that an execution is of."""
        return _task(execution)

    def wait(self, seconds: float) -> None:
        """An actor lets time pass, in which it may be stopped by Lambda."""
        super().wait(seconds)
        self.step_functions.time_passes()
        self._alive()

    def advance(self, ms: int, killed: bool = False) -> None:
        super().advance(ms, killed)
        self.step_functions.time_passes()

    def _alive(self) -> None:
        """Lambda has stopped a function that ran for too long; it notices at its next call."""
        actor = self.stage.actor
        if actor is not None and self.ms >= self._limits.get(actor, self.ms + 1):
            raise Killed

    def _tick(self) -> int:
        self._count += 1
        return self._count

    # what programs do (`programs.Watch`)

    def saw(self, task_id: str, place: str, spec: dict[str, Any], value: Any) -> None:
        """A tool has got something from an operation: in each run the same."""
        log, value = self.logs[task_id], json.loads(json.dumps(value))
        seen = log.saw.setdefault(place, value)
        self.require(
            seen == value, f"{task_id} got {value} of operation {place}, and before {seen}"
        )
        if spec["do"] == "sleep":
            record = self._record(task_id, place)
            slept = self.clock_ms() - (record.written_at if record is not None else sys.maxsize)
            self.require(
                slept >= spec["seconds"] * 1000,
                f"{task_id} slept for {slept} ms, and not for {spec['seconds']} s",
            )

    def done(self, task_id: str, place: str, token: str, spec: dict[str, Any]) -> int:
        """A step, or an item of a map."""
        log = self.logs[task_id]
        log.specs[place] = spec
        self._check_step(task_id, place, token, spec)
        effect = self._begin(f"{task_id} does {place}", log.steps[place])
        self._happens(effect, spec)
        tries = sum(each.happened for each in log.steps[place])
        if tries <= spec.get("fails", 0):
            raise Trouble
        self._values += 1
        effect.value = self._values
        return effect.value

    def undone(self, task_id: str, place: str, spec: dict[str, Any], *given: Any) -> None:
        """What undoes a step was called."""
        log = self.logs[task_id]
        log.specs[place] = spec
        self._check_undo(task_id, place, given)
        effect = self._begin(f"{task_id} undoes {place}", log.undos[place])
        log.undoing = log.undoing or effect.began
        self._happens(effect, spec)
        tries = sum(each.happened for each in log.undos[place])
        if tries <= spec.get("undo_fails", 0):
            raise Trouble
        effect.value = 1

    def looked(self, task_id: str, place: str, times: int) -> int:
        """A check was made."""
        looks = self.logs[task_id].looks
        looks[place] += 1
        return looks[place] if looks[place] >= times else 0

    def _begin(self, what: str, effects: list[Effect]) -> Effect:
        assert self.stage.actor is not None
        self.told.append(f"{what}, at {self.ms - START} ms")
        effects.append(Effect(self.stage.actor, self._tick()))
        return effects[-1]

    def _happens(self, effect: Effect, spec: dict[str, Any]) -> None:
        """Others may come between the beginning, the effect, and the end; and it may be killed."""
        self.stage.call(TOOL, "work", self._alive)
        if spec.get("takes"):
            self.wait(spec["takes"])
        effect.happened = True
        self.stage.call(TOOL, "work", self._alive)

    # what must hold of what programs do

    def _check_step(self, task_id: str, place: str, token: str, spec: dict[str, Any]) -> None:
        log, actor = self.logs[task_id], self.stage.actor
        assert actor is not None
        what = f"{actor.name} does {place}"
        known = log.tokens.setdefault(place, token)
        self.require(known == token, f"{what}, with another token than before")
        kept = self._kept(task_id, place)
        if kept is not None and kept.record.ended:
            read = self._read.get((actor, self._partition(task_id, place)), 0)
            self.require(kept.at > read, f"{what}, which it knew to be done")
            self.statistics["steps that another run ended meanwhile"] += 1
        if log.ended_ms is not None and not spec.get("undo"):
            late = self.ms - max(log.ended_ms, self.begins[actor])
            self.require(late <= CHECK_CANCELLED_MS, f"{what}, {late} ms after the end of its task")
        if log.undoing is not None and spec.get("undo"):
            begun = kept is not None and kept.at < log.undoing
            self.require(begun, f"{what}, though its task is being undone")

    def _check_undo(self, task_id: str, place: str, given: tuple[Any, ...]) -> None:
        actor = self.stage.actor
        assert actor is not None
        what = f"{actor.name} undoes {place}"
        row = dynamodb.item(TABLE, task_id)
        failed = self._find(task_id, OUTCOME) is not None
        if row is not None:
            over = task_of(row).status in (Status.CANCELLED, Status.FAILED)
            self.require(failed or over, f"{what}, though the task has not failed")
        done = self._record(task_id, place)
        begun = done is not None and (done.state is State.DONE or not given)
        self.require(begun, f"{what}, which is not done")
        if given and done is not None:
            self.require(given == (done.value,), f"{what} with {given}, and not {done.value}")
        undone = self._find(task_id, f"{UNDO}{_id(place)}")
        ended = undone is not None and undone.record.ended
        self.require(not ended, f"{what} once more")
        for later in self._undoable(task_id):
            if int(later.id) > int(_id(place)):
                before = self._find(task_id, f"{UNDO}{later.id}")
                over = before is not None and before.record.ended
                self.require(over, f"{what} before {later.operation.name}, which came later")
        for other in self.logs[task_id].undos[place]:
            alive = not other.actor.done and self.ms < self._limits[other.actor]
            skew = actor.plan.skew_ms - other.actor.plan.skew_ms
            alone = other.kept or other.actor is actor or not alive or skew != 0
            self.require(alone, f"{what} while {other.actor.name} does")

    # what must hold of journals

    def _journal(self, operation: str, arguments: dict[str, Any], real: Any) -> Any:
        self._alive()
        if operation != "put_item":
            answer = real(**arguments)
            partition = arguments["ExpressionAttributeValues"][":pk"]["S"]
            self._read[self.stage.actor, partition] = self._tick()
            return answer
        item = arguments["Item"]
        partition, record = item["pk"]["S"], record_of(item)
        before = self.journals[partition].get(record.id)
        answer = real(**arguments)
        by = self.stage.actor.name if self.stage.actor else "?"
        if before is not None:
            kept = f"{partition} {record.id} was {before.record.state} {before.record.value}"
            now = f"{by} wrote {record.state} {record.value}"
            self.require(not before.record.ended, f"{kept}; {now}")
            self.require(before.record.operation == record.operation, f"{kept}; {now}")
        self.told.append(f"{by} writes {record.id} {record.state} {record.value or ''}")
        self.journals[partition][record.id] = Kept(record, self._tick(), self.stage.actor)
        if record.id.startswith(UNDO) and record.state is not State.STARTED:
            place = str(int(record.id.removeprefix(UNDO)))
            for effect in self.logs[partition.partition("#")[2]].undos[place]:
                effect.kept = effect.kept or effect.actor is self.stage.actor
        return answer

    def _partition(self, task_id: str, place: str) -> str:
        row = dynamodb.item(TABLE, task_id)
        tool = row["tool"]["S"] if row is not None else "?"
        return f"{tool}#{task_id}" + (f"#{_id(place)}" if "." in place else "")

    def _find(self, task_id: str, record_id: str) -> Kept | None:
        return self.journals[self._partition(task_id, "")].get(record_id)

    def _kept(self, task_id: str, place: str) -> Kept | None:
        """The record of an operation, or of a map's item."""
        records = self.journals[self._partition(task_id, place)]
        if "." not in place:
            return records.get(_id(place))
        index = f"#{int(place.partition('.')[2]):06}"
        return next((kept for name, kept in records.items() if name.endswith(index)), None)

    def _record(self, task_id: str, place: str) -> Record | None:
        kept = self._kept(task_id, place)
        return None if kept is None else kept.record

    def _undoable(self, task_id: str) -> list[Record]:
        """The records of what is done, and has something that undoes it."""
        kept = self.journals[self._partition(task_id, "")].values()
        records = [each.record for each in kept if each.record.undo is not None]
        return [each for each in records if each.state is State.DONE]

    # what must hold of executions

    def _check_output(self, actor: Actor, invocation: Invocation) -> None:
        """What a run's end says of what comes next."""
        if invocation.function != WORKER or not isinstance(actor.result, dict):
            return
        task_id = invocation.event["task"]
        if "wait" in actor.result and not invocation.event.get("undo"):
            self._check_wait(actor, task_id)
        for effects in self.logs[task_id].steps.values():
            for effect in effects:
                if effect.actor is actor and effect.value is not None and not actor.hit:
                    self._check_recorded(task_id, effects, effect)

    def _check_wait(self, actor: Actor, task_id: str) -> None:
        """The state machine does not run a tool that still sleeps."""
        now, partition = self.ms + actor.plan.skew_ms, self._partition(task_id, "")
        until = datetime.fromisoformat(actor.result["wait"]["until"]).timestamp() * 1000
        for _, kept in sorted(self.journals[partition].items()):
            if kept.by is not actor and kept.at > self._read.get((actor, partition), 0):
                continue  # another run has come further
            asleep = kept.record.operation.kind is Kind.SLEEP and (kept.record.due_at or 0) > now
            early = asleep and self._find(task_id, OUTCOME) is None
            self.require(
                not early or until >= (kept.record.due_at or 0),
                f"{actor.name} is to run again before its sleep has ended",
            )
            if asleep:
                return  # what comes after it was reached by a clock that is ahead

    def _check_recorded(self, task_id: str, effects: list[Effect], effect: Effect) -> None:
        (place,) = (p for p, each in self.logs[task_id].steps.items() if each is effects)
        record = self._record(task_id, place)
        self.require(
            record is not None and record.state is not State.STARTED,
            f"{effect.actor.name} has done {place}, and did not keep it",
        )

    def _check_start(self, name: str) -> None:
        """One execution goes on with a task; one undoes it, when all others have ended."""
        task_id, which = task_of_execution(name)
        row = dynamodb.item(TABLE, task_id)
        self.require(row is not None, f"{name} has no row")
        executions = self._named(task_id)
        alive = [e.name for e in executions if e.running]
        if which != UNDOING:
            self.require(len(alive) <= 1, f"{alive} run at once")
            names = [task_id, *(f"{task_id}-{n + 2}" for n in range(len(executions) - 1))]
            self.require([e.name for e in executions] == names, f"{names} are not in order")
            return
        assert row is not None
        task = task_of(row)
        self.require(not alive, f"{alive} run on while their task is undone")
        self.require(
            task.status in (Status.CANCELLED, Status.FAILED), f"{name} undoes what is {task.status}"
        )

    def _check_execution(self, execution: FunctionExecution) -> None:
        """An execution has ended."""
        if task_of_execution(execution.name)[1] == UNDOING and execution.status == "FAILED":
            honest = execution.error in BREAKS or execution.cause == BROKEN_OFF
            self.require(honest, f"{execution.name} failed: {execution.error}")

    def _heard(self, event: dict[str, Any]) -> None:
        """Without waiting for the sweeper, a task ends, goes on, or begins to be undone."""
        row = dynamodb.item(TABLE, _task_of(event["name"]))
        task = None if row is None else task_of(row)
        if task is None or event["name"] != execution_name(task):
            return
        found = self._named(task.task_id)
        if any(self.ms < max(e.seen_from, e.end_seen_from) for e in found):
            return  # DescribeExecution does not know of it yet
        if any(self.step_functions.find(e.machine, e.name) is None for e in found):
            return  # it has forgotten it
        over = task.status.terminal or task.expired(self.ms)
        self.require(over, f"{event['name']} has ended, and {task.task_id} goes on in nothing")
        if task.undo and task.status in (Status.CANCELLED, Status.FAILED):
            undoing = self.step_functions.of(undo_name(task.task_id))
            self.require(bool(undoing), f"{task.task_id} is over, and is not being undone")

    def _named(self, task_id: str) -> list[FunctionExecution]:
        found = [e for e in self.step_functions.executions if _task(e) == task_id]
        return [e for e in found if e.name != undo_name(task_id)]

    def _at_work(self, task_id: str) -> list[FunctionExecution]:
        found = self.step_functions.executions
        return [e for e in found if e.running and _task(e) == task_id]

    # what must hold of rows

    def _rows(self, operation: str, arguments: dict[str, Any], real: Any) -> Any:
        self._alive()
        return super()._rows(operation, arguments, real)

    def _written(self, task_id: str, before: Item | None, after: Item | None) -> None:
        super()._written(task_id, before, after)
        assert after is not None
        new, log = task_of(after), self.logs[task_id]
        if new.status.terminal and log.ended_ms is None:
            log.ended_ms = self.ms
        bad = new.status in (Status.CANCELLED, Status.FAILED)
        lost = bad and new.undo and "reconcileAt" not in after
        self.require(not lost, f"{task_id} is to be undone, and the sweeper does not see it")
        if before is None:
            return
        old = task_of(before)
        self.require(
            new.execution == old.execution or new.execution == old.execution + 1,
            f"{task_id} goes on in execution {new.execution} after {old.execution}",
        )
        for ask_id in new.asks.keys() - old.asks.keys():
            asked = new.asks[ask_id]
            token = self.step_functions.tokens[asked.token]
            again = log.answered & set(asked.names.values())
            over = token.execution.name != execution_name(new)
            waits = token.waits == "waiting" and not over
            self.require(not (again and waits), f"{task_id} asks {again} once more")

    def _failed_with_reason(self, task: Task) -> bool:
        if task.execution > 1 and (task.status_message or "").startswith(NOT_STARTED):
            before = execution_name(replace(task, execution=task.execution - 1))
            if self.step_functions.find(task.state_machine_arn, before) is None:
                return True  # 90 days have passed, in which nobody started its successor
        return super()._failed_with_reason(task)

    def _check_after_end(self, old: Task, new: Task, require: Callable[..., None]) -> None:
        if (old.undo, old.status_message) == (new.undo, new.status_message):
            return
        require(old.undo and not new.undo, "what is over changed")
        if new.status_message != old.status_message:
            told = (new.status_message or "").startswith(NOT_UNDONE)
            require(told, f"what is over says {new.status_message}")

    def _states(self, operation: str, arguments: dict[str, Any], real: Any) -> Any:
        answer = super()._states(operation, arguments, real)
        if operation == "send_task_success":
            token = self.step_functions.tokens[arguments["taskToken"]]
            self.logs[_task(token.execution)].answered |= token.names
        return answer

    def _seen(self, view: dict[str, Any]) -> dict[str, Any]:
        """What clients see of an end, and what stays so: what is not undone is told later."""
        return {name: value for name, value in view.items() if name != "statusMessage"}

    # the end

    def settle(self, answering: bool) -> None:
        """Faults stop, and no event arrives. Every task ends and is undone, if that has to be."""
        for actor in list(self.suspended):
            self.go_on(actor, finish=True)
        self.arrive()
        self.step_functions.lag_ms = 0
        self.advance(2 * SKEW_MS)
        sweeps = 0
        for _ in range(self.rounds):
            self._work_off(answering)
            rows = dynamodb.items(TABLE)
            if not any("reconcileAt" in row for row in rows):
                break
            waits = [until - self.ms for until in self.step_functions.waits()]
            ends = [task.expires_at + 3 * MINUTE - self.ms for task in self._live()]
            if waits:
                self.advance(max(1, min(*waits, max([self.due_in_ms(), MINUTE]))))
            else:
                sweeps += 1
                self.advance(max(MINUTE, self.due_in_ms(), 0 if answering else max([0, *ends])))
            self.sweep()
            self.require(sweeps <= self.sweeps, f"{sweeps} sweeps, and not all tasks are settled")
        self.check_settled()

    def _work_off(self, answering: bool) -> None:
        going = True
        while going:
            going = False
            for execution in self.step_functions.executions:
                for line in self.step_functions.movable(execution):
                    self.step_functions.go_on(execution, line)
                    going = True
                for invocation in execution.invocations:
                    self.invoke(invocation)
                    going = True
            for task in self._live() if answering else ():
                if task.outstanding and not task.expired(self.ms):
                    going = True
                    self.update(self.owner(task.task_id), task.task_id, list(task.outstanding))

    def check_settled(self) -> None:
        super().check_settled()
        for row in dynamodb.items(TABLE):
            self._check_undone(task_of(row))

    def _check_undone(self, task: Task) -> None:
        """What a failed task did is undone or named; what a completed one did is not undone."""
        log, task_id = self.logs[task.task_id], task.task_id
        failed = self._find(task_id, OUTCOME) is not None
        bad = task.status in (Status.CANCELLED, Status.FAILED)
        self.require(not (bad and task.undo), f"{task_id} is {task.status}, and not undone")
        if task.status is Status.COMPLETED and not failed:
            self.require(not log.undos, f"{task_id} is completed, and {list(log.undos)} undone")
            return
        reported = [names for names, _ in log.reported]
        told = " ".join([*reported, str(task.status_message), json.dumps(task.result or {})])
        told += str((task.error or {}).get("message"))
        told = told if NOT_UNDONE.strip() in told or log.reported else ""
        all_named = "some steps" in told or "all steps" in told or "unknown" in told
        for record in self._undoable(task_id):
            place = str(int(record.id))
            undone = self._find(task_id, f"{UNDO}{record.id}")
            succeeded = [e for e in log.undos[place] if e.value is not None]
            if undone is not None and undone.record.state is State.DONE:
                self._check_once(task_id, place, succeeded)
                continue
            named = record.operation.name in told or all_named
            self.require(named, f"{task_id}: {place} is not undone, and nobody was told: {told}")
            done = self._find(task_id, record.id)
            for names, read in log.reported:
                known = undone is None and record.operation.name in names.split(", ")
                known = known and done is not None and done.at < read
                self.require(not known, f"{task_id}: {place} was given up, and could be undone")

    def _check_once(self, task_id: str, place: str, succeeded: list[Effect]) -> None:
        self.require(bool(succeeded), f"{task_id}: {place} is said to be undone, and is not")
        disturbed = [e for e in succeeded if not e.kept and _was_disturbed(e.actor)]
        self.require(
            len(succeeded) - len(disturbed) <= 1, f"{task_id}: {place} was undone more than once"
        )

    def not_undone(self, task_id: str, names: str) -> None:
        """The operator is told of steps that are not undone. None of them may still run."""
        log, actor = self.logs[task_id], self.stage.actor
        assert actor is not None
        read = self._read.get((actor, self._partition(task_id, "")), 0)
        log.reported.append((names, read))
        for place, effects in log.steps.items():
            record = None if "." in place else self._record(task_id, place)
            if record is None or record.operation.name not in names.split(", "):
                continue
            runs = [e.actor for e in effects if not e.actor.done and e.actor is not actor]
            alive = [a.name for a in runs if self.ms < self._limits[a] and a.plan.skew_ms == 0]
            still = record.state is State.STARTED and actor.plan.skew_ms == 0 and alive
            self.require(not still, f"{task_id}: {place} is given up, while {alive} do it")

    def come_late(self) -> None:
        """Whatever is left arrives after all; it changes nothing."""
        self.step_functions.lag_ms = 0
        for event in list(self.step_functions.events):
            self.hear(event)
        for invocation in self.stale:
            if invocation.function != WORKER:
                self.invoke(invocation)
        for task_id, keys in self.questions.items():
            self.update(self.owner(task_id), task_id, keys)
        for task_id in self.acknowledged:
            self.get(self.owner(task_id), task_id)
        self.advance(4 * MINUTE)
        self.sweep()
        self.check_settled()


@dataclass(frozen=True)
class Failed:
    """A function raised an exception."""

    error: str
    cause: str


@dataclass(frozen=True)
class Context:
    """What Lambda passes beside the event."""

    remaining_ms: int
    function_name: str = "worker"
    memory_limit_in_mb: int = 512
    invoked_function_arn: str = "arn:aws:lambda:us-east-1:123456789012:function:worker"
    aws_request_id: str = "1"

    def get_remaining_time_in_millis(self) -> int:
        return self.remaining_ms


BROKEN_OFF: Final = "from outside"
"""The cause of an execution's failure that the test makes up."""
DEFINITIONS: Final = definitions(programs.TOOLS)


def _was_disturbed(actor: Actor) -> bool:
    """Whether a fault kept an actor from writing down what it did; or a clock, from being alone."""
    return bool(actor.hit or actor.plan.skew_ms) or isinstance(actor.error, Killed)


def _task(execution: Any) -> str:
    return _task_of(execution.name)


def _task_of(name: str) -> str:
    return task_of_execution(name)[0]


def _id(place: str) -> str:
    """The id of an operation's record."""
    return f"{int(place.partition('.')[0]):06}"


@contextmanager
def patched(folder: Path) -> Iterator[dict[str, ModuleType]]:
    """Time is a world's, and histories are short. Yields the workers of all tools."""
    Catalogue(Durable.tools).write(folder / FILE_NAME)
    with tasks_patched() as patch:
        patch.setattr("mcp_tasks.deployment.BUNDLE", folder)
        patch.setattr("mcp_tasks.workflows.tool_run.MAX_EVENTS", MAX_EVENTS)
        patch.setattr("mcp_tasks.metrics.count", lambda metric: None)
        patch.setattr("mcp_tasks.workflows.undo_execution.audit", _audit)
        patch.setattr(Run, "__post_init__", _begins(Run.__post_init__))
        yield {name: _worker(name, patch) for name in programs.TOOLS}


def _begins(post_init: Callable[[Run], None]) -> Callable[[Run], None]:
    def begins(run: Run) -> None:
        world = cast(Durable, current())
        if world.stage.actor is not None:
            world.begins[world.stage.actor] = world.ms
        post_init(run)

    return begins


def _audit(action: str, task_id: str, principal: str | None, **more: str) -> None:
    cast(Durable, current()).not_undone(task_id, more["not_undone"])


def _worker(tool: str, patch: Any) -> ModuleType:
    """The worker of a tool, loaded as a new instance loads it."""
    patch.setenv("TOOL", tool)
    file = ROOT / "functions" / "worker" / "handler.py"
    spec = importlib.util.spec_from_file_location(f"worker_of_{tool}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def new_world(statistics: Counter[str], workers: dict[str, ModuleType]) -> Durable:
    """An empty world, whose clock is the one that counts from now on."""
    world = Durable(statistics, workers)
    begin(world)
    return world


def running(world: Durable) -> list[FunctionExecution]:
    """The executions that run, the newest first."""
    return [e for e in reversed(world.step_functions.executions) if e.running]
