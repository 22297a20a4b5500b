"""Trees of durable tools and the tools that they call, and what must hold of them (SEP-2268).

Beside what must hold of every durable tool (`durable.py`), which each task of a tree is held to by
itself, every write is looked at for what ties the tasks of a tree together.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Final

import pytest
from botocore.exceptions import ClientError

from mcp_tasks.durable.journal import item_id, journal_partition
from mcp_tasks.durable.journal_table import JournalTable, record_of
from mcp_tasks.durable.record import Kind, Record, State
from mcp_tasks.registry.catalogue import ToolEntry
from mcp_tasks.tasks.state import Status
from mcp_tasks.tasks.subtask import subtask_id
from mcp_tasks.tasks.task import Task, now_ms
from mcp_tasks.tasks.task_item import task_of
from mcp_tasks.workflows.execution_names import task_of_execution
from mcp_tasks.workflows.reconcile import EXPIRED
from mcp_tasks.workflows.retry import TRANSIENT_ERROR, state_retried_if_transient
from mcp_tasks.workflows.subtask_outcome import ONE_LANE, SubtaskOutcomes
from mcp_tasks.workflows.subtasks import Subtasks
from tests.campaigns.model import dynamodb
from tests.campaigns.model.actors import CALM, JOURNAL, Actor, Plan, Violation
from tests.campaigns.model.durable import Durable, Failed
from tests.campaigns.model.durable import patched as durable_patched
from tests.campaigns.model.dynamodb import Item
from tests.campaigns.model.history import begin
from tests.campaigns.model.state_machine import SUBTASKS, FunctionExecution
from tests.campaigns.model.step_functions import Waits
from tests.campaigns.model.world import MACHINE
from tests.unit.support.aws import JOURNAL as JOURNAL_TABLE
from tests.unit.support.aws import TABLE

STOPPED: Final = "TaskEnded"
"""The error of an execution that the server has stopped (`Executions.stop`)."""
ROW_RESULT: Final = 100
"""Bytes of a result that a row keeps, here: three numbers, or four."""
JOURNAL_VALUE: Final = 600
"""Bytes of a value that a journal keeps: the arguments of one or two small subtasks."""


class Trees(Durable):
    """All there is in one run."""

    may_change: ClassVar = Durable.may_change | {"parent"}
    sweeps: ClassVar = 150
    """A call is seen to end by one sweep, and there are calls below calls."""
    rounds: ClassVar = 600

    def __init__(self, statistics: Counter[str], workers: dict[str, ModuleType]) -> None:
        super().__init__(statistics, workers)
        client: Any = self.stage.client(JOURNAL, dynamodb.InProcess(), self._journal)
        table = JournalTable(client, JOURNAL_TABLE)
        # The function `api`, whose polls reconcile as well, may not write journals.
        self.ends = replace(self.ends, journal_table=table)
        self.repair = replace(self.repair, ends=self.ends)
        outcomes = SubtaskOutcomes(table, self.payloads, self.executions)
        self.subtasks = Subtasks(self.ends, outcomes, lambda entry: MACHINE + entry.name)
        self.waits_for: dict[str, str] = {}
        """The subtask that a state waits for, by the state's token."""
        self.marked: set[str] = set()
        """Tasks whose cancel was noted."""
        self._written_at_once: list[dict[str, Any]] = []
        """The transactions that were written: one that is sent again by the SDK has its token."""

    # what goes on

    def _serve(self, function: str, event: dict[str, Any]) -> Any:
        if function != SUBTASKS:
            return super()._serve(function, event)
        if "token" in event:
            number = event.get("number", 0)
            task_id = subtask_id(event["task"], event["operation"], number)
            self.waits_for[event["token"]] = task_id
        actor = self.stage.actor
        assert actor is not None
        try:
            with state_retried_if_transient():
                return self.subtasks.handle(event, now_ms())
        except Exception as error:
            name = type(error).__name__
            self.require(bool(actor.hit), f"{actor.name} raised {error!r}, and nothing had failed")
            passes = name == TRANSIENT_ERROR
            self.require(passes, f"{actor.name} raised {error!r}: its state is not retried")
            return Failed(name, str(error))

    def _new_call(
        self, script: list[dict[str, Any]], entry: ToolEntry, can: Any, data: str
    ) -> dict[str, Any]:
        made = super()._new_call(script, entry, can, data)
        self._number(script)
        return made

    def _number(self, script: list[dict[str, Any]]) -> None:
        """Tell the arguments of each subtask apart by a number of their own."""
        for spec in script:
            for arguments in spec.get("calls", ()):
                self._numbers += 1
                arguments["call"] = self._numbers
                self._called[self._numbers] = arguments
                self._number(arguments["program"])

    # what must hold of what programs get

    def saw(self, task_id: str, place: str, spec: dict[str, Any], value: Any) -> None:
        """A parent has got the results of its subtasks: what their rows say that they came to."""
        super().saw(task_id, place, spec, value)
        if spec["do"] != "call" or isinstance(value, dict):
            return
        for number, got in enumerate(value):
            child = self._task(subtask_id(task_id, f"{int(place):06}", number))
            if child is None:
                refused = isinstance(got, str) and got.startswith("SubtaskFailed: ")
                gone = refused or bool(self.deleted)
                self.require(gone, f"{task_id} got {got} of a subtask that is not there")
                continue
            self.statistics["results of subtasks"] += 1
            want = self._result_of(child)
            same = got == want or (isinstance(want, tuple) and str(got).startswith(want))
            self.require(same, f"{task_id} got {got} of {child.task_id}, which has {want}")

    def _result_of(self, child: Task) -> Any:
        """What a caller gets of a subtask; what it begins with, in a tuple, for a failure."""
        if child.status is not Status.COMPLETED:
            return (f"SubtaskFailed: {child.tool} {child.status}",)
        result = self._whole_result(child)
        if result.get("isError"):
            return f"ToolError: {result['content'][0]['text']}"
        return result["structuredContent"]

    def _whole_result(self, task: Task) -> Any:
        stored = task.result_payload
        return json.loads(self._whole.get(stored)) if stored else task.result

    # what must hold of journals

    def _journal(self, operation: str, arguments: dict[str, Any], real: Any) -> Any:
        answer = super()._journal(operation, arguments, real)
        if operation == "put_item":
            record = record_of(arguments["Item"])
            if record.operation.kind is Kind.SUBTASK:
                self._check_outcome(arguments["Item"]["pk"]["S"], record)
        return answer

    def _check_outcome(self, partition: str, record: Record) -> None:
        """A parent is told what its subtask has ended as, and nothing else."""
        _, parent_id, operation = partition.split("#")
        child = self._task(subtask_id(parent_id, operation, int(record.id.rpartition("#")[2])))
        what = f"{partition} {record.id}"
        self.require(child is not None, f"{what} is the outcome of nothing")
        assert child is not None
        self.require(child.status.terminal, f"{what}: the subtask is {child.status}")
        completed = child.status is Status.COMPLETED
        self.require(completed == (record.state is State.DONE), f"{what}: {record.state}")
        if completed:
            stored = record.payload
            got = json.loads(self._whole.get(stored)) if stored else record.value
            self.statistics["results that S3 has copied"] += bool(stored and child.result_payload)
            self.require(got == self._whole_result(child), f"{what} has another result: {got}")
            return
        assert record.failure is not None
        self.require(record.failure.name == child.status.value, f"{what}: {record.failure}")

    # what must hold of rows

    def _rows(self, operation: str, arguments: dict[str, Any], real: Any) -> Any:
        if operation != "transact_write_items":
            return super()._rows(operation, arguments, real)
        self._alive()
        if any(each is arguments for each in self._written_at_once):
            return {}
        writes = [write for each in arguments["TransactItems"] for write in each.values()]
        ids = [(write.get("Key") or write["Item"])["taskId"]["S"] for write in writes]
        before = [dynamodb.item(TABLE, each) for each in ids]
        try:
            answer = real(**arguments)
        except ClientError:
            now = [dynamodb.item(TABLE, each) for each in ids]
            self.require(now == before, "a transaction that was refused has written something")
            raise
        self._written_at_once.append(arguments)
        self.statistics["transactions"] += 1
        for task_id, was in zip(ids, before, strict=True):
            self._written(task_id, was, dynamodb.item(TABLE, task_id))
        return answer

    def _written(self, task_id: str, before: Item | None, after: Item | None) -> None:
        super()._written(task_id, before, after)
        assert after is not None
        new, old = task_of(after), None if before is None else task_of(before)

        def require(holds: bool, message: str) -> None:
            if not holds:
                by = self.stage.actor.name if self.stage.actor else "?"
                raise Violation(f"{task_id}, written by {by}: {message}")

        if new.cancel_requested:
            self.marked.add(task_id)
        self._check_children(old, new, require)
        self._check_parent(old, new, require)
        if new.status.terminal and (old is None or not old.status.terminal):
            self.statistics["tasks that ended after subtasks"] += bool(new.subtask_ids)
            for child in map(self._task, new.subtask_ids):
                over = child is None or child.status.terminal
                require(over, f"{new.status}, and its subtask {child and child.task_id} is not")

    def _check_children(
        self, old: Task | None, new: Task, require: Callable[[bool, str], None]
    ) -> None:
        before = () if old is None else old.subtask_ids
        require(new.subtask_ids[: len(before)] == before, "its list of subtasks did not just grow")
        require(len(set(new.subtask_ids)) == len(new.subtask_ids), "it names a subtask twice")
        added = new.subtask_ids[len(before) :]
        if added:
            require(new.task_id not in self.marked, "it has more subtasks, and is to be cancelled")
        for each in added:
            child = self._task(each)
            require(child is not None, f"its subtask {each} is not there")
            assert child is not None
            of = None if child.parent is None else child.parent.task_id
            require(of == new.task_id, f"its subtask {each} is one of {of}")

    def _check_parent(
        self, old: Task | None, new: Task, require: Callable[[bool, str], None]
    ) -> None:
        require(old is None or new.parent == old.parent, "it has another parent")
        if new.parent is None:
            return
        above = self._task(new.parent.task_id)
        if old is None:
            require(above is not None and new.task_id in above.subtask_ids, "no parent names it")
            assert above is not None
            self.statistics[f"subtasks at depth {new.parent.depth}"] += 1
            require(not above.status.terminal, "its parent is over")
            require(new.expires_at == above.expires_at, "it lives longer than its parent, or less")
            require(new.principal == above.principal, "it is somebody else's")
            return
        require(new.expires_at == old.expires_at, "its time to live changed")
        for name, token in old.parent.tokens.items() if old.parent else ():
            if new.parent.tokens.get(name) != token:
                waits = self.step_functions.tokens[token].waits is Waits.WAITING
                require(not waits, "its parent waits for it, and its token is lost")
                told = self._outcome_of(new) is not None
                require(told or above is None, "its parent was told of nothing")

    def _outcome_of(self, child: Task) -> Record | None:
        """What the journal of its parent has of a subtask's end."""
        of = child.parent
        assert of is not None
        kept = self.journals[journal_partition(of.tool, of.task_id, of.operation)]
        found = kept.get(item_id(ONE_LANE, of.number))
        return None if found is None else found.record

    def _check_index(self, task: Task, row: Item, require: Callable[[bool, str], None]) -> None:
        due = "reconcileAt" in row
        if task.parent is not None and not task.status.terminal and not task.begun and not due:
            started = self._named(task.task_id)
            require(not started, "nobody looks after it, though it was started")
            return  # its parent looks after it
        super()._check_index(task, row, require)
        untold = task.parent is not None and task.parent.tokens
        require(due or not untold, "not in the index, though its parent was not told")

    def _check_after_end(self, old: Task, new: Task, require: Callable[..., None]) -> None:
        super()._check_after_end(old, new, require)
        if old.parent is not None and new.parent is not None:
            tokens = dict(new.parent.tokens)
            require(tokens in ({}, old.parent.tokens), "its parent waits for what is over")

    def _check_end(self, old: Task, new: Task, require: Callable[[bool, str], None]) -> None:
        super()._check_end(old, new, require)
        if new.status is not Status.FAILED or new.status_message == EXPIRED:
            return
        executions = self._executions_of(new)
        stopped = bool(executions) and executions[-1].error == STOPPED
        fits = not stopped or STOPPED not in (new.status_message or "")
        require(fits, f"failed, because the server has stopped it: {new.status_message}")

    def _task(self, task_id: str) -> Task | None:
        row = dynamodb.item(TABLE, task_id)
        return None if row is None else task_of(row)

    # what must hold of executions

    def _check_start(self, name: str) -> None:
        super()._check_start(name)
        task = self._task(task_of_execution(name)[0])
        assert task is not None
        self.require(task.begun or task.status.terminal, f"{name} was started before its turn")

    def _states(self, operation: str, arguments: dict[str, Any], real: Any) -> Any:
        child_id = self.waits_for.get(arguments.get("taskToken", ""))
        before = self._waits(arguments["taskToken"]) if child_id else None
        answer = super()._states(operation, arguments, real)
        if operation == "send_task_success" and child_id and before is Waits.WAITING:
            self.statistics["parents that were told"] += 1
            self._check_told(arguments["taskToken"], child_id)
        return answer

    def _waits(self, token: str) -> Waits | None:
        found = self.step_functions.tokens.get(token)
        return None if found is None else found.waits

    def _check_told(self, token: str, child_id: str) -> None:
        """A state that waited for a subtask goes on: its journal has how the subtask has ended, or
        there is to be none, or the time of them all is over by somebody's clock: nobody starts
        anything then, and the worker that goes on finds that its task has ended."""
        child = self._task(child_id)
        parent_id = self.task_of(self._execution(token))
        parent = self._task(parent_id)
        if parent is None or parent.status.terminal or parent.cancel_requested:
            return
        if parent.expired(self.ms + 60_000):
            return
        if child is None:
            failed = [k.record for k in self.journals[f"{parent.tool}#{parent_id}"].values()]
            refused = any(r.operation.kind is Kind.CALL and r.failure for r in failed)
            self.require(refused, f"{parent_id} goes on without a subtask")
            return
        told = self._outcome_of(child) is not None
        self.require(told, f"{parent_id} goes on, and was not told of {child_id}")

    def _execution(self, token: str) -> FunctionExecution:
        execution = self.step_functions.tokens[token].execution
        assert isinstance(execution, FunctionExecution)
        return execution

    def _check_claim(self, arguments: dict[str, Any]) -> None:
        """Whoever looks at a task may end its subtasks, and tell its parent."""
        actor = self.stage.actor
        child_id = self.waits_for.get(arguments.get("taskToken", ""))
        arn = arguments.get("executionArn") or arguments.get("name") or ""
        task_id = child_id or task_of_execution(arn.rpartition(":")[2])[0]
        while task_id:
            if (actor, task_id) in self._claimed:
                return
            task = self._task(task_id)
            task_id = task.parent.task_id if task is not None and task.parent is not None else ""
        if child_id is None:
            super()._check_claim(arguments)
        elif actor is not None and actor.name.startswith(("sweep", "tasks/get")):
            raise Violation(f"{actor.name} told of {child_id}, which is another's to look at")

    def _heard(self, event: dict[str, Any]) -> None:
        """Without waiting for the sweeper, a parent is told of its subtask's end."""
        super()._heard(event)
        task = self._task(task_of_execution(event["name"])[0])
        if task is None or task.parent is None or not task.status.terminal:
            return
        found = self._named(task.task_id)
        if not found or event["name"] != found[-1].name:
            return
        if any(self.ms < max(e.seen_from, e.end_seen_from) for e in found):
            return  # DescribeExecution does not know of it yet
        if self.step_functions.find(found[-1].machine, event["name"]) is None:
            return  # it has forgotten it
        self.require(not task.parent.tokens, f"{task.task_id} is over, and its parent not told")

    def cancel(self, who: str, task_id: str, plan: Plan = CALM) -> None:
        """`tasks/cancel`: of a whole tree, from any of its tasks downwards."""

        def after(actor: Actor) -> None:
            if self._known(actor, who, task_id) and actor.error is None:
                for each in self._tree(task_id):
                    over = each.status.terminal
                    self.require(over, f"{each.task_id} goes on, and {task_id} is cancelled")

        if who != self.owner(task_id):
            super().cancel(who, task_id, plan)
            return
        self._method("tasks/cancel", who, {"taskId": task_id}, plan, after)

    def _tree(self, task_id: str) -> Iterator[Task]:
        task = self._task(task_id)
        if task is not None:
            yield task
            for each in task.subtask_ids:
                yield from self._tree(each)

    # the end

    def check_settled(self) -> None:
        """Also of a tree: every subtask that may be read has a parent that names it."""
        super().check_settled()
        for row in dynamodb.items(TABLE):
            task = task_of(row)
            missing = [e for e in task.subtask_ids if self._task(e) is None]
            lost = [e for e in missing if e not in self.deleted]
            self.require(not lost, f"{task.task_id} names {lost}, which is not there")
            if task.parent is not None and task.parent.task_id not in self.deleted:
                above = self._task(task.parent.task_id)
                named = above is not None and task.task_id in above.subtask_ids
                self.require(named, f"{task.task_id} is named by no parent")


@contextmanager
def patched(folder: Path) -> Iterator[dict[str, ModuleType]]:
    """As for all durable tools; and what is large here is small."""
    with durable_patched(folder) as workers, pytest.MonkeyPatch.context() as patch:
        patch.setattr("mcp_tasks.workflows.end_task.MAX_ROW_RESULT_BYTES", ROW_RESULT)
        patch.setattr("mcp_tasks.workflows.subtask_outcome.MAX_INLINE_VALUE_BYTES", ROW_RESULT)
        patch.setattr("mcp_tasks.workflows.task_tree.MAX_SECONDS", float("inf"))  # of the machine
        patch.setattr("mcp_tasks.durable.journal.MAX_INLINE_VALUE_BYTES", JOURNAL_VALUE)
        yield workers


def new_world(statistics: Counter[str], workers: dict[str, ModuleType]) -> Trees:
    """An empty world, whose clock is the one that counts from now on."""
    world = Trees(statistics, workers)
    begin(world)
    return world
