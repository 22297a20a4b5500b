"""How a call becomes a task (tasks.md, "Task Creation").

The place is taken first, then arguments are stored that are too large for a row, then the row is
written, then the execution is started; only then is the client told. With an idempotency key, the
key comes before all of them, and whoever finds it taken gets the task that it stands for.

With its row, a task is durable. When Step Functions has no room for its start, or does not say what
came of it, the client gets its task all the same: the sweeper starts it, or the client's own poll
(`workflows/reconcile.py`). What could not be written is refused, and can be repeated.
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

from ...audit import audit
from ...aws.errors import error_code, is_transient, outcome_unknown
from ...limits import Limits
from ...payloads.pointer import payload_prefix, pointer_of
from ...payloads.s3_store import PayloadStore
from ...protocol.errors import (
    ErrorCode,
    ProtocolError,
    TooManyRequests,
    Unavailable,
    invalid_params,
)
from ...protocol.meta import RESERVED
from ...registry.catalogue import ToolEntry
from ...tasks.idempotency import FREE_AFTER_MS, IdempotencyKeyReused, IdempotencyKeys, KeyedTask
from ...tasks.ids import new_task_id
from ...tasks.quotas import LOOK_EVERY_MS, CallerQuotas, QuotaExceeded, RateLimit, RateLimited
from ...tasks.reconcile_schedule import GRACE_MS
from ...tasks.state import Status
from ...tasks.task import Task, now_ms
from ...tasks.task_table import Busy, Conflict, TaskTable, UnknownTask
from ...workflows.executions import START_WITHIN_MS, Executions, StartFailed
from ...workflows.finish import fail_task
from ..call import Call

OWNED_MS: Final = 60_000
"""How long the request that claimed a key may take to make its task; later, others make it."""

STARTED_MS: Final = 3_000
"""After which time a task that nothing was heard of is started once more, when its call is
repeated. An execution that runs, or ran, is not started again: its name is the task's id. A task
that is as old as Step Functions' memory is left to the sweeper."""

INPUT_ROOM: Final = 100_000
"""Bytes of an execution's input that its row keeps, beside questions and answers (DynamoDB: 400 KB
an item; Step Functions: 256 KiB). What is larger is kept in S3."""

MAX_INPUT: Final = 256 * 1024
"""Bytes that an execution takes (Step Functions developer guide, "Quotas")."""

OURS: Final = {"function": ("schema", "answers", "client_can", "trace"), "workflow": (RESERVED,)}
"""The members of an execution's input that are no arguments, by the kind of tool: state machines
read them, and find them in their places."""

WAITS: Final = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
"""Seconds between looking for the task of a key that another request has just claimed."""

logger = Logger()


