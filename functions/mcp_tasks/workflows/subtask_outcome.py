"""Tell a parent how its subtask has ended.

The outcome becomes an item of the parent's journal, and the parent's state that waits for it goes
on. So the parent's worker, which may read neither the subtask's row nor its payloads, gets the
result from its own journal.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from ..durable.journal import (
    KEPT_AFTER_EXPIRY_MS,
    MAX_INLINE_VALUE_BYTES,
    item_id,
    journal_partition,
)
from ..durable.journal_table import JournalTable
from ..durable.record import Failure, Kind, Operation, Record, State
from ..payloads.offloading import json_text
from ..payloads.pointer import payload_prefix
from ..payloads.s3_store import PayloadNotFound, PayloadStore
from ..tasks.state import Status
from ..tasks.subtask import Parent
from ..tasks.task import Task
from .executions import Executions

ONE_LANE: Final = 0
"""A subtask is an item of its operation, as those of a map are; it is in no lane."""


@dataclass(frozen=True, slots=True)
class SubtaskOutcomes:
    """Writes outcomes to the journals of parents, and lets the parents go on."""

    journal_table: JournalTable
    payloads: PayloadStore
    executions: Executions

    def tell(self, task: Task, parent: Parent, now: int) -> None:
        """Tell the parent of a subtask that has ended. This may be repeated."""
        expires_at = (task.expires_at + KEPT_AFTER_EXPIRY_MS) // 1000
        record = self._record(task, parent, now)
        partition = journal_partition(parent.tool, parent.task_id, parent.operation)
        self.journal_table.write(partition, record, None, expires_at)
        for token in parent.tokens.values():
            self.executions.resume(token, {})

    def _record(self, task: Task, parent: Parent, now: int) -> Record:
        operation = Operation(Kind.SUBTASK, task.tool)
        record = Record(item_id(ONE_LANE, parent.number), operation, State.DONE, written_at=now)
        if task.status is not Status.COMPLETED:
            message = str((task.error or {}).get("message", ""))
            failure = Failure(task.status.value, message)
            return replace(record, state=State.FAILED, failure=failure)
        # The parent's worker may read the payloads of its own tool only.
        prefix = payload_prefix(parent.tool, parent.task_id)
        if task.result_payload is not None:
            try:
                return replace(record, payload=self.payloads.copy(task.result_payload, prefix))
            except PayloadNotFound:
                failure = Failure(Status.FAILED.value, "The result is not there any more")
                return replace(record, state=State.FAILED, failure=failure)
        text = json_text(task.result)
        if len(text) > MAX_INLINE_VALUE_BYTES:
            return replace(record, payload=self.payloads.put(prefix, text))
        return replace(record, value=task.result)
