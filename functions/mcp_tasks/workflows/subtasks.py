"""Start the subtasks that a tool calls, on behalf of its state machine (SEP-2268, "Creating
Subtasks").

A state that calls tools passes one of

    {"task", "operation"}                      write the rows of all subtasks of an operation
    {"task", "operation", "number", "token"}   start one of them; the state waits on the token
    {"task", "operation", "token"}             both, when one subtask is left

`task` is the parent's id and `operation` the durable operation, whose record in the parent's
journal has the tool and the arguments. Each may be repeated: a subtask's id follows from its place.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from aws_lambda_powertools import Logger

from ..audit import audit
from ..aws import xray
from ..durable.calls import Called
from ..durable.journal import KEPT_AFTER_EXPIRY_MS, journal_partition, number_of
from ..durable.record import Failure, Record, State
from ..protocol.errors import ProtocolError
from ..registry.catalogue import ToolEntry
from ..tasks.errors import Busy, TaskEnded, UnknownTask
from ..tasks.reconcile_schedule import SILENCE_MARGIN_MS
from ..tasks.state import Status
from ..tasks.subtask import MAX_DEPTH, MAX_SUBTASKS, Parent, subtask_id
from ..tasks.subtask_rows import MAX_ADDED, SubtasksChanged
from ..tasks.task import Task
from .end_task import TaskEnds, fail_task
from .execution_input import encode, execution_input, with_stored_arguments
from .execution_outcome import NOT_STARTED, Failed
from .executions import StartFailed
from .run_event import MAX_AT_ONCE
from .subtask_outcome import SubtaskOutcomes

MAX_ATTEMPTS: Final = 8
"""How often rows are written again when the parent's row has changed meanwhile."""

MAX_ADDED_BYTES: Final = 3_000_000
"""Of the inputs of one transaction's subtasks. DynamoDB takes 4 MB (API reference,
"TransactWriteItems")."""

DEPLOYMENT_MS: Final = 60_000
"""How long a tool may be unknown, or its state machine missing, that another tool has called: a
deployment replaces one function after the other."""

REFUSED: Final = "refused"
"""The name of the failure of a call whose subtasks could not be made."""

INHERITED: Final = ("session", xray.MEMBER)
"""What a subtask has of its parent's client context: whose event stream tells of it, and the trace
that it belongs to."""

logger = Logger()


