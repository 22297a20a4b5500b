"""`make replay`: what is in a dead-letter queue is handed on, and goes; what cannot be stays."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from infra.replay import __main__ as program
from infra.replay import messages as letters
from infra.replay.__main__ import Tally, outputs_of, replay
from infra.server_file import ServerFile
from tests.paths import EVENTS, ROOT
from tests.unit.support.aws import real

pytestmark = pytest.mark.usefixtures("moto")

SECRET = "what nobody may print"


def event(name: str) -> Any:
    return json.loads((EVENTS / f"{name}.json").read_text())


def letters_of(hop: str) -> list[dict[str, Any]]:
    """What SQS gives of a hop's dead-letter queue."""
    found: list[dict[str, Any]] = event(f"dead-letters-{hop}")["Messages"]
    return found


class Lambda:
    """Notes what functions are called with; `fails` are the types of the errors they raise."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []
        self.fails: list[str | Exception | None] = []
        self.meanwhile: Callable[[], Any] = lambda: None

    def invoke(self, FunctionName: str, Payload: bytes) -> dict[str, Any]:
        self.calls.append((FunctionName, json.loads(Payload)))
        self.meanwhile()
        match self.fails.pop(0) if self.fails else None:
            case Exception() as error:
                raise error
            case str(kind):
                failed = json.dumps({"errorType": kind, "errorMessage": SECRET}).encode()
                return {"FunctionError": "Unhandled", "Payload": io.BytesIO(failed)}
            case _:
                return {"Payload": io.BytesIO(b"null")}


class Streams:
    """A stream of one shard, in pages; `gone` is the error that it answers with."""

    def __init__(self) -> None:
        self.pages: list[list[dict[str, Any]]] = []
        self.gone: str | None = None
        self.asked: dict[str, Any] = {}

    def get_shard_iterator(self, **asked: Any) -> dict[str, Any]:
        self.asked = asked
        if self.gone:
            raise ClientError({"Error": {"Code": self.gone, "Message": "no"}}, "GetShardIterator")
        return {"ShardIterator": "0"}

    def get_records(self, ShardIterator: str) -> dict[str, Any]:
        page = int(ShardIterator)
        following = {"NextShardIterator": str(page + 1)} if page + 1 < len(self.pages) else {}
        return {"Records": self.pages[page], **following}


class Bus:
    """Notes what is put onto it."""

    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] = []
        self.error: str | None = None

    def put_events(self, Entries: list[dict[str, Any]]) -> dict[str, Any]:
        self.entries += Entries
        failed = {"ErrorCode": self.error} if self.error else {"EventId": "e"}
        return {"FailedEntryCount": int(bool(self.error)), "Entries": [failed]}


class Cloud:
    """A stack's queues in moto, and stubs of what the messages go to."""

    def __init__(self) -> None:
        self.sqs = real("sqs")
        self.lambda_, self.streams, self.bus = Lambda(), Streams(), Bus()
        self.outputs: dict[str, str] = {"TasksTable": "tasks"}

    def clients(self, service: str) -> Any:
        return {
            "sqs": self.sqs,
            "lambda": self.lambda_,
            "dynamodbstreams": self.streams,
            "events": self.bus,
        }[service]

    def queue(self, output: str) -> str:
        url: str = self.sqs.create_queue(QueueName=f"mcp-tasks-{output}")["QueueUrl"]
        self.outputs[output] = url
        return url

    def hop(self, name: str) -> str:
        """A hop whose function is called again."""
        self.outputs[f"{name}Function"] = name.lower()
        return self.queue(f"{name}DeadLetters")

    def send(self, url: str, body: Any, **more: Any) -> str:
        text = body if isinstance(body, str) else json.dumps(body)
        sent = self.sqs.send_message(QueueUrl=url, MessageBody=text, **more)
        message_id: str = sent["MessageId"]
        return message_id

    def fill(self, url: str, hop: str) -> list[str]:
        """Put in what such a hop leaves behind; returns the bodies."""
        found = letters_of(hop)
        for letter in found:
            self.send(url, letter["Body"], MessageAttributes=letter.get("MessageAttributes", {}))
        return [letter["Body"] for letter in found]

    def bodies(self, url: str) -> list[str]:
        """What is in a queue; fails when something in it is not for everybody to see."""
        hidden = "ApproximateNumberOfMessagesNotVisible"
        counts = self.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=[hidden])
        assert counts["Attributes"][hidden] == "0"
        found = self.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=0)
        return [message["Body"] for message in found.get("Messages", [])]

    def replay(self) -> dict[str, Tally]:
        return {t.queue.removeprefix("mcp-tasks-"): t for t in replay(self.outputs, self.clients)}


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cloud]:
    monkeypatch.setattr(letters, "WAIT_SECONDS", 0)
    made = Cloud()
    yield made
    for name, value in made.outputs.items():
        if name.endswith(("DeadLetters", "Queue")):
            made.sqs.delete_queue(QueueUrl=value)


