"""The messages of a dead-letter queue, each received once in a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from botocore.exceptions import ClientError

RECEIVE_BATCH: Final = 10
"""Messages of one ReceiveMessage: SQS's maximum."""
VISIBILITY_SECONDS: Final = 900
"""How long nobody else gets a message that was received. It is longer than it takes to replay all
messages that were received with it."""
MAX_MESSAGES: Final = 10_000
"""Of one queue, in one run."""
WAIT_SECONDS: Final = 1
"""With a wait, SQS asks all of its servers: an empty answer means that the queue is empty."""


@dataclass(frozen=True, slots=True)
class DeadLetterMessage:
    """One message."""

    message_id: str
    receipt_handle: str
    body: str


class DeadLetterMessages:
    """The messages of one dead-letter queue."""

    def __init__(self, sqs: Any, queue_url: str) -> None:
        self._sqs = sqs
        self._queue_url = queue_url

    @property
    def queue_name(self) -> str:
        """The queue's name."""
        return self._queue_url.rpartition("/")[2]

    def receive(self) -> Iterator[DeadLetterMessage]:
        """Every message that nobody else has received, up to `MAX_MESSAGES`.

        A second run at the same time gets other messages.
        """
        received = 0
        while received < MAX_MESSAGES:
            response = self._sqs.receive_message(
                QueueUrl=self._queue_url,
                MaxNumberOfMessages=min(RECEIVE_BATCH, MAX_MESSAGES - received),
                VisibilityTimeout=VISIBILITY_SECONDS,
                WaitTimeSeconds=WAIT_SECONDS,
            )
            messages = response.get("Messages", [])
            if not messages:
                return
            received += len(messages)
            for message in messages:
                yield DeadLetterMessage(
                    message["MessageId"], message["ReceiptHandle"], message["Body"]
                )

    def delete(self, message: DeadLetterMessage) -> None:
        """Delete a message that was replayed."""
        self._sqs.delete_message(QueueUrl=self._queue_url, ReceiptHandle=message.receipt_handle)

    def make_visible(self, message: DeadLetterMessage) -> None:
        """Let other receivers get a message at once. If that fails, they get it after
        `VISIBILITY_SECONDS`.
        """
        with suppress(ClientError):
            self._sqs.change_message_visibility(
                QueueUrl=self._queue_url,
                ReceiptHandle=message.receipt_handle,
                VisibilityTimeout=0,
            )