@dataclass(frozen=True, slots=True)
class TaskCreation:
    """Makes tasks, durably and once."""

    task_table: TaskTable
    executions: Executions
    quotas: CallerQuotas
    keys: IdempotencyKeys
    payloads: PayloadStore
    limits: Limits
    state_machine_arn: Callable[[ToolEntry], str]
    cell: str
    wait: Callable[[float], None] = time.sleep

    def earlier(self, call: Call, entry: ToolEntry, arguments: dict[str, Any]) -> Task | None:
        """The task that the call's key stands for already, if there is one.

        Raises ProtocolError when the key stands for another call, or for a task that just expired.
        """
        if call.idempotency_key is None:
            return None
        now = now_ms()
        try:
            keyed = self.keys.find(
                call.principal, call.idempotency_key, _fingerprint(entry, arguments), now
            )
        except IdempotencyKeyReused:
            raise _reused() from None
        return None if keyed is None else self._existing(keyed, call, now)

    def create(
        self, call: Call, entry: ToolEntry, arguments: dict[str, Any], execution_input: Any
    ) -> Task:
        """Write the task and start its execution; with a key, unless that was done before.

        Raises ProtocolError for what is too large, too much, or too fast; then there is no task.
        Raises Unavailable when it could not be written, or whether it was is not known.
        """
        task = self._new(call, entry, execution_input)
        if call.idempotency_key is None:
            self._begin(task, entry)
            return task
        fingerprint = _fingerprint(entry, arguments)
        return self._create_keyed(task, entry, call, call.idempotency_key, fingerprint)

    def _new(self, call: Call, entry: ToolEntry, execution_input: Any) -> Task:
        # Byte-stable: a start that is repeated must carry the same input as the first.
        text = _text(execution_input)
        if len(text) > self.limits.max_argument_bytes:
            raise invalid_params(f"params.arguments exceed {self.limits.max_argument_bytes} bytes")
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
            silence_ms=entry.timeout_ms + GRACE_MS,
        )

    def _create_keyed(
        self, task: Task, entry: ToolEntry, call: Call, key: str, fingerprint: str
    ) -> Task:
        wanted = KeyedTask(task.task_id, fingerprint, task.created_at, task.expires_at)
        for pause in (*WAITS, None):
            now = now_ms()
            try:
                keyed = self.keys.claim(call.principal, key, wanted, now)
            except IdempotencyKeyReused:
                raise _reused() from None
            except Exception as fault:
                if outcome_unknown(fault):
                    # It may be claimed: the repeated call would wait for a task of nobody's.
                    with suppress(Exception):
                        self.keys.release(call.principal, key, task.task_id)
                raise
            if keyed.task_id == task.task_id:
                try:
                    self._begin(task, entry)
                    return task
                except Conflict:
                    # It took so long that another request took this one for dead.
                    pass
                except (_NotKnown, _NotStarted):
                    # There may be a task, of which others that have the key have been told: to
                    # free the key would make another.
                    raise
                except ProtocolError:
                    # There is no task: the call may be repeated, with the same key.
                    self.keys.release(call.principal, key, task.task_id)
                    raise
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
                    written = self._write(late, entry)
                    # Several may have written the same row: whose start fails must not end it.
                    self._start_again(written)
                    return written
            elif pause is not None:
                self.wait(pause)
        raise ProtocolError(
            ErrorCode.INTERNAL_ERROR,
            "Another request with this idempotency key is being answered; repeat it later",
            status=HTTPStatus.CONFLICT,
        )

    def _existing(self, keyed: KeyedTask, call: Call, now: int) -> Task | None:
        """The task of a key, if it was written; started, in case that whoever wrote it died.

        Raises ProtocolError when it has just expired.
        """
        if keyed.expires_at <= now:
            raise _just_expired()
        try:
            task = self.task_table.get(keyed.task_id, now, call.principal)
        except UnknownTask:
            return None
        untouched = task.status is Status.WORKING and task.revision == 1
        if untouched and STARTED_MS < now - keyed.created_at <= START_WITHIN_MS:
            self._start_again(task)
        logger.append_keys(task_id=task.task_id)
        audit("create", task.task_id, task.principal, repeated=True)
        return task

    def _start_again(self, task: Task) -> None:
        """Start a task that may run already, or that others are starting at this moment."""
        with suppress(StartFailed):
            self._start(task)

    def _begin(self, task: Task, entry: ToolEntry) -> None:
        """Write the task, and start its execution; a task that cannot be started is over.

        Once the execution runs, its reports and its end find the row.
        """
        task = self._write(task, entry)
        try:
            self._start(task)
        except StartFailed:
            error = _NotStarted()
            # It may run all the same: the sweeper may have been faster, and not been refused.
            fail_task(task.task_id, error.as_error(), error.message, self.task_table, now_ms())
            raise error from None

    def _write(self, task: Task, entry: ToolEntry) -> Task:
        """Take a place, and write the row; returns the task as it was written."""
        logger.append_keys(task_id=task.task_id)
        try:
            self._take_place(task)
            task = replace(task, input=self._input_of(task, entry))
            self._write_row(task)
        except (_NotKnown, TooManyRequests):
            raise
        except ProtocolError:
            # Best effort: a place whose task is not there is free again after a minute.
            with suppress(Exception):
                self.quotas.release_task(task.principal, task.task_id)
            raise
        audit("create", task.task_id, task.principal, tool=task.tool)
        return task

    def _input_of(self, task: Task, entry: ToolEntry) -> str:
        """The execution's input: arguments that are too large for a row and for Step Functions are
        stored, and pointed to. Raises ProtocolError.
        """
        text = task.input or "{}"
        if len(text) > INPUT_ROOM and entry.state_machine_arn is None:
            value = json.loads(text)
            ours = {name: value.pop(name) for name in OURS[entry.kind] if name in value}
            room = max(0, INPUT_ROOM - len(_text(ours)))
            try:
                stored = self.payloads.offload(value, room, payload_prefix(task.tool, task.task_id))
            except Exception as fault:
                if not is_transient(fault):
                    raise
                logger.error("The arguments were not stored", error=error_code(fault))
                raise _unavailable() from None
            # Each argument has to be there by its name: hundreds of them cannot be pointers.
            text = _text({**(value if pointer_of(stored) else stored), **ours})
        if len(text) > MAX_INPUT:
            raise invalid_params(f"params exceed the {MAX_INPUT} bytes that an execution takes")
        return text

    def _write_row(self, task: Task) -> None:
        """Write the row. Raises Unavailable when it is not there, for all that can be known."""
        try:
            self.task_table.create(task)
        except Exception as fault:
            if not is_transient(fault):
                raise
            logger.error("The row was not written", error=error_code(fault))
            # An attempt whose answer was lost may have written it. A task that is there runs sooner
            # or later: better that its client knows.
            try:
                self.task_table.get(task.task_id, now_ms(), task.principal)
            except UnknownTask:
                # A write that was not answered may still be on its way.
                raise _NotKnown() if outcome_unknown(fault) else _unavailable() from None
            except Exception:
                raise _NotKnown from None

    def _take_place(self, task: Task) -> None:
        most, creations = self.limits.max_open_tasks, self.limits.creations_per_minute
        pace = RateLimit(creations) if creations else None
        try:
            self.quotas.acquire_task(
                task.principal, task.task_id, self.task_table, most, pace, task.last_updated_at
            )
        except QuotaExceeded:
            message = f"You have {most} tasks that are not over; wait for one, or cancel one"
            raise TooManyRequests(message, LOOK_EVERY_MS) from None
        except RateLimited as error:
            message = f"You create more than {creations} tasks a minute"
            raise TooManyRequests(message, error.retry_after_ms) from None
        except Busy:
            raise TooManyRequests("Too many calls of yours create tasks at once", 1000) from None
        except Exception as fault:
            if not is_transient(fault):
                raise
            logger.error("No place was taken", error=error_code(fault))
            raise _unavailable() from None

    def _start(self, task: Task) -> None:
        """Start the execution, or leave it to be started later. Raises StartFailed when it never
        will be.
        """
        try:
            self.executions.start(task.state_machine_arn, task.task_id, task.input or "{}")
        except StartFailed as failed:
            logger.error("StartExecution failed", error=str(failed), task_id=task.task_id)
            if failed.refused:
                raise


