"""Changes that `publish` gave up on are read from the table's stream."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.unit.operations.replay.cloud import Cloud, Streams, dead_letters_of

STREAM = "arn:aws:dynamodb:eu-central-1:111122223333:table/t/stream/2026-11-21T17:23:26.153"


def record(number: int, name: str = "MODIFY", size: int = 0) -> dict[str, Any]:
    return {
        "eventID": str(number),
        "eventName": name,
        "dynamodb": {
            "SequenceNumber": f"{number:026}",
            "ApproximateCreationDateTime": datetime.fromtimestamp(1795281806, UTC),
            "NewImage": {"taskId": {"S": "c1-1"}, "b": {"B": b"\x00"}, "s": {"S": "x" * size}},
        },
    }


def batch(first: int, last: int) -> dict[str, Any]:
    message: dict[str, Any] = json.loads(dead_letters_of("publish")[0]["Body"])
    info = message["DDBStreamBatchInfo"]
    info["startSequenceNumber"], info["endSequenceNumber"] = f"{first:026}", f"{last:026}"
    info["streamArn"] = STREAM
    return message


def published(cloud: Cloud) -> list[list[str]]:
    return [[r["eventID"] for r in call["Records"]] for _, call in cloud.lambda_.calls]


def test_changes_are_read_from_the_stream_again(cloud: Cloud) -> None:
    """From the first to the last that the message names, over pages of which some are empty, and
    without the removals, which the event source mapping filters out.
    """
    cloud.streams.pages = [[record(5), record(6, "REMOVE")], [], [record(7, "INSERT"), record(8)]]
    cloud.send(cloud.source("Publish"), batch(5, 7))
    assert cloud.replay()["PublishDeadLetterQueueUrl"].emptied
    assert published(cloud) == [["5", "7"]]
    assert cloud.streams.asked == {
        "StreamArn": STREAM,
        "ShardId": "shardId-00000001573689847184-864758bb",
        "ShardIteratorType": "AT_SEQUENCE_NUMBER",
        "SequenceNumber": f"{5:026}",
    }


def test_a_record_reaches_the_function_as_lambda_gives_it(cloud: Cloud) -> None:
    cloud.streams.pages = [[record(5)]]
    cloud.send(cloud.source("Publish"), batch(5, 5))
    cloud.replay()
    ((_, call),) = cloud.lambda_.calls
    (given,) = call["Records"]
    assert given["eventSourceARN"] == STREAM
    assert given["dynamodb"]["ApproximateCreationDateTime"] == 1795281806
    assert given["dynamodb"]["NewImage"]["b"] == {"B": "AA=="}


def test_many_changes_are_handed_over_in_calls_that_lambda_takes(cloud: Cloud) -> None:
    """Lambda quotas: 6 MB for a call."""
    cloud.streams.pages = [[record(n, size=1_500_000) for n in range(5)]]
    cloud.send(cloud.source("Publish"), batch(0, 4))
    assert cloud.replay()["PublishDeadLetterQueueUrl"].emptied
    assert published(cloud) == [["0", "1"], ["2", "3"], ["4"]]


def gone(code: str) -> Callable[[Streams], None]:
    def be_gone(streams: Streams) -> None:
        streams.gone = code

    return be_gone


def begins_later(streams: Streams) -> None:
    streams.pages = [[record(6), record(7)]]


def ends_before(streams: Streams) -> None:
    streams.pages = [[record(5)]]


@pytest.mark.parametrize(
    "have",
    [
        gone("TrimmedDataAccessException"),
        gone("ResourceNotFoundException"),
        begins_later,
        ends_before,
    ],
)
def test_changes_that_the_stream_has_no_more_are_said_to_be_too_old_and_stay(
    cloud: Cloud, capsys: pytest.CaptureFixture[str], have: Callable[[Streams], None]
) -> None:
    """GetShardIterator, API reference: "the oldest record in the shard", 24 hours."""
    have(cloud.streams)
    message_id = cloud.send(cloud.source("Publish"), batch(5, 7))
    assert cloud.replay()["PublishDeadLetterQueueUrl"].left == 1
    assert not cloud.lambda_.calls, "not in part, either"
    assert f"message {message_id}: too old: " in capsys.readouterr().out


def test_an_error_of_the_stream_s_is_not_called_old(
    cloud: Cloud, capsys: pytest.CaptureFixture[str]
) -> None:
    cloud.streams.gone = "AccessDeniedException"
    cloud.send(cloud.source("Publish"), batch(5, 7))
    cloud.replay()
    assert "GetShardIterator: AccessDeniedException" in capsys.readouterr().out
