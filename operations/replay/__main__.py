"""`make replay`: `python -m operations.replay [--stack NAME] [--profile aws|local]`.

It empties every dead-letter queue that the stack's outputs name. Each message is sent to where it
could not be handled, and then deleted; a message for which that fails stays. Two runs at the same
time take different messages. A message that is replayed twice does no harm: what receives it has to
expect repetitions anyway. `docs/operations.md` describes the command.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from botocore.exceptions import BotoCoreError, ClientError

from local.console import fail, say

from ..deployed_stack import (
    Clients,
    NoStack,
    add_stack_options,
    chosen_stack,
    clients_of,
    outputs_of,
)
from .destinations import DEAD_LETTER_QUEUE_URL, destination_of
from .errors import ReplayError, reason
from .messages import DeadLetterMessage, DeadLetterMessages


@dataclass(slots=True)
class QueueReport:
    """What became of one queue's messages."""

    queue: str
    found: int = 0
    left: int = 0
    readable: bool = True

    @property
    def emptied(self) -> bool:
        """Whether the queue could be read, and no message is left."""
        return self.readable and not self.left


def replay(outputs: Mapping[str, str], clients: Clients) -> list[QueueReport]:
    """Replay every dead-letter queue of a stack's outputs; print each failure as it happens."""
    return [
        _replay_queue(
            name.removesuffix(DEAD_LETTER_QUEUE_URL),
            DeadLetterMessages(clients("sqs"), url),
            outputs,
            clients,
        )
        for name, url in sorted(outputs.items())
        if name.endswith(DEAD_LETTER_QUEUE_URL)
    ]


def _replay_queue(
    source: str, messages: DeadLetterMessages, outputs: Mapping[str, str], clients: Clients
) -> QueueReport:
    report = QueueReport(messages.queue_name)
    failed: list[DeadLetterMessage] = []
    destination = None
    try:
        for message in messages.receive():
            report.found += 1
            try:
                destination = destination or destination_of(source, outputs, clients)
                destination(message)
                messages.delete(message)
            except (ReplayError, ClientError, BotoCoreError) as error:
                report.left += 1
                failed.append(message)
                say(f"not replayed: {report.queue}, message {message.message_id}: {reason(error)}")
    except (ClientError, BotoCoreError) as error:
        report.readable = False
        say(f"not read: {report.queue}: {reason(error)}")
    for message in failed:
        messages.make_visible(message)
    return report


def _table(reports: list[QueueReport]) -> str:
    width = max(len("queue"), *(len(report.queue) for report in reports))
    rows = [f"{'queue':<{width}}  {'found':>6}  {'replayed':>8}  {'left':>6}"]
    rows += [
        f"{r.queue:<{width}}  {r.found:>6}  {r.found - r.left:>8}  {r.left:>6}" for r in reports
    ]
    return "\n".join(rows)


def main() -> int:
    """Replay, and print a table. Returns 1 when a message is left."""
    parser = argparse.ArgumentParser(prog="python -m operations.replay")
    add_stack_options(parser)
    options = parser.parse_args()
    try:
        clients = clients_of(options.profile)
        stack = chosen_stack(options)
        outputs = outputs_of(clients("cloudformation"), stack)
    except (NoStack, ClientError, BotoCoreError) as error:
        return fail(error)
    reports = replay(outputs, clients)
    if not reports:
        return fail(f"the stack {stack} has no output that ends in {DEAD_LETTER_QUEUE_URL}")
    say(_table(reports))
    return 0 if all(report.emptied for report in reports) else 1


if __name__ == "__main__":
    sys.exit(main())
