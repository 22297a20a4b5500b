"""The journal of one task: what its tool's durable operations have come to."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from ..aws.errors import error_code
from ..payloads.offloading import json_text
from ..payloads.pointer import payload_prefix
from ..payloads.s3_store import PayloadStore, PayloadTooLarge
from .record import Kind, Operation, Record, State

MAX_INLINE_VALUE_BYTES: Final = 8_000
"""A larger value is an object in S3, which costs as much to write as 8 KB in DynamoDB."""

KEPT_AFTER_EXPIRY_MS: Final = 24 * 3600 * 1000
"""How long a journal is kept when its task has expired: what was done may have to be undone."""

HEAD: Final = "000000"
"""The id of a journal's first record, which is written before the first durable operation."""

OUTCOME: Final = "outcome"
"""The id of the record of how the tool failed, which is written before anything is undone."""

ANSWER: Final = "answer#"
"""What the ids of answers to the tool's questions begin with; the question's key follows."""


class JournalUnavailable(BaseException):
    """Ends a run: the journal could not be read or written, or the task's row, which says whether
    anything is to be undone. `error` is what AWS, or S3, said.

    It is no Exception, so a tool's own `except Exception` does not take it for a step's failure.
    """

    def __init__(self, error: Exception) -> None:
        super().__init__(error_code(error))
        self.error = error


class Table(Protocol):
    """Where journals are: `journal_table.JournalTable`, or one in memory."""

    def read(self, partition: str, prefix: str = "") -> list[Record]:
        """The records of a partition whose ids begin with `prefix`, in the order of their ids."""

    def write(self, partition: str, record: Record, seen: Record | None, expires_at: int) -> Record:
        """Write a record in the place of the one that was `seen`; returns what stands there."""


@dataclass(slots=True)
class Journal:
    """The records of one task. They are read once in a run, before its first durable operation."""

    table: Table
    payloads: PayloadStore
    tool: str
    task_id: str
    ttl_ms: int
    """The tool's: no task of it lives longer."""
    clock: Callable[[], int]
    records: dict[str, Record] = field(default_factory=dict)
    opened: bool = False

    @property
    def partition(self) -> str:
        """The key of the task's records. A worker may write those of its own tool only."""
        return journal_partition(self.tool, self.task_id)

    def read(self) -> bool:
        """Read all records, once; whether there are any."""
        if not self.opened and not self.records:
            with _available():
                self.records = {each.id: each for each in self.table.read(self.partition)}
        return bool(self.records)

    def open(self, answers: Mapping[str, Any]) -> None:
        """Read the records, and begin the journal if there are none. By its first record, a run
        that was killed is known to be one that may be repeated.

        `answers` are those that the tool has used before its first durable operation.
        """
        if self.opened:
            return
        if not self.read():
            self.write(Record(HEAD, Operation(Kind.RUN, self.tool), State.STARTED))
        self.opened = True
        for key, answer in answers.items():
            self.keep_answer(key, answer)

    def find(self, record_id: str) -> Record | None:
        """A record, if there is one."""
        return self.records.get(record_id)

    def write(self, record: Record, within: str | None = None) -> Record:
        """Write a record, whose `value` is JSON of any size. Returns the one that stands then.

        `within` names the map that the record is an item of.
        """
        return self._write(record, within)[0]

    def claim(self, record: Record) -> bool:
        """Write a record; False when another run was faster."""
        return self._write(record, None)[1]

    def _write(self, record: Record, within: str | None) -> tuple[Record, bool]:
        now = self.clock()
        seen = self.records.get(_place(record.id, within))
        record = replace(record, written_at=now)
        text = json_text(record.value)
        partition = journal_partition(self.tool, self.task_id, within)
        expires_at = (now + self.ttl_ms + KEPT_AFTER_EXPIRY_MS) // 1000
        with _available():
            if len(text) > MAX_INLINE_VALUE_BYTES:
                payload = self.payloads.put(payload_prefix(self.tool, self.task_id), text)
                record = replace(record, value=None, payload=payload)
            stands = self.table.write(partition, record, seen, expires_at)
        self.records[_place(record.id, within)] = stands
        return stands, stands is record

    def items(self, map_id: str, prefix: str = "") -> dict[int, Record]:
        """The records of a map's items, by their index."""
        with _available():
            found = self.table.read(journal_partition(self.tool, self.task_id, map_id), prefix)
        self.records |= {_place(record.id, map_id): record for record in found}
        return {number_of(record): record for record in found}

    def value(self, record: Record) -> Any:
        """What the operation returned, as JSON values."""
        if record.payload is None:
            return record.value
        with _available():
            return json.loads(self.payloads.get(record.payload))

    def inline(self, record: Record) -> Record:
        """A record that has its value in itself, however large it is."""
        return replace(record, value=self.value(record), payload=None)

    def whole(self, value: Any) -> Any:
        """JSON values whose pointers to this task's payloads are replaced by the payloads."""
        with _available():
            return self.payloads.resolve(value, payload_prefix(self.tool, self.task_id))

    @property
    def last_operation(self) -> Record | None:
        """The record of the last operation that the tool came to; None when there is none."""
        ids = [each for each in self.records if each.isdigit() and each != HEAD]
        return self.records[max(ids)] if ids else None

    def answers(self) -> dict[str, Any]:
        """The answers that the tool has used, by key."""
        kept = [each for each in self.records if each.startswith(ANSWER)]
        return {each.removeprefix(ANSWER): self.value(self.records[each]) for each in kept}

    def keep_answer(self, key: str, answer: Any) -> None:
        """Keep an answer, for the runs that get no answers with their event: those that undo."""
        record_id = f"{ANSWER}{key}"
        if record_id not in self.records:
            operation = Operation(Kind.ASK, key)
            self.write(Record(record_id, operation, State.DONE, value=answer))


def journal_partition(tool: str, task_id: str, within: str | None = None) -> str:
    """The key of a task's records, or of the items of the map or the call that is `within`."""
    return f"{tool}#{task_id}" if within is None else f"{tool}#{task_id}#{within}"


def number_of(record: Record) -> int:
    """Which item of its map or call a record is of, from 0."""
    return int(record.id.rpartition("#")[2])


def item_id(lane: int, index: int) -> str:
    """The id of a map's item within its map: a lane reads its own items, and no others."""
    return f"{lane:02}#{index:06}"


def _place(record_id: str, within: str | None) -> str:
    return record_id if within is None else f"{within}#{record_id}"


@contextmanager
def _available() -> Iterator[None]:
    try:
        yield
    except PayloadTooLarge:
        raise  # the tool may catch it
    except Exception as error:
        raise JournalUnavailable(error) from None
