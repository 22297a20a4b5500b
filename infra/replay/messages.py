"""The messages of a dead-letter queue, each taken out once a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from botocore.exceptions import ClientError

AT_A_TIME: Final = 10
"""SQS's most."""
VISIBILITY_SECONDS: Final = 900
"""How long nobody else gets a message that was received: longer than it takes to hand on all that
were received with it."""
MOST: Final = 10_000
"""Messages of one queue, in one run."""
WAIT_SECONDS: Final = 1
"""More than none, and SQS asks all of its servers: no message means that there is none."""


@dataclass(frozen=True, slots=True)
class DeadLetterMessage:
    """One message."""

    message_id: str
    receipt: str
    body: str


class DeadLetterMessages:
    """A dead-letter queue."""

    def __init__(self, sqs: Any, url: str) -> None:
        self._sqs = sqs
        self._url = url

    @property
    def name(self) -> str:
        """The queue's name."""
        return self._url.rpartition("/")[2]

    def received(self) -> Iterator[DeadLetterMessage]:
        """Every message that nobody else has, up to `MOST`.

        Another run gets other messages meanwhile.
        """
        seen = 0
        while seen < MOST:
            answer = self._sqs.receive_message(
                QueueUrl=self._url,
                MaxNumberOfMessages=min(AT_A_TIME, MOST - seen),
                VisibilityTimeout=VISIBILITY_SECONDS,
                WaitTimeSeconds=WAIT_SECONDS,
            )
            messages = answer.get("Messages", [])
            if not messages:
                return
            seen += len(messages)
            for message in messages:
                yield DeadLetterMessage(
                    message["MessageId"], message["ReceiptHandle"], message["Body"]
                )

    def remove(self, letter: DeadLetterMessage) -> None:
        """Delete a message that was handed on."""
        self._sqs.delete_message(QueueUrl=self._url, ReceiptHandle=letter.receipt)

    def put_back(self, letter: DeadLetterMessage) -> None:
        """Let everybody see a message again; if that fails, they do when its time is up."""
        with suppress(ClientError):
            self._sqs.change_message_visibility(
                QueueUrl=self._url, ReceiptHandle=letter.receipt, VisibilityTimeout=0
            )