ENDED = event("finish-succeeded")


def test_an_end_is_told_to_finish_again(cloud: Cloud) -> None:
    """A rule leaves the event; Lambda leaves it as `requestPayload`."""
    url = cloud.hop("Finish")
    cloud.fill(url, "finish")
    assert cloud.replay() == {"FinishDeadLetters": Tally("mcp-tasks-FinishDeadLetters", 2, 0)}
    assert cloud.lambda_.calls == [("finish", ENDED), ("finish", ENDED)]
    assert cloud.bodies(url) == []


def test_a_second_run_finds_nothing(cloud: Cloud) -> None:
    cloud.send(cloud.hop("Finish"), ENDED)
    cloud.replay()
    assert cloud.replay()["FinishDeadLetters"].found == 0
    assert len(cloud.lambda_.calls) == 1


def test_every_message_is_tried_once_and_what_failed_can_be_seen_again_at_once(
    cloud: Cloud, capsys: pytest.CaptureFixture[str]
) -> None:
    url = cloud.hop("Finish")
    ids = [cloud.send(url, {**ENDED, "id": str(n)}) for n in range(12)]
    cloud.lambda_.fails = [None, "KeyError", ReadTimeoutError(endpoint_url="https://x")]
    tally = cloud.replay()["FinishDeadLetters"]
    assert (tally.found, tally.left, tally.good) == (12, 2, False)
    called = [call["id"] for _, call in cloud.lambda_.calls]
    assert sorted(called, key=int) == [str(n) for n in range(12)]
    left = {json.loads(body)["id"] for body in cloud.bodies(url)}
    assert left == {called[1], called[2]}
    printed = capsys.readouterr().out
    for n, why in ((called[1], "the function failed: KeyError"), (called[2], "ReadTimeoutError")):
        assert f"mcp-tasks-FinishDeadLetters, message {ids[int(n)]}: {why}\n" in printed


@pytest.mark.parametrize("letter", ["{", "[]", "{}", {"detail-type": "x"}, {"requestPayload": 1}])
def test_what_no_hop_leaves_behind_stays_and_is_not_printed(
    cloud: Cloud, capsys: pytest.CaptureFixture[str], letter: Any
) -> None:
    cloud.send(cloud.hop("Finish"), letter)
    assert cloud.replay()["FinishDeadLetters"].left == 1
    assert not cloud.lambda_.calls
    assert "not a message that a hop leaves behind" in capsys.readouterr().out


@pytest.mark.parametrize("failing", [True, False])
def test_no_content_is_printed(
    cloud: Cloud, capsys: pytest.CaptureFixture[str], failing: bool
) -> None:
    cloud.send(cloud.hop("Finish"), {**ENDED, "detail": {"output": SECRET}})
    cloud.lambda_.fails = ["ValueError" if failing else None]
    cloud.replay()
    printed = capsys.readouterr()
    assert SECRET not in printed.out + printed.err


def test_while_one_run_has_a_message_another_does_not_get_it(cloud: Cloud) -> None:
    cloud.send(cloud.hop("Finish"), ENDED)
    within: list[Tally] = []

    cloud.lambda_.meanwhile = lambda: within.extend(replay(cloud.outputs, cloud.clients))
    assert cloud.replay()["FinishDeadLetters"].found == 1
    assert [tally.found for tally in within] == [0]


def test_an_undelivered_event_goes_back_to_its_queue(cloud: Cloud) -> None:
    """Left by SQS, or by the rule with attributes of its own (EventBridge user guide, "Using
    dead-letter queues to process undelivered events"): the body is the event, either way.
    """
    url, queue = cloud.queue("DeliverDeadLetters"), cloud.queue("DeliverQueue")
    bodies = cloud.fill(url, "deliver")
    assert cloud.replay()["DeliverDeadLetters"].good
    assert cloud.bodies(queue) == bodies
    assert cloud.bodies(url) == []


def test_a_message_that_its_queue_does_not_take_stays(cloud: Cloud) -> None:
    url = cloud.queue("DeliverDeadLetters")
    cloud.outputs["DeliverQueue"] = "https://sqs.us-east-1.amazonaws.com/123456789012/gone"
    cloud.send(url, "{}")
    assert cloud.replay()["DeliverDeadLetters"].left == 1
    assert cloud.bodies(url) == ["{}"]
    del cloud.outputs["DeliverQueue"]


