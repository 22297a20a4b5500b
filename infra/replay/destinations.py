"""Where the messages of a dead-letter queue go when they are replayed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from .errors import ReplayError
from .messages import DeadLetterMessage
from .stream import records_of

Clients = Callable[[str], Any]
"""A service's name -> its boto3 client."""
Way = Callable[[DeadLetterMessage], None]
"""Hands a message on. It raises, when the message is to stay: ReplayError, or what boto3 raises."""

LETTERS: Final = "DeadLetters"
"""`<Hop>DeadLetters` is the output of a stack that names a dead-letter queue."""
SWEEP: Final = "Sweep"
EVENTS: Final = "Events"
BATCH_BYTES: Final = 4_000_000
"""Of records in one call, which may have 6 MB."""
NOT_KNOWN: Final = "not a message that a hop leaves behind"


def way_of(hop: str, outputs: Mapping[str, str], clients: Clients) -> Way:
    """How the messages of a hop are replayed, as the stack's outputs say.

    `<Hop>Queue` gets them again, `<Hop>Function` is called with them again. The sweeper is called
    once for all of its messages: they hold nothing but that it failed. Raises ReplayError for a hop
    with neither output.
    """
    if hop == EVENTS and "EventBus" in outputs:
        return _bus(clients("events"), outputs["EventBus"])
    if f"{hop}Queue" in outputs:
        return _queue(clients("sqs"), outputs[f"{hop}Queue"])
    if f"{hop}Function" in outputs:
        call = _function(clients("lambda"), outputs[f"{hop}Function"])
        if hop == SWEEP:
            return _once(call)
        return _event(call, clients)
    raise ReplayError(f"the stack has neither an output {hop}Queue nor {hop}Function")


def _bus(events: Any, name: str) -> Way:
    def put(letter: DeadLetterMessage) -> None:
        event = _object(letter.body)
        try:
            entry = {
                "EventBusName": name,
                "Source": event["source"],
                "DetailType": event["detail-type"],
                "Detail": json.dumps(event["detail"]),
                "Resources": event["resources"],
                "Time": event["time"],
            }
        except KeyError:
            raise ReplayError(NOT_KNOWN) from None
        answer = events.put_events(Entries=[entry])
        if answer["FailedEntryCount"]:
            raise ReplayError(f"PutEvents: {answer['Entries'][0]['ErrorCode']}")

    return put


def _queue(sqs: Any, url: str) -> Way:
    """Both SQS itself and a rule leave the message as it was; the rule adds what went wrong, in
    attributes, which are left out.
    """

    def send(letter: DeadLetterMessage) -> None:
        sqs.send_message(QueueUrl=url, MessageBody=letter.body)

    return send


def _function(lambda_: Any, name: str) -> Callable[[Any], None]:
    """Call a function and wait until it ended, so that a failure is one here."""

    def call(event: Any) -> None:
        answer = lambda_.invoke(FunctionName=name, Payload=json.dumps(event).encode())
        if "FunctionError" in answer:
            error = json.loads(answer["Payload"].read() or b"{}")
            # Its message may say what the event said.
            raise ReplayError(f"the function failed: {error.get('errorType', 'no reason given')}")

    return call


def _once(call: Callable[[Any], None]) -> Way:
    done: list[ReplayError | None] = []

    def run(letter: DeadLetterMessage) -> None:
        if not done:
            try:
                call({})
                done.append(None)
            except ReplayError as error:
                done.append(error)
        if done[0] is not None:
            raise done[0]

    return run


def _event(call: Callable[[Any], None], clients: Clients) -> Way:
    """The event that the function failed at, which each kind of hop leaves in a form of its own."""

    def hand_over(letter: DeadLetterMessage) -> None:
        match _object(letter.body):
            case {"DDBStreamBatchInfo": dict(batch)}:  # an event source mapping, of a stream
                for records in _batches(records_of(clients("dynamodbstreams"), batch)):
                    call({"Records": records})
            case {"requestContext": dict(), "requestPayload": payload}:  # Lambda, of a call
                call(payload)
            case {"detail-type": str(), "detail": dict()} as event:  # a rule
                call(event)
            case _:
                raise ReplayError(NOT_KNOWN)

    return hand_over


def _batches(records: Sequence[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Records in their order, as many at a time as one call may bring."""
    batch: list[dict[str, Any]] = []
    size = 0
    for record in records:
        length = len(json.dumps(record))
        if batch and size + length > BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(record)
        size += length
    if batch:
        yield batch


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        raise ReplayError(NOT_KNOWN) from None
    if not isinstance(found, dict):
        raise ReplayError(NOT_KNOWN)
    return found
