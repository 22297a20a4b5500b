"""Where the messages of a dead-letter queue are sent when they are replayed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from mcp_tasks.notifications.event_bus import EventBus, NotPublished

from ..deployed_stack import Clients
from .errors import ReplayError
from .messages import DeadLetterMessage
from .stream import records_of

Destination = Callable[[DeadLetterMessage], None]
"""Takes one message. It raises ReplayError, or boto3's errors, when the message has to stay."""

DEAD_LETTER_QUEUE_URL: Final = "DeadLetterQueueUrl"
"""The output `<source>DeadLetterQueueUrl` of a stack is a dead-letter queue; the source is the
construct that the queue is in, for instance `Finish` (`infra/dead_letter_queue.py`)."""
SWEEP: Final = "Sweep"
EVENT_BUS: Final = "Events"
MAX_BATCH_BYTES: Final = 4_000_000
"""Of the records in one call of a function; Lambda takes 6 MB."""
UNKNOWN_MESSAGE: Final = "not a message of a kind that dead-letter queues of this stack get"


def destination_of(source: str, outputs: Mapping[str, str], clients: Clients) -> Destination:
    """Where a dead-letter queue's messages go, by the stack's outputs.

    They are sent to the queue `<source>QueueUrl`, or the function `<source>FunctionName` is called
    with each. The sweeper is called once for all its messages, which only say that it failed.
    Raises ReplayError when the stack has neither output.
    """
    if source == EVENT_BUS and "EventBus" in outputs:
        return _to_bus(clients("events"), outputs["EventBus"])
    if f"{source}QueueUrl" in outputs:
        return _to_queue(clients("sqs"), outputs[f"{source}QueueUrl"])
    if f"{source}FunctionName" in outputs:
        call = _caller_of(clients("lambda"), outputs[f"{source}FunctionName"])
        return _once(call) if source == SWEEP else _to_function(call, clients)
    raise ReplayError(f"the stack has neither an output {source}QueueUrl nor {source}FunctionName")


def _to_bus(events: Any, name: str) -> Destination:
    """Put events onto the bus again; one that is refused for good, without its content."""
    bus = EventBus(events, name)

    def put(message: DeadLetterMessage) -> None:
        try:
            bus.publish_again(_json_object(message.body))
        except (KeyError, TypeError, ValueError):
            raise ReplayError(UNKNOWN_MESSAGE) from None
        except NotPublished as error:
            raise ReplayError(f"PutEvents: {error}") from None

    return put


def _to_queue(sqs: Any, url: str) -> Destination:
    """Send the body as it is. A rule adds its error to a dead-letter message as attributes, which
    are left out.
    """

    def send(message: DeadLetterMessage) -> None:
        sqs.send_message(QueueUrl=url, MessageBody=message.body)

    return send


def _caller_of(lambda_: Any, name: str) -> Callable[[Any], None]:
    """Call a function and wait for its end, so that its failure is known."""

    def call(event: Any) -> None:
        response = lambda_.invoke(FunctionName=name, Payload=json.dumps(event).encode())
        if "FunctionError" in response:
            error = json.loads(response["Payload"].read() or b"{}")
            # Only the type: the error's text may quote the event.
            raise ReplayError(f"the function failed: {error.get('errorType', 'no reason given')}")

    return call


def _once(call: Callable[[Any], None]) -> Destination:
    """Call the function for the first message; its outcome counts for all messages."""
    outcomes: list[ReplayError | None] = []

    def run(message: DeadLetterMessage) -> None:
        if not outcomes:
            try:
                call({})
                outcomes.append(None)
            except ReplayError as error:
                outcomes.append(error)
        if outcomes[0] is not None:
            raise outcomes[0]

    return run


def _to_function(call: Callable[[Any], None], clients: Clients) -> Destination:
    """Call the function with the event that it failed at, which a message holds in one of three
    forms.
    """

    def replay(message: DeadLetterMessage) -> None:
        match _json_object(message.body):
            case {"DDBStreamBatchInfo": dict(batch)}:  # of an event source mapping of a stream
                for records in _batches(records_of(clients("dynamodbstreams"), batch)):
                    call({"Records": records})
            case {"requestContext": dict(), "requestPayload": payload}:  # of an asynchronous call
                call(payload)
            case {"detail-type": str(), "detail": dict()} as event:  # of a rule
                call(event)
            case _:
                raise ReplayError(UNKNOWN_MESSAGE)

    return replay


def _batches(records: Sequence[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Records in their order, as many at a time as one call may hold."""
    batch: list[dict[str, Any]] = []
    size = 0
    for record in records:
        length = len(json.dumps(record))
        if batch and size + length > MAX_BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(record)
        size += length
    if batch:
        yield batch


def _json_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        raise ReplayError(UNKNOWN_MESSAGE) from None
    if not isinstance(value, dict):
        raise ReplayError(UNKNOWN_MESSAGE)
    return value
