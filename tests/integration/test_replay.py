"""`make replay`: dead-letter messages, as AWS writes them, are processed after all."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from local.deployment import LocalStack
from local.environment import ROOT
from local.gateway import Gateway
from operations.deployed_stack import outputs_of
from operations.replay.__main__ import QueueReport, replay
from tests.integration.support.aws import event_source, function_name, listed
from tests.integration.support.client import Client
from tests.integration.support.traces import Traces
from tests.integration.test_notifications_survive_failures import CHANGES, subscribed

EVENTS = ROOT / "events"


class DeadLetters:
    """The stack's dead-letter queues."""

    def __init__(self, stack: LocalStack, aws: Any) -> None:
        self._aws = aws
        self.outputs = outputs_of(aws("cloudformation"), stack.name)

    def put(self, hop: str, body: Any, attributes: dict[str, Any] | None = None) -> None:
        self._aws("sqs").send_message(
            QueueUrl=self.outputs[f"{hop}DeadLetterQueueUrl"],
            MessageBody=body if isinstance(body, str) else json.dumps(body),
            MessageAttributes=attributes or {},
        )

    def replay(self, hop: str) -> QueueReport:
        """Replay all queues, and return the tally of one."""
        tallies = {tally.queue: tally for tally in replay(self.outputs, self._aws)}
        return tallies[self.outputs[f"{hop}DeadLetterQueueUrl"].rpartition("/")[2]]


@pytest.fixture
def dead_letters(stack: LocalStack, aws: Any) -> DeadLetters:
    return DeadLetters(stack, aws)


def messages_of(hop: str) -> list[dict[str, Any]]:
    """Messages as AWS left them in a hop's dead-letter queue."""
    found: list[dict[str, Any]] = json.loads((EVENTS / f"dead-letters-{hop}.json").read_text())[
        "Messages"
    ]
    return found


@contextmanager
def dropping_execution_events(aws: Any, stack: LocalStack) -> Iterator[None]:
    """Let no function receive the events about executions' ends."""
    events = aws("events")
    prefix = f"{stack.name}-FinishExecutionEnded"
    (rule,) = listed(events, "list_rules", "Rules", NamePrefix=prefix)
    events.disable_rule(Name=rule["Name"])
    try:
        yield
    finally:
        events.enable_rule(Name=rule["Name"])


@contextmanager
def discarding_stream(aws: Any, function: str) -> Iterator[None]:
    """Let the function's stream records be passed over, as when Lambda has given up on them."""
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
def holding_queue(aws: Any, function: str) -> Iterator[None]:
    """Do not call a function with its queue's messages."""
    lambda_ = aws("lambda")
    mapping = event_source(lambda_, function)
    lambda_.update_event_source_mapping(UUID=mapping["UUID"], Enabled=False)
    try:
        yield
    finally:
        lambda_.update_event_source_mapping(UUID=mapping["UUID"], Enabled=True)


@pytest.mark.parametrize("index", [0, 1], ids=["the rule", "Lambda"])
def test_a_task_whose_executions_end_was_missed_is_finished(
    stack: LocalStack,
    aws: Any,
    client: Client,
    traces: Traces,
    dead_letters: DeadLetters,
    index: int,
) -> None:
    with dropping_execution_events(aws, stack):
        task_id = client.start("count_up", to=1)
        traces.until_execution(task_id, "SUCCEEDED")
        arn = traces.row(task_id)["stateMachineArn"]["S"]
        execution = aws("stepfunctions").describe_execution(
            executionArn=f"{arn.replace(':stateMachine:', ':execution:')}:{task_id}"
        )
        message = messages_of("finish")[index]
        body = json.loads(message["Body"])
        event = body.get("requestPayload", body)
        fields = ("executionArn", "stateMachineArn", "name", "status", "output")
        event["detail"] |= {name: execution[name] for name in fields}
        event["detail"]["startDate"] = round(execution["startDate"].timestamp() * 1000)
        dead_letters.put("Finish", body, message.get("MessageAttributes"))
        assert traces.row(task_id)["status"]["S"] == "working"
        tally = dead_letters.replay("Finish")
    assert (tally.found, tally.left) == (1, 0)
    assert traces.row(task_id)["status"]["S"] == "completed"
    assert dead_letters.replay("Finish").found == 0


def test_changes_that_were_not_published_reach_subscribers(
    gateway: Gateway, stack: LocalStack, aws: Any, dead_letters: DeadLetters
) -> None:
    """The dead-letter message points into the stream, which still has the changes."""
    publish = function_name(stack, aws("lambda"), "Publish")
    with subscribed(Client(gateway.url)) as subscriber, discarding_stream(aws, publish):
        subscriber.accept_start()
        subscriber.client.end(subscriber.task_id)
        (message,) = messages_of("publish")
        body = json.loads(message["Body"])
        body["DDBStreamBatchInfo"] |= _changes_of(subscriber.task_id, stack, aws)
        dead_letters.put("Publish", body)
        tally = dead_letters.replay("Publish")
        subscriber.running.result()
    assert (tally.found, tally.left) == (1, 0)
    assert subscriber.delivered() == CHANGES


def _changes_of(task_id: str, stack: LocalStack, aws: Any) -> dict[str, Any]:
    """Where in the stream a task's changes are, from its start on."""
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


def test_changes_that_were_not_delivered_reach_subscribers(
    gateway: Gateway, stack: LocalStack, aws: Any, dead_letters: DeadLetters
) -> None:
    """They are moved from the dead-letter queue back into the queue."""
    deliver = function_name(stack, aws("lambda"), "Deliver")
    with subscribed(Client(gateway.url)) as subscriber:
        with holding_queue(aws, deliver):
            subscriber.accept_start()
            subscriber.client.end(subscriber.task_id)
            _give_up_on(len(CHANGES), dead_letters, aws)
            assert subscriber.delivered() == []
            tally = dead_letters.replay("Deliver")
        subscriber.running.result()
    assert (tally.found, tally.left) == (len(CHANGES), 0)
    assert subscriber.delivered() == CHANGES


def _give_up_on(count: int, dead_letters: DeadLetters, aws: Any) -> None:
    """Move messages into the dead-letter queue, as SQS does after too many receives."""
    sqs, queue = aws("sqs"), dead_letters.outputs["DeliverQueueUrl"]
    deadline = time.monotonic() + 30
    while count:
        assert time.monotonic() < deadline
        answer = sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10, WaitTimeSeconds=1)
        for message in answer.get("Messages", []):
            dead_letters.put("Deliver", message["Body"])
            sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
            count -= 1


def test_a_failed_run_of_the_sweeper_is_repeated(dead_letters: DeadLetters) -> None:
    for message in messages_of("sweep"):
        dead_letters.put("Sweep", message["Body"], message.get("MessageAttributes"))
    tally = dead_letters.replay("Sweep")
    assert (tally.found, tally.left) == (2, 0)


def test_messages_about_a_deleted_stream_stay_and_are_reported_as_too_old(
    dead_letters: DeadLetters, aws: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    (message,) = messages_of("publish")
    dead_letters.put("Publish", message["Body"])
    tally = dead_letters.replay("Publish")
    aws("sqs").purge_queue(QueueUrl=dead_letters.outputs["PublishDeadLetterQueueUrl"])
    assert (tally.found, tally.left) == (1, 1)
    assert ": too old: " in capsys.readouterr().out
