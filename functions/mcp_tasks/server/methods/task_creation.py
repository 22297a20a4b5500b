"""How a call becomes a task (tasks.md, "Task Creation").

Four steps, in this order: acquire one task of the caller's quota, store large arguments in S3,
write the row, start the execution. Only then does the client get its task. Before them,
`idempotent_creation.py` claims the call's idempotency key.

A task is durable as soon as its row is written. When Step Functions does not start the execution,
or does not answer, the client gets its task nevertheless: the sweeper or a poll of the client
starts it (`workflows/reconcile.py`). A call whose row could not be written is refused, and can be
repeated.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from aws_lambda_powertools import Logger

from ...audit import audit
from ...aws.errors import error_code, is_transient, outcome_unknown
from ...aws.xray import trace_to_keep
from ...limits import Limits
from ...payloads.s3_store import PayloadStore
from ...protocol.errors import (
    ErrorCode,
    ProtocolError,
    TooManyRequests,
    Unavailable,
    invalid_params,
)
from ...registry.catalogue import ToolEntry
from ...tasks.errors import Conflict, UnknownTask
from ...tasks.ids import new_task_id
from ...tasks.quotas import CallerQuotas
from ...tasks.rate_limit import RateLimit
from ...tasks.reconcile_schedule import SILENCE_MARGIN_MS
from ...tasks.state import Status
from ...tasks.task import Task, now_ms
from ...tasks.task_table import TaskTable
from ...workflows.end_task import fail_task
from ...workflows.execution_input import encode, with_stored_arguments
from ...workflows.executions import Executions, StartFailed
from ...workflows.reconcile import ID_USED_BEFORE
from ...workflows.task_tree import TaskTree
from ..call import Call
from .too_many_requests import task_quota_errors

logger = Logger()


@dataclass(frozen=True, slots=True)
class TaskCreation:
    """Writes tasks and starts their executions."""

    task_table: TaskTable
    executions: Executions
    quotas: CallerQuotas
    payloads: PayloadStore
    limits: Limits
    state_machine_arn: Callable[[ToolEntry], str]
    cell: str
    traced: bool = False
    """Whether a task keeps the X-Ray trace of its call (`mcp_tasks.aws.xray`)."""

    def new_task(self, call: Call, entry: ToolEntry, execution_input: Any) -> Task:
        """A task that is not written yet. Raises ProtocolError (-32602) for too large arguments."""
        text = encode(execution_input)
        if len(text) > self.limits.max_argument_bytes:
            raise invalid_params(f"params.arguments exceed {self.limits.max_argument_bytes} bytes")
        now = now_ms()
        return Task(
            task_id=call.task_id or new_task_id(self.cell),
            tool=entry.name,
            principal=call.principal,
            status=Status.WORKING,
            created_at=now,
            last_updated_at=now,
            ttl_ms=min(entry.ttl_ms, call.ttl_ms or entry.ttl_ms),
            poll_interval_ms=entry.poll_interval_ms,
            state_machine_arn=self.state_machine_arn(entry),
            accepts=call.client_can,
            input=text,
            scopes=entry.scopes,
            silence_ms=entry.timeout_ms + SILENCE_MARGIN_MS,
            sequential=entry.sequential,
            client_context={**call.client_context, **(trace_to_keep() if self.traced else {})},
        )

    def create(self, task: Task, entry: ToolEntry) -> None:
        """Write the task and start its execution.

        Raises what `write` raises; StartRefused for an execution that Step Functions will never
        start, and IdUsedBefore for one that an earlier task had: then the task has failed.
        """
        task = self.write(task, entry)
        try:
            name_used = self._start(task)
        except StartFailed:
            # Race: the sweeper may have started the execution just before. Its row then fails, and
            # the execution's end finds it failed.
            raise self._failed(task, StartRefused()) from None
        if name_used and self._id_used_before(task):
            raise self._failed(task, IdUsedBefore())

    def write(self, task: Task, entry: ToolEntry) -> Task:
        """Acquire quota, store large arguments, write the row; returns the task as it was written.

        Raises TooManyRequests; ProtocolError (-32602) for too large arguments; Unavailable when the
        row was not written; WriteOutcomeUnknown; and Conflict when the row exists already.
        """
        logger.append_keys(task_id=task.task_id)
        try:
            self._acquire_quota(task)
            task = self._with_stored_arguments(task, entry)
            self._write_row(task)
        except (WriteOutcomeUnknown, TooManyRequests):
            raise
        except ProtocolError:
            # Best effort: a quota that is not released here is free again after a minute.
            with suppress(Exception):
                self.quotas.release_task(task.principal, task.task_id)
            raise
        audit("create", task.task_id, task.principal, tool=task.tool)
        return task

    def start_again(self, task: Task) -> None:
        """Start an execution that may run already, or that another request starts at this moment.

        An execution that runs or has run is not started twice: its name is the task's id.
        """
        with suppress(StartFailed):
            self._start(task)

    def _with_stored_arguments(self, task: Task, entry: ToolEntry) -> Task:
        try:
            text = with_stored_arguments(task.input or "{}", entry, task.task_id, self.payloads)
        except Exception as error:
            if not is_transient(error):
                raise
            logger.error("Arguments were not stored in S3", error=error_code(error))
            raise _not_written() from None
        return replace(task, input=text)

    def _acquire_quota(self, task: Task) -> None:
        limits = self.limits
        rate = RateLimit(limits.creations_per_minute) if limits.creations_per_minute else None
        try:
            with task_quota_errors(limits):
                self.quotas.acquire_task(
                    task.principal,
                    task.task_id,
                    self.task_table,
                    limits.max_open_tasks,
                    rate,
                    task.last_updated_at,
                )
        except Exception as error:
            if not is_transient(error):
                raise
            logger.error("Task quota was not acquired", error=error_code(error))
            raise _not_written() from None

    def _write_row(self, task: Task) -> None:
        """Write the row. Raises Unavailable when it was not written, and WriteOutcomeUnknown."""
        try:
            self.task_table.create(task)
        except Exception as error:
            if not is_transient(error):
                raise
            logger.error("Task row was not written", error=error_code(error))
            # An attempt that got no answer may have written the row. Such a task runs sooner or
            # later, so its client has to know it.
            try:
                found = self.task_table.get(task.task_id, now_ms(), task.principal)
            except UnknownTask:
                # A write that got no answer may still arrive.
                raise WriteOutcomeUnknown() if outcome_unknown(error) else _not_written() from None
            except Exception:
                raise WriteOutcomeUnknown from None
            if not found.is_same_creation(task):
                raise Conflict(found) from None

    def _start(self, task: Task) -> bool:
        """Start the execution, or leave it to the sweeper; whether its name was used before.

        Raises StartFailed when Step Functions will never start it.
        """
        machine, text = task.state_machine_arn, task.input or "{}"
        try:
            return not self.executions.start(machine, task.task_id, text)
        except StartFailed as failed:
            logger.error("StartExecution failed", error=str(failed), task_id=task.task_id)
            if failed.refused:
                raise
            return False

    def _id_used_before(self, task: Task) -> bool:
        """Whether the execution with the task's name is of an earlier task. When Step Functions
        does not answer, the sweeper finds it out."""
        try:
            execution = self.executions.describe(task.state_machine_arn, task.task_id)
        except Exception as error:
            if not is_transient(error):
                raise
            logger.error("DescribeExecution failed", error=error_code(error), task_id=task.task_id)
            return False
        return execution is not None and not execution.is_of(task.created_at)

    def _failed(self, task: Task, error: ProtocolError) -> ProtocolError:
        tree = TaskTree(self.task_table, self.executions)
        fail_task(task, error.as_error(), tree, now_ms())
        return error


class WriteOutcomeUnknown(Unavailable):
    """Nobody knows whether the row was written. If it was, the task runs."""

    def __init__(self) -> None:
        super().__init__("Whether the task was written is not known; repeat the call")


class StartRefused(ProtocolError):
    """The row was written, and Step Functions refused the execution for good."""

    def __init__(self) -> None:
        super().__init__(
            ErrorCode.INTERNAL_ERROR,
            "The task could not be started; repeat the call, with another idempotency key if it "
            "had one",
        )


class IdUsedBefore(ProtocolError):
    """The client has chosen the id of an earlier task, whose row is deleted, and whose execution is
    remembered."""

    def __init__(self) -> None:
        super().__init__(ErrorCode.INVALID_PARAMS, ID_USED_BEFORE)


def _not_written() -> ProtocolError:
    return Unavailable("The task could not be written; repeat the call")
