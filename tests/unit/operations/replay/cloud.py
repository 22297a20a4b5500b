"""A stack's dead-letter queues in moto, and stubs of what their messages are sent to."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

from botocore.exceptions import ClientError

from operations.replay.__main__ import QueueReport, replay
from tests.paths import EVENTS
from tests.unit.support import event_bridge
from tests.unit.support.aws import real

SECRET = "must not be printed"


def event(name: str) -> Any:
    return json.loads((EVENTS / f"{name}.json").read_text())


def dead_letters_of(source: str) -> list[dict[str, Any]]:
    """What SQS gives of a source's dead-message queue."""
    found: list[dict[str, Any]] = event(f"dead-letters-{source}")["Messages"]
    return found


class Lambda:
    """Records the calls of functions. `fails` holds the types of the errors that they raise."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []
        self.fails: list[str | Exception | None] = []
        self.during_call: Callable[[], Any] = lambda: None

    def invoke(self, FunctionName: str, Payload: bytes) -> dict[str, Any]:
        self.calls.append((FunctionName, json.loads(Payload)))
        self.during_call()
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
    """Records the events that are put onto it."""

    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] = []
        self.error: str | None = None

    def put_events(self, Entries: list[dict[str, Any]]) -> dict[str, Any]:
        self.entries += Entries
        if self.error is None:
            return event_bridge.answer(Entries)
        return {"FailedEntryCount": 1, "Entries": [{"ErrorCode": self.error}]}


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

    def source(self, name: str) -> str:
        """A source whose function `make replay` calls."""
        self.outputs[f"{name}FunctionName"] = name.lower()
        return self.queue(f"{name}DeadLetterQueueUrl")

    def send(self, url: str, body: Any, **more: Any) -> str:
        text = body if isinstance(body, str) else json.dumps(body)
        sent = self.sqs.send_message(QueueUrl=url, MessageBody=text, **more)
        message_id: str = sent["MessageId"]
        return message_id

    def fill(self, url: str, source: str) -> list[str]:
        """Send the dead-letter messages of such a source; returns the bodies."""
        found = dead_letters_of(source)
        for message in found:
            self.send(url, message["Body"], MessageAttributes=message.get("MessageAttributes", {}))
        return [message["Body"] for message in found]

    def bodies(self, url: str) -> list[str]:
        """The messages of a queue; fails when one of them is invisible."""
        hidden = "ApproximateNumberOfMessagesNotVisible"
        counts = self.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=[hidden])
        assert counts["Attributes"][hidden] == "0"
        found = self.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=0)
        return [message["Body"] for message in found.get("Messages", [])]

    def replay(self) -> dict[str, QueueReport]:
        return {t.queue.removeprefix("mcp-tasks-"): t for t in replay(self.outputs, self.clients)}


ENDED = event("finish-succeeded")
