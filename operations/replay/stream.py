"""The records of a failed stream batch, read from the table's stream as Lambda gives them."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from botocore.exceptions import ClientError

from .errors import ReplayError

EVENT_NAMES: Final = frozenset({"INSERT", "MODIFY"})
"""What the event source mapping lets through (`infra/publish.py`)."""
EXPIRED: Final = frozenset({"TrimmedDataAccessException", "ResourceNotFoundException"})
MAX_EMPTY_PAGES: Final = 1000
"""In a row. DynamoDB answers GetRecords without records for parts of a shard that have none."""


def records_of(streams: Any, batch: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The records of a batch that Lambda gave up on (Lambda developer guide, "Retain discarded
    batches for DynamoDB event sources": `DDBStreamBatchInfo`).

    Lambda names only the first and the last record. Records of batches that were processed in
    parallel lie between them, and are returned, too. Raises ReplayError when the stream does not
    hold all of the records any more.
    """
    first, last = int(batch["startSequenceNumber"]), int(batch["endSequenceNumber"])
    found: list[dict[str, Any]] = []
    started = False
    try:
        for record in _records_from(streams, batch):
            number = int(record["dynamodb"]["SequenceNumber"])
            if not started and number != first:
                break
            started = True
            if record["eventName"] in EVENT_NAMES and number <= last:
                found.append({**_as_event(record), "eventSourceARN": batch["streamArn"]})
            if number >= last:
                return found
    except ClientError as error:
        if error.response["Error"]["Code"] not in EXPIRED:
            raise
    raise ReplayError("too old: the table's stream keeps changes for 24 hours")


def _records_from(streams: Any, batch: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The shard's records from the batch's first on."""
    iterator: str | None = streams.get_shard_iterator(
        StreamArn=batch["streamArn"],
        ShardId=batch["shardId"],
        ShardIteratorType="AT_SEQUENCE_NUMBER",
        SequenceNumber=batch["startSequenceNumber"],
    )["ShardIterator"]
    empty_pages = 0
    while iterator is not None and empty_pages < MAX_EMPTY_PAGES:
        response = streams.get_records(ShardIterator=iterator)
        yield from response["Records"]
        empty_pages = 0 if response["Records"] else empty_pages + 1
        iterator = response.get("NextShardIterator")


def _as_event(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record as JSON has it: times in seconds, bytes in base64."""
    event: dict[str, Any] = json.loads(json.dumps(record, default=_as_json))
    return event


def _as_json(value: Any) -> Any:
    if isinstance(value, datetime):
        return int(value.timestamp())
    return base64.b64encode(value).decode()
