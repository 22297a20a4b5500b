"""Task creation with an idempotency key: a repeated `tools/call` gets the same task.

The first request claims the key for its task before it writes the row. Every other request with
the key gets that task. A request that finds the key claimed and no row waits for the row. When the
claim is old, the request that made it has died, and this request writes the row in its place.
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
from ...aws.errors import outcome_unknown
from ...protocol.errors import ErrorCode, ProtocolError, invalid_params
from ...registry.catalogue import ToolEntry
from ...tasks.errors import Conflict, UnknownTask
from ...tasks.idempotency import FREE_AFTER_MS, IdempotencyKeyReused, IdempotencyKeys, KeyedTask
from ...tasks.reconcile_schedule import FIRST_RECONCILE_MS
from ...tasks.state import Status
from ...tasks.task import Task, now_ms
from ...workflows.executions import MAX_START_AGE_MS
from ..call import Call, RequestIdReused
from .task_creation import IdUsedBefore, StartRefused, TaskCreation, WriteOutcomeUnknown
from .tasks_sep_1686 import CLIENT_TASK_ID

CLAIM_MS: Final = 60_000
"""How long the request that claimed a key may take to write its task. Later, others write it."""

START_AGAIN_MS: Final = 3_000
"""How old an untouched task has to be before a repeated call starts its execution again. An
execution that runs, or ran, is not started twice: its name is the task's id. A task that is older
than Step Functions remembers names is left to the sweeper."""

WAITS_SECONDS: Final = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
"""Between two looks for the task of a key that another request has just claimed."""

CALL: Final = "call"
"""The member of a task's client context that has the fingerprint of its call."""

logger = Logger()