def test_the_sweeper_runs_once_for_all_of_its_failures(cloud: Cloud) -> None:
    url = cloud.hop("Sweep")
    cloud.fill(url, "sweep")
    assert cloud.replay()["SweepDeadLetters"] == Tally("mcp-tasks-SweepDeadLetters", 2, 0)
    assert cloud.lambda_.calls == [("sweep", {})]
    assert cloud.bodies(url) == []


def test_failures_of_the_sweeper_stay_while_it_fails(cloud: Cloud) -> None:
    url = cloud.hop("Sweep")
    cloud.fill(url, "sweep")
    cloud.lambda_.fails = ["Sandbox.Timedout"]
    assert cloud.replay()["SweepDeadLetters"].left == 2
    assert len(cloud.lambda_.calls) == 1
    assert len(cloud.bodies(url)) == 2


def test_what_the_bus_could_not_decrypt_is_put_onto_it_again(cloud: Cloud) -> None:
    url = cloud.queue("EventsDeadLetters")
    cloud.outputs["EventBus"] = "mcp-tasks"
    letter = json.loads(letters_of("deliver")[0]["Body"])
    cloud.send(url, letter)
    assert cloud.replay()["EventsDeadLetters"].good
    assert cloud.bus.entries == [
        {
            "EventBusName": "mcp-tasks",
            "Source": "mcp.tasks",
            "DetailType": "notifications/tasks",
            "Detail": json.dumps(letter["detail"]),
            "Resources": letter["resources"],
            "Time": letter["time"],
        }
    ]


@pytest.mark.parametrize("known", [True, False])
def test_what_the_bus_does_not_take_stays(cloud: Cloud, known: bool) -> None:
    """PutEvents answers 200 with a count of what failed."""
    url = cloud.queue("EventsDeadLetters")
    cloud.outputs["EventBus"] = "mcp-tasks"
    cloud.send(url, ENDED if known else {})
    cloud.bus.error = "InternalFailure"
    assert cloud.replay()["EventsDeadLetters"].left == 1
    assert len(cloud.bus.entries) == known