def _fingerprint(entry: ToolEntry, arguments: Mapping[str, Any]) -> str:
    """What is the same when a call is repeated. Answers to what was asked first are not part of it:
    the request that asks and the one that answers are one call."""
    text = json.dumps([entry.name, arguments], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


class _NotKnown(Unavailable):
    """Whether the task was written is not known; if it was, it runs."""

    def __init__(self) -> None:
        super().__init__("Whether the task was written is not known; repeat the call")


class _NotStarted(ProtocolError):
    """The task was written, and its start refused for good."""

    def __init__(self) -> None:
        super().__init__(
            ErrorCode.INTERNAL_ERROR,
            "The task could not be started; repeat the call, with another idempotency key if it "
            "had one",
        )


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _unavailable() -> ProtocolError:
    return Unavailable("The task could not be written; repeat the call")


def _just_expired() -> ProtocolError:
    # By this clock. By one that is behind, others are still told of it: a new task would do its
    # work once more.
    seconds = FREE_AFTER_MS // 1000
    return ProtocolError(
        ErrorCode.INTERNAL_ERROR,
        "The task of this idempotency key has just expired; use another key, or repeat the call "
        f"in {seconds} seconds",
        status=HTTPStatus.CONFLICT,
        retry_after_seconds=seconds,
    )


def _reused() -> ProtocolError:
    # The IETF draft, section 2.7: 422 for a key that is used again with another request.
    return ProtocolError(
        ErrorCode.INVALID_PARAMS,
        "The idempotency key was used with another tool or other arguments",
        status=HTTPStatus.UNPROCESSABLE_ENTITY,
    )