@dataclass(frozen=True, slots=True)
class IdempotentCreation:
    """Creates tasks, at most one for an idempotency key."""

    creation: TaskCreation
    keys: IdempotencyKeys
    wait: Callable[[float], None] = time.sleep

    def existing(self, call: Call, entry: ToolEntry, arguments: dict[str, Any]) -> Task | None:
        """The task that the call's key already stands for, if there is one.

        Raises ProtocolError when the key stands for another call, or for a task that has just
        expired.
        """
        if call.idempotency_key is None:
            return None
        fingerprint, now = _fingerprint(entry, arguments), now_ms()
        try:
            keyed = self.keys.find(call.principal, call.idempotency_key, fingerprint, now)
        except IdempotencyKeyReused:
            raise _key_reused() from None
        return None if keyed is None else self._task_of(keyed, call, now)

    def create(
        self, call: Call, entry: ToolEntry, arguments: dict[str, Any], execution_input: Any
    ) -> Task:
        """Write the task and start its execution, unless the call's key already stands for a task.

        Raises ProtocolError (-32602) for too large arguments and TooManyRequests; then there is no
        task. Raises ProtocolError (-32600) for a request id that the session has used before.
        Raises Unavailable when the task was not written, and WriteOutcomeUnknown.
        """
        task = self.creation.new_task(call, entry, execution_input)
        fingerprint = _fingerprint(entry, arguments)
        if call.idempotency_key is None:
            return self._create_once(call, task, entry, fingerprint)
        wanted = KeyedTask(task.task_id, fingerprint, task.created_at, task.expires_at)
        for pause in (*WAITS_SECONDS, None):
            now = now_ms()
            keyed = self._claim(call.principal, call.idempotency_key, wanted, now)
            claimed = keyed.task_id == task.task_id
            if claimed and self._create_claimed(task, entry, call.idempotency_key):
                return task
            if (found := self._task_of(keyed, call, now)) is not None:
                return found
            if now - keyed.created_at > CLAIM_MS:
                if (written := self._take_over(keyed, task, entry)) is not None:
                    return written
            elif pause is not None:
                self.wait(pause)
        raise _key_in_use()

    def _create_once(self, call: Call, task: Task, entry: ToolEntry, fingerprint: str) -> Task:
        """Create a task, or return the one that the same request has created before: its client may
        have lost the response, and sends the request again in its session."""
        context = {**task.client_context, CALL: fingerprint} if call.task_id else {}
        task = replace(task, client_context=context or task.client_context)
        try:
            self.creation.create(task, entry)
        except Conflict as conflict:
            found = conflict.task
            same = found.client_context.get(CALL) == fingerprint
            if not same or CLIENT_TASK_ID in call.client_context:
                raise _in_use(call) from None
            self._start_again(found, now_ms())
            return found
        except IdUsedBefore:
            raise _in_use(call) from None
        return task

    def _claim(self, principal: str, key: str, wanted: KeyedTask, now: int) -> KeyedTask:
        """Claim the key; returns the task that it stands for."""
        try:
            return self.keys.claim(principal, key, wanted, now)
        except IdempotencyKeyReused:
            raise _key_reused() from None
        except Exception as error:
            if outcome_unknown(error):
                # The claim may have been written. Unless it is released, the repeated call waits
                # for a task that nobody writes.
                with suppress(Exception):
                    self.keys.release(principal, key, wanted.task_id)
            raise

    def _create_claimed(self, task: Task, entry: ToolEntry, key: str) -> bool:
        """Create the task of a key that this request claimed; False when another request did."""
        try:
            self.creation.create(task, entry)
        except Conflict:
            # This request took so long that another one took its claim over.
            return False
        except (WriteOutcomeUnknown, StartRefused):
            # There may be a task, and other requests may have answered with it. A released key
            # would make a second task.
            raise
        except ProtocolError:
            # There is no task: the call may be repeated with the same key.
            self.keys.release(task.principal, key, task.task_id)
            raise
        return True

    def _take_over(self, keyed: KeyedTask, task: Task, entry: ToolEntry) -> Task | None:
        """Write the task of a claim whose request has died; None when another request did."""
        late = replace(
            task,
            task_id=keyed.task_id,
            created_at=keyed.created_at,
            ttl_ms=keyed.expires_at - keyed.created_at,
        )
        try:
            written = self.creation.write(late, entry)
        except Conflict:
            return None
        # Several requests may have written the same row, so a refused start must not fail the task.
        self.creation.start_again(written)
        return written

    def _task_of(self, keyed: KeyedTask, call: Call, now: int) -> Task | None:
        """The task of a key, if its row is written.

        Its execution is started again, in case that the request that wrote the row died before it
        did. Raises ProtocolError when the task has just expired.
        """
        if keyed.expires_at <= now:
            raise _just_expired()
        try:
            task = self.creation.task_table.get(keyed.task_id, now, call.principal)
        except UnknownTask:
            return None
        if START_AGAIN_MS < now - keyed.created_at <= MAX_START_AGE_MS:
            self._start_again(task, now)
        logger.append_keys(task_id=task.task_id)
        audit("create", task.task_id, task.principal, repeated=True)
        return task

    def _start_again(self, task: Task, now: int) -> None:
        """Start an untouched task's execution, once; later the sweeper does, or a poll."""
        untouched = task.status is Status.WORKING and task.revision == 1
        index = self.creation.task_table.reconcile_index
        if untouched and index.claim_for_repeat(task, FIRST_RECONCILE_MS, now):
            self.creation.start_again(task)


def _fingerprint(entry: ToolEntry, arguments: Mapping[str, Any]) -> str:
    """A hash of what a repeated call repeats: the tool and its arguments.

    The client's answers are not part of it: the request that gets the questions and the one that
    brings the answers are one call.
    """
    text = json.dumps([entry.name, arguments], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _in_use(call: Call) -> ProtocolError:
    """The client has chosen the task's id, by itself or by its request's id."""
    if (client_id := call.client_context.get(CLIENT_TASK_ID)) is not None:
        return invalid_params(f"Task ID already exists: {client_id}")
    return RequestIdReused()


def _key_reused() -> ProtocolError:
    # The IETF draft, section 2.7: 422 for a key that comes again with another request.
    return ProtocolError(
        ErrorCode.INVALID_PARAMS,
        "The idempotency key was used with another tool or other arguments",
        status=HTTPStatus.UNPROCESSABLE_ENTITY,
    )


def _key_in_use() -> ProtocolError:
    return ProtocolError(
        ErrorCode.INTERNAL_ERROR,
        "Another request with this idempotency key is being answered; repeat it later",
        status=HTTPStatus.CONFLICT,
    )


def _just_expired() -> ProtocolError:
    # By this instance's clock. Another instance, whose clock is behind, may still return the task,
    # so a new task would do the same work again.
    seconds = FREE_AFTER_MS // 1000
    return ProtocolError(
        ErrorCode.INTERNAL_ERROR,
        "The task of this idempotency key has just expired; use another key, or repeat the call "
        f"in {seconds} seconds",
        status=HTTPStatus.CONFLICT,
        retry_after_seconds=seconds,
    )
