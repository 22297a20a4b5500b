"""How a call becomes a task (tasks.md, "Task Creation").

The place is taken first, then the row is written, then the execution is started; only then is the
client told. With an idempotency key, the key comes before all of them, and whoever finds it taken
gets the task that it stands for.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any, Final

from aws_lambda_powertools import Logger

from ..audit import audit
from ..limits import Limits
from ..protocol.errors import ErrorCode, ProtocolError, TooManyRequests, invalid_params
from ..registry.catalogue import ToolEntry
from ..tasks.ids import new_task_id
from ..tasks.keys import KeyedTask, KeyReused, Keys
from ..tasks.places import LOOK_EVERY_MS, NoPlace, Pace, Places, TooFast
from ..tasks.rows import Busy, Conflict, TaskEnded, TaskTable, UnknownTask
from ..tasks.state import Status
from ..tasks.task import Task, now_ms
from ..workflows.executions import Executions, StartFailed
from .call import Call

OWNED_MS: Final = 60_000
"""How long the request that claimed a key may take to make its task; later, others make it."""

STARTED_MS: Final = 3_000
"""After which time a task that nothing was heard of is started once more, when its call is
repeated. An execution that runs, or ran, is not started again: its name is the task's id."""

WAITS: Final = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
"""Seconds between looking for the task of a key that another request has just claimed."""

logger = Logger()