def test_a_hop_of_which_nothing_is_known_is_named(
    cloud: Cloud, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a fork, for instance."""
    url = cloud.queue("ResizeDeadLetters")
    assert cloud.replay()["ResizeDeadLetters"].good, "there is nothing to do"
    cloud.send(url, ENDED)
    assert cloud.replay()["ResizeDeadLetters"].left == 1
    assert "neither an output ResizeQueue nor ResizeFunction" in capsys.readouterr().out


def test_a_queue_that_cannot_be_read_does_not_hold_up_the_others(
    cloud: Cloud, capsys: pytest.CaptureFixture[str]
) -> None:
    cloud.send(cloud.hop("Finish"), ENDED)
    cloud.outputs["ADeadLetters"] = "https://sqs.us-east-1.amazonaws.com/123456789012/gone"
    tallies = replay(cloud.outputs, cloud.clients)
    del cloud.outputs["ADeadLetters"]
    assert [(t.queue, t.found, t.left, t.good) for t in tallies] == [
        ("gone", 0, 0, False),
        ("mcp-tasks-FinishDeadLetters", 1, 0, True),
    ]
    assert "not read: gone: ReceiveMessage: " in capsys.readouterr().out


def test_a_run_ends(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when something fills the queue as fast as it is emptied."""
    monkeypatch.setattr(letters, "MOST", 15)
    url = cloud.hop("Finish")
    for _ in range(3):
        cloud.send(url, ENDED)

    cloud.lambda_.meanwhile = lambda: cloud.send(url, ENDED)
    assert cloud.replay()["FinishDeadLetters"].found == 15


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
    letter: dict[str, Any] = json.loads(letters_of("publish")[0]["Body"])
    info = letter["DDBStreamBatchInfo"]
    info["startSequenceNumber"], info["endSequenceNumber"] = f"{first:026}", f"{last:026}"
    info["streamArn"] = STREAM
    return letter


def published(cloud: Cloud) -> list[list[str]]:
    return [[r["eventID"] for r in call["Records"]] for _, call in cloud.lambda_.calls]


def test_changes_are_read_from_the_stream_again(cloud: Cloud) -> None:
    """From the first to the last that the message names, over pages of which some are empty, and
    without the removals, which the event source mapping filters out.
    """
    cloud.streams.pages = [[record(5), record(6, "REMOVE")], [], [record(7, "INSERT"), record(8)]]
    cloud.send(cloud.hop("Publish"), batch(5, 7))
    assert cloud.replay()["PublishDeadLetters"].good
    assert published(cloud) == [["5", "7"]]
    assert cloud.streams.asked == {
        "StreamArn": STREAM,
        "ShardId": "shardId-00000001573689847184-864758bb",
        "ShardIteratorType": "AT_SEQUENCE_NUMBER",
        "SequenceNumber": f"{5:026}",
    }


def test_a_record_reaches_the_function_as_lambda_gives_it(cloud: Cloud) -> None:
    cloud.streams.pages = [[record(5)]]
    cloud.send(cloud.hop("Publish"), batch(5, 5))
    cloud.replay()
    ((_, call),) = cloud.lambda_.calls
    (given,) = call["Records"]
    assert given["eventSourceARN"] == STREAM
    assert given["dynamodb"]["ApproximateCreationDateTime"] == 1795281806
    assert given["dynamodb"]["NewImage"]["b"] == {"B": "AA=="}


def test_many_changes_are_handed_over_in_calls_that_lambda_takes(cloud: Cloud) -> None:
    """Lambda quotas: 6 MB for a call."""
    cloud.streams.pages = [[record(n, size=1_500_000) for n in range(5)]]
    cloud.send(cloud.hop("Publish"), batch(0, 4))
    assert cloud.replay()["PublishDeadLetters"].good
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
    message_id = cloud.send(cloud.hop("Publish"), batch(5, 7))
    assert cloud.replay()["PublishDeadLetters"].left == 1
    assert not cloud.lambda_.calls, "not in part, either"
    assert f"message {message_id}: too old: " in capsys.readouterr().out


def test_an_error_of_the_stream_s_is_not_called_old(
    cloud: Cloud, capsys: pytest.CaptureFixture[str]
) -> None:
    cloud.streams.gone = "AccessDeniedException"
    cloud.send(cloud.hop("Publish"), batch(5, 7))
    cloud.replay()
    assert "GetShardIterator: AccessDeniedException" in capsys.readouterr().out


class CloudFormation:
    def __init__(self, outputs: dict[str, str]) -> None:
        self._outputs = outputs

    def describe_stacks(self, StackName: str) -> dict[str, Any]:
        if StackName != ServerFile.read(ROOT).stack:
            raise ClientError(
                {"Error": {"Code": "ValidationError", "Message": "no such stack"}}, ""
            )
        pairs = [{"OutputKey": k, "OutputValue": v} for k, v in self._outputs.items()]
        return {"Stacks": [{"Outputs": pairs}]}


@pytest.fixture
def run(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """The program, with its arguments."""

    def client(service: str) -> Any:
        if service == "cloudformation":
            return CloudFormation(cloud.outputs)
        return cloud.clients(service)

    def program_with(*arguments: str) -> int:
        monkeypatch.setattr("sys.argv", ["replay", *arguments])
        monkeypatch.setattr(program, "clients_of", lambda profile: client)
        return program.main()

    return program_with


def test_the_program_prints_a_table_and_fails_when_something_is_left(
    cloud: Cloud, run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    cloud.send(cloud.hop("Finish"), ENDED)
    cloud.send(cloud.hop("Sweep"), event("sweep"))
    cloud.lambda_.fails = ["KeyError"]
    assert run() == 1
    _, *table = capsys.readouterr().out.splitlines()
    assert [line.split() for line in table] == [
        ["queue", "found", "replayed", "left"],
        ["mcp-tasks-FinishDeadLetters", "1", "0", "1"],
        ["mcp-tasks-SweepDeadLetters", "1", "1", "0"],
    ]
    assert run() == 0


def test_a_stack_that_is_not_there_is_an_error(
    run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--stack", "other") == 1
    assert "no such stack" in capsys.readouterr().err


def test_a_stack_without_such_outputs_is_an_error(
    run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run() == 1
    assert "no output that ends in DeadLetters" in capsys.readouterr().err


def test_outputs_of_a_stack_that_has_none() -> None:
    class None_:
        def describe_stacks(self, StackName: str) -> dict[str, Any]:
            return {"Stacks": [{}]}

    assert outputs_of(None_(), "x") == {}


def test_without_a_local_stack_the_way_to_one_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["replay", "--profile", "local"])
    monkeypatch.setattr("local.emulator.find", lambda name: None)
    assert program.main() == 1
    assert "`make up` starts one" in capsys.readouterr().err
