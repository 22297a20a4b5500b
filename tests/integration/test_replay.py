"""`make replay`: dead letters, as AWS leaves them, do what they were to do."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from infra.replay.__main__ import Tally, outputs_of, replay
from local.deployment import LocalStack
from local.environment import ROOT
from local.gateway import Gateway
from tests.integration.support.aws import event_source, function_name, listed
from tests.integration.support.client import Client
from tests.integration.support.traces import Traces
from tests.integration.test_push_survives import CHANGES, following

EVENTS = ROOT / "events"


class Letters:
    """The stack's dead-letter queues."""

    def __init__(self, stack: LocalStack, aws: Any) -> None:
        self._aws = aws
        self.outputs = outputs_of(aws("cloudformation"), stack.name)

    def put(self, hop: str, body: Any, attributes: dict[str, Any] | None = None) -> None:
        self._aws("sqs").send_message(
            QueueUrl=self.outputs[f"{hop}DeadLetters"],
            MessageBody=body if isinstance(body, str) else json.dumps(body),
            MessageAttributes=attributes or {},
        )

    def replay(self, hop: str) -> Tally:
        """Replay everything, and return what became of one queue."""
        tallies = {tally.queue: tally for tally in replay(self.outputs, self._aws)}
        return tallies[self.outputs[f"{hop}DeadLetters"].rpartition("/")[2]]


@pytest.fixture
def letters(stack: LocalStack, aws: Any) -> Letters:
    return Letters(stack, aws)


def left_by(hop: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((EVENTS / f"dead-letters-{hop}.json").read_text())[
        "Messages"
    ]
    return found


@contextmanager
def deaf(aws: Any, stack: LocalStack) -> Iterator[None]:
    """Nobody hears that executions end."""
    events = aws("events")
    prefix = f"{stack.name}-FinishExecutionEnded"
    (rule,) = listed(events, "list_rules", "Rules", NamePrefix=prefix)
    events.disable_rule(Name=rule["Name"])
    try:
        yield
    finally:
        events.enable_rule(Name=rule["Name"])


@contextmanager
def given_up_on(aws: Any, function: str) -> Iterator[None]:
    """What comes in its stream is passed over, as what Lambda has given up on."""
    lambda_ = aws("lambda")
    mapping = event_source(lambda_, function)
    nothing = {"Filters": [{"Pattern": json.dumps({"eventName": ["NOTHING"]})}]}
    lambda_.update_event_source_mapping(UUID=mapping["UUID"], FilterCriteria=nothing)
    try:
        yield
    finally:
        lambda_.update_event_source_mapping(
            UUID=mapping["UUID"], FilterCriteria=mapping["FilterCriteria"]
        )


@contextmanager
def unread(aws: Any, function: str) -> Iterator[None]:
    """A function is not called with what is in its queue."""
    lambda_ = aws("lambda")
    mapping = event_source(lambda_, function)
    lambda_.update_event_source_mapping(UUID=mapping["UUID"], Enabled=False)
    try:
        yield
    finally:
        lambda_.update_event_source_mapping(UUID=mapping["UUID"], Enabled=True)


@pytest.mark.parametrize("left_by_whom", [0, 1], ids=["the rule", "Lambda"])
def test_a_task_whose_end_was_not_heard_is_finished(
    stack: LocalStack,
    aws: Any,
    client: Client,
    traces: Traces,
    letters: Letters,
    left_by_whom: int,
) -> None:
    with deaf(aws, stack):
        task_id = client.start("count_up", to=1)
        traces.until_execution(task_id, "SUCCEEDED")
        arn = traces.row(task_id)["stateMachineArn"]["S"]
        execution = aws("stepfunctions").describe_execution(
            executionArn=f"{arn.replace(':stateMachine:', ':execution:')}:{task_id}"
        )
        letter = left_by("finish")[left_by_whom]
        body = json.loads(letter["Body"])
        event = body.get("requestPayload", body)
        told = ("executionArn", "stateMachineArn", "name", "status", "output")
        event["detail"] |= {name: execution[name] for name in told}
        letters.put("Finish", body, letter.get("MessageAttributes"))
        assert traces.row(task_id)["status"]["S"] == "working"
        tally = letters.replay("Finish")
    assert (tally.found, tally.left) == (1, 0)
    assert traces.row(task_id)["status"]["S"] == "completed"
    assert letters.replay("Finish").found == 0


def test_changes_that_were_not_published_reach_those_who_listen(
    gateway: Gateway, stack: LocalStack, aws: Any, letters: Letters
) -> None:
    """From the stream, which the message points into."""
    publish = function_name(stack, aws("lambda"), "Publish")
    with following(Client(gateway.url)) as follower, given_up_on(aws, publish):
        follower.tell()
        follower.client.end(follower.task_id)
        (letter,) = left_by("publish")
        body = json.loads(letter["Body"])
        body["DDBStreamBatchInfo"] |= _changes_of(follower.task_id, stack, aws)
        letters.put("Publish", body)
        tally = letters.replay("Publish")
        follower.running.result()
    assert (tally.found, tally.left) == (1, 0)
    assert follower.told() == CHANGES


def _changes_of(task_id: str, stack: LocalStack, aws: Any) -> dict[str, Any]:
    """Where in the stream a task's changes are, from the moment that it waited to be told."""
    streams = aws("dynamodbstreams")
    (found,) = streams.list_streams(TableName=stack.outputs["TasksTable"])["Streams"]
    arn = found["StreamArn"]
    (shard,) = streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]
    iterator = streams.get_shard_iterator(
        StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
    )["ShardIterator"]
    numbers: list[str] = []
    while records := (page := streams.get_records(ShardIterator=iterator))["Records"]:
        for record in records:
            change = record["dynamodb"]
            if change["Keys"]["taskId"]["S"] == task_id:
                numbers.append(change["SequenceNumber"])
        iterator = page["NextShardIterator"]
    return {
        "streamArn": arn,
        "shardId": shard["ShardId"],
        "startSequenceNumber": numbers[0],
        "endSequenceNumber": numbers[-1],
    }