@dataclass(frozen=True, slots=True)
class Creation:
    """Makes tasks, durably and once."""

    rows: TaskTable
    executions: Executions
    places: Places
    keys: Keys
    limits: Limits
    state_machine_arn: Callable[[ToolEntry], str]
    cell: str
    wait: Callable[[float], None] = time.sleep

    def earlier(self, call: Call, entry: ToolEntry, arguments: dict[str, Any]) -> Task | None:
        """The task that the call's key stands for already, if there is one.

        Raises ProtocolError when the key stands for another call.
        """
        if call.idempotency_key is None:
            return None
        now = now_ms()
        try:
            keyed = self.keys.find(
                call.principal, call.idempotency_key, _fingerprint(entry, arguments), now
            )
        except KeyReused:
            raise _reused() from None
        return None if keyed is None else self._existing(keyed, call, now)

    def create(
        self, call: Call, entry: ToolEntry, arguments: dict[str, Any], execution_input: Any
    ) -> Task:
        """Write the task and start its execution; with a key, unless that was done before.

        Raises ProtocolError for what is too large, too much, or too fast; then there is no task.
        """
        task = self._new(call, entry, execution_input)
        if call.idempotency_key is None:
            self._begin(task)
            return task
        return self._create_keyed(task, call, call.idempotency_key, _fingerprint(entry, arguments))

    def _new(self, call: Call, entry: ToolEntry, execution_input: Any) -> Task:
        # Byte-stable: a start that is repeated must carry the same input as the first.
        text = json.dumps(execution_input, sort_keys=True, separators=(",", ":"))
        if len(text) > self.limits.arguments:
            raise invalid_params(f"params.arguments exceed {self.limits.arguments} bytes")
        now = now_ms()
        return Task(
            task_id=new_task_id(self.cell),
            tool=entry.name,
            principal=call.principal,
            status=Status.WORKING,
            created_at=now,
            last_updated_at=now,
            ttl_ms=entry.ttl_ms,
            poll_interval_ms=entry.poll_interval_ms,
            state_machine_arn=self.state_machine_arn(entry),
            accepts=call.client_can,
            input=text,
        )

    def _create_keyed(self, task: Task, call: Call, key: str, fingerprint: str) -> Task:
        wanted = KeyedTask(task.task_id, fingerprint, task.created_at, task.expires_at)
        for pause in (*WAITS, None):
            now = now_ms()
            try:
                keyed = self.keys.claim(call.principal, key, wanted, now)
            except KeyReused:
                raise _reused() from None
            if keyed.task_id == task.task_id:
                try:
                    self._begin(task)
                except ProtocolError:
                    # There is no task: the call may be repeated, with the same key.
                    self.keys.release(call.principal, key, task.task_id)
                    raise
                return task
            existing = self._existing(keyed, call, now)
            if existing is not None:
                return existing
            if now - keyed.created_at > OWNED_MS:
                # Whoever claimed the key did not live to make its task.
                late = replace(
                    task,
                    task_id=keyed.task_id,
                    created_at=keyed.created_at,
                    ttl_ms=keyed.expires_at - keyed.created_at,
                )
                with suppress(Conflict):  # another request was faster; its task is found next
                    self._write(late)
                    # Several may have written the same row: whose start fails must not end it.
                    self._start_again(late)
                    return late
            elif pause is not None:
                self.wait(pause)
        raise ProtocolError(
            ErrorCode.INTERNAL_ERROR,
            "Another request with this idempotency key is being answered; repeat it later",
            status=HTTPStatus.CONFLICT,
        )

    def _existing(self, keyed: KeyedTask, call: Call, now: int) -> Task | None:
        """The task of a key, if it was written; started, in case that whoever wrote it died."""
        try:
            task = self.rows.get(keyed.task_id, now, call.principal)
        except UnknownTask:
            return None
        untouched = task.status is Status.WORKING and task.revision == 1
        if untouched and now - keyed.created_at > STARTED_MS:
            self._start_again(task)
        logger.append_keys(task_id=task.task_id)
        audit("create", task.task_id, task.principal, repeated=True)
        return task

    def _start_again(self, task: Task) -> None:
        """Start a task that may run already: whether or not this arrives, it is not over."""
        try:
            self.executions.start(task.state_machine_arn, task.task_id, task.input or "{}")
        except StartFailed as failed:
            logger.warning("StartExecution failed", error=str(failed), task_id=task.task_id)
            message = "Whether the task was started is not known; repeat the call"
            raise ProtocolError(ErrorCode.INTERNAL_ERROR, message) from None

    def _begin(self, task: Task) -> None:
        """Take a place, write the row, start the execution: in this order.

        Once the execution runs, its reports and its end find the row.
        """
        self._write(task)
        self._start(task)

    def _write(self, task: Task) -> None:
        logger.append_keys(task_id=task.task_id)
        self._take_place(task)
        self.rows.create(task)
        audit("create", task.task_id, task.principal, tool=task.tool)

    def _take_place(self, task: Task) -> None:
        most, creations = self.limits.tasks, self.limits.creations
        pace = Pace(creations) if creations else None
        try:
            self.places.take_task(
                task.principal, task.task_id, self.rows, most, pace, task.last_updated_at
            )
        except NoPlace:
            message = f"You have {most} tasks that are not over; wait for one, or cancel one"
            raise TooManyRequests(message, LOOK_EVERY_MS) from None
        except TooFast as error:
            message = f"You create more than {creations} tasks a minute"
            raise TooManyRequests(message, error.retry_after_ms) from None
        except Busy:
            raise TooManyRequests("Too many calls of yours create tasks at once", 1000) from None

    def _start(self, task: Task) -> None:
        """Start the execution; a task that cannot be started is over."""
        try:
            self.executions.start(task.state_machine_arn, task.task_id, task.input or "{}")
        except StartFailed as failed:
            logger.error("StartExecution failed", error=str(failed), task_id=task.task_id)
            message = "The task could not be started; the call can be repeated"
            error = ProtocolError(ErrorCode.INTERNAL_ERROR, message)
            with suppress(TaskEnded, UnknownTask):
                self.rows.fail(task.task_id, error.as_error(), message, now_ms())
                audit("end", task.task_id, task.principal, status=Status.FAILED.value)
            if failed.may_run:
                # Best effort: should it run, its first report or question finds that its task is
                # over.
                with suppress(Exception):
                    self.executions.stop(task.state_machine_arn, task.task_id)
            raise error from None


def _fingerprint(entry: ToolEntry, arguments: Mapping[str, Any]) -> str:
    """What is the same when a call is repeated. Answers to what was asked first are not part of it:
    the request that asks and the one that answers are one call."""
    text = json.dumps([entry.name, arguments], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _reused() -> ProtocolError:
    # The IETF draft, section 2.7: 422 for a key that is used again with another request.
    return ProtocolError(
        ErrorCode.INVALID_PARAMS,
        "The idempotency key was used with another tool or other arguments",
        status=HTTPStatus.UNPROCESSABLE_ENTITY,
    )