@dataclass(frozen=True, slots=True)
class Subtasks:
    """Writes subtasks' rows, and starts their executions."""

    ends: TaskEnds
    outcomes: SubtaskOutcomes
    state_machine_arn: Callable[[ToolEntry], str]

    def handle(self, event: Mapping[str, Any], now: int) -> dict[str, Any]:
        """Do what a state asks for; see the module. Returns the state's output, or what the log
        says of a state that waits. Raises Busy and what calls to AWS raise: the state is retried.
        """
        parent_id, operation, token = event["task"], event["operation"], event.get("token")
        if token is None:
            return self.create(parent_id, operation, now)
        if "number" in event:
            return {"begun": self.begin(parent_id, operation, event["number"], token, now)}
        numbers = self.create(parent_id, operation, now)["numbers"]
        if not numbers:
            # Nothing is to be started: the tool is told why when it runs again.
            self.outcomes.executions.resume(token, {})
            return {"begun": False}
        return {"begun": self.begin(parent_id, operation, numbers[0], token, now)}

    def create(self, parent_id: str, operation: str, now: int) -> dict[str, Any]:
        """Write the rows of an operation's subtasks that are not there yet, in their order.

        Returns the numbers of the next ones to start, and how many run side by side. There are none
        when the parent has ended, or may not have these subtasks.
        """
        nothing = {"numbers": [], "concurrency": 1}
        try:
            parent = self.ends.task_table.get(parent_id, now)
        except UnknownTask:
            return nothing
        if parent.status.terminal or parent.cancel_requested:
            return nothing
        record = self._record(parent, operation)
        if record is None:
            return nothing
        called, called_at = self._called(record), record.written_at
        entry = self.ends.catalogue.tools.get(called.tool)
        ids = [subtask_id(parent_id, operation, n) for n in range(len(called.arguments))]
        if entry is None and now < called_at + DEPLOYMENT_MS:
            raise Busy(f"the tool {called.tool} is not known yet")
        refusal = _refusal(parent, ids, called.tool, entry)
        if refusal is not None or entry is None:
            self._refuse(parent, operation, refusal or "", now)
            return nothing
        try:
            written = self._write(parent, operation, called, entry, now)
        except ProtocolError as error:  # of arguments that no execution takes
            self._refuse(parent, operation, error.message, now)
            return nothing
        if not written:
            return nothing
        ended = set()
        if set(ids) & set(parent.subtask_ids):  # the tool calls for those that are left
            partition = journal_partition(parent.tool, parent_id, operation)
            ended = {number_of(each) for each in self.outcomes.journal_table.read(partition)}
        left = [number for number in range(len(ids)) if number not in ended]
        return {"numbers": left[:MAX_AT_ONCE], "concurrency": called.concurrency}

    def begin(self, parent_id: str, operation: str, number: int, token: str, now: int) -> bool:
        """Start a subtask whose row is there; whether its parent waits for it now."""
        task_id = subtask_id(parent_id, operation, number)
        try:
            task = self.ends.task_table.subtasks.begin(task_id, token, now)
        except TaskEnded as ended:  # it was cancelled before its turn, or this is repeated
            self._tell(ended.task, token, now)
            return False
        except UnknownTask:
            logger.warning("A subtask was not found; its parent has ended", task_id=task_id)
            return False
        try:
            self.ends.executions.start(task.state_machine_arn, task_id, task.input or "{}")
        except StartFailed as failed:
            logger.error("StartExecution failed", error=str(failed), task_id=task_id)
            if failed.refused and now < task.created_at + DEPLOYMENT_MS:
                raise Busy(f"the tool {task.tool} cannot be started yet") from None
            if failed.refused:
                self._fail(task, token, now)
                return False
        return True

    def _record(self, parent: Task, operation: str) -> Record | None:
        """The record of a call in its tool's journal; None when the call is over."""
        partition = journal_partition(parent.tool, parent.task_id)
        for record in self.outcomes.journal_table.read(partition, operation):
            if record.id == operation and record.state is State.STARTED:
                return record
        return None

    def _called(self, record: Record) -> Called:
        """What the tool has called."""
        value = record.value
        if record.payload is not None:
            value = json.loads(self.ends.payloads.get(record.payload))
        return Called.from_json(value)

    def _write(
        self, parent: Task, operation: str, called: Called, entry: ToolEntry, now: int
    ) -> bool:
        """Write what is missing; False when the parent may have no more subtasks."""
        ids = [subtask_id(parent.task_id, operation, n) for n in range(len(called.arguments))]
        changes = 0
        while changes < MAX_ATTEMPTS:
            there = set(parent.subtask_ids)
            missing = [number for number, task_id in enumerate(ids) if task_id not in there]
            if not missing:
                return True
            some: list[Task] = []
            for number in missing[:MAX_ADDED]:
                arguments = called.arguments[number]
                task = self._subtask(parent, operation, arguments, entry, number, now)
                size = sum(len(each.input or "") for each in (*some, task))
                if some and size > MAX_ADDED_BYTES:
                    break
                some.append(task)
            try:
                self.ends.task_table.subtasks.add(parent, some, now)
            except SubtasksChanged:
                some, changes = [], changes + 1
                time.sleep(changes * 0.05)
            for task in some:
                audit("create", task.task_id, task.principal, tool=task.tool, parent=parent.task_id)
            if len(some) == len(missing):
                return True
            parent = self.ends.task_table.get(parent.task_id, now)
            if parent.status.terminal or parent.cancel_requested:
                return False
        raise Busy("other requests write the parent's row at the same time")

    def _subtask(
        self,
        parent: Task,
        operation: str,
        arguments: dict[str, Any],
        entry: ToolEntry,
        number: int,
        now: int,
    ) -> Task:
        task_id = subtask_id(parent.task_id, operation, number)
        trace = json.loads(parent.input or "{}").get("trace", {})
        text = encode(execution_input(entry, arguments, {}, parent.accepts, trace))
        above = parent.parent
        return Task(
            task_id=task_id,
            tool=entry.name,
            principal=parent.principal,
            status=Status.WORKING,
            created_at=now,
            last_updated_at=now,
            # It lives as long as its parent, which names it ("TTL and Resource Management").
            ttl_ms=parent.expires_at - now,
            poll_interval_ms=entry.poll_interval_ms,
            state_machine_arn=self.state_machine_arn(entry),
            accepts=parent.accepts,
            input=with_stored_arguments(text, entry, task_id, self.ends.payloads),
            scopes=parent.scopes,
            silence_ms=entry.timeout_ms + SILENCE_MARGIN_MS,
            sequential=entry.sequential,
            client_context={k: v for k, v in parent.client_context.items() if k in INHERITED},
            parent=Parent(
                task_id=parent.task_id,
                tool=parent.tool,
                operation=operation,
                number=number,
                root_tool=parent.tool if above is None else above.root_tool,
                depth=1 if above is None else above.depth + 1,
            ),
        )

    def _refuse(self, parent: Task, operation: str, reason: str, now: int) -> None:
        """Fail the call in the parent's journal: the tool gets SubtaskFailed."""
        table = self.outcomes.journal_table
        partition = journal_partition(parent.tool, parent.task_id)
        (seen,) = (r for r in table.read(partition, operation) if r.id == operation)
        failed: Record = replace(
            seen,
            state=State.FAILED,
            value=None,
            payload=None,
            failure=Failure(REFUSED, reason),
            written_at=now,
        )
        expires_at = (parent.expires_at + KEPT_AFTER_EXPIRY_MS) // 1000
        table.write(partition, failed, seen, expires_at)

    def _fail(self, task: Task, token: str, now: int) -> None:
        """Fail a subtask whose execution Step Functions will never start."""
        ended = fail_task(task, Failed(NOT_STARTED).error, self.ends.tree, now)
        self._tell(ended or self.ends.task_table.get(task.task_id, now), token, now)

    def _tell(self, task: Task, token: str, now: int) -> None:
        if task.parent is not None:
            parent = replace(task.parent, tokens={"": token})
            self.outcomes.tell(task, parent, now)


def _refusal(
    parent: Task, subtask_ids: Sequence[str], tool: str, entry: ToolEntry | None
) -> str | None:
    """Why a task may not have the subtasks that its tool calls."""
    if entry is None:
        return f"The server does not have the tool {tool} any more"
    if parent.parent is not None and parent.parent.depth >= MAX_DEPTH:
        return f"A subtask has at most {MAX_DEPTH} tasks above it"
    if len({*parent.subtask_ids, *subtask_ids}) > MAX_SUBTASKS:
        return f"A task has at most {MAX_SUBTASKS} subtasks"
    return None