def test_changes_that_were_not_delivered_reach_those_who_listen(
    gateway: Gateway, stack: LocalStack, aws: Any, letters: Letters
) -> None:
    """From the dead-letter queue back into the queue, where they are found again."""
    deliver = function_name(stack, aws("lambda"), "Deliver")
    with following(Client(gateway.url)) as follower:
        with unread(aws, deliver):
            follower.tell()
            follower.client.end(follower.task_id)
            _give_up_on(len(CHANGES), letters, aws)
            assert follower.told() == []
            tally = letters.replay("Deliver")
        follower.running.result()
    assert (tally.found, tally.left) == (len(CHANGES), 0)
    assert follower.told() == CHANGES


def _give_up_on(count: int, letters: Letters, aws: Any) -> None:
    """Move messages into the dead-letter queue, as SQS does with what was received too often."""
    sqs, queue = aws("sqs"), letters.outputs["DeliverQueue"]
    deadline = time.monotonic() + 30
    while count:
        assert time.monotonic() < deadline
        answer = sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10, WaitTimeSeconds=1)
        for message in answer.get("Messages", []):
            letters.put("Deliver", message["Body"])
            sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
            count -= 1


def test_the_sweeper_runs_for_what_it_failed_at(letters: Letters) -> None:
    for letter in left_by("sweep"):
        letters.put("Sweep", letter["Body"], letter.get("MessageAttributes"))
    tally = letters.replay("Sweep")
    assert (tally.found, tally.left) == (2, 0)


def test_changes_of_a_stream_that_is_gone_stay_and_are_said_to_be_too_old(
    letters: Letters, aws: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    (letter,) = left_by("publish")
    letters.put("Publish", letter["Body"])
    tally = letters.replay("Publish")
    aws("sqs").purge_queue(QueueUrl=letters.outputs["PublishDeadLetters"])
    assert (tally.found, tally.left) == (1, 1)
    assert ": too old: " in capsys.readouterr().out
