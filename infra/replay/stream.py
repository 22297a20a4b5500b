"""Records of a table's stream, read again as Lambda gives them to a function."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from botocore.exceptions import ClientError

from .errors import ReplayError

CHANGES: Final = frozenset({"INSERT", "MODIFY"})
"""What the event source mapping lets through (`infra/publish.py`)."""
GONE: Final = frozenset({"TrimmedDataAccessException", "ResourceNotFoundException"})
MOST_EMPTY: Final = 1000
"""Answers without a record in a row, each of which stands for a part of the shard."""


def records_of(streams: Any, batch: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The changes that a failed batch consisted of (Lambda developer guide, "Retain discarded
    batches for DynamoDB event sources": `DDBStreamBatchInfo`).

    Of the batches that were processed in parallel, some are among them: Lambda tells no more than
    the first and the last record. Raises ReplayError when the stream has not all of them any more.
    """
    first, last = int(batch["startSequenceNumber"]), int(batch["endSequenceNumber"])
    found: list[dict[str, Any]] = []
    begun = False
    try:
        for record in _from(streams, batch):
            number = int(record["dynamodb"]["SequenceNumber"])
            if not begun and number != first:
                break
            begun = True
            if record["eventName"] in CHANGES and number <= last:
                found.append({**_plain(record), "eventSourceARN": batch["streamArn"]})
            if number >= last:
                return found
    except ClientError as error:
        if error.response["Error"]["Code"] not in GONE:
            raise
    raise ReplayError("too old: the table's stream keeps changes for 24 hours")


def _from(streams: Any, batch: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    iterator: str | None = streams.get_shard_iterator(
        StreamArn=batch["streamArn"],
        ShardId=batch["shardId"],
        ShardIteratorType="AT_SEQUENCE_NUMBER",
        SequenceNumber=batch["startSequenceNumber"],
    )["ShardIterator"]
    empty = 0
    while iterator is not None and empty < MOST_EMPTY:
        answer = streams.get_records(ShardIterator=iterator)
        yield from answer["Records"]
        empty = 0 if answer["Records"] else empty + 1
        iterator = answer.get("NextShardIterator")


def _plain(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record as JSON has it: times as seconds, bytes as base64."""
    plain: dict[str, Any] = json.loads(json.dumps(record, default=_as_json))
    return plain


def _as_json(value: Any) -> Any:
    if isinstance(value, datetime):
        return int(value.timestamp())
    return base64.b64encode(value).decode()
