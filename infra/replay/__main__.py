"""What `make replay` does: `python -m infra.replay [--stack NAME] [--profile aws|local]`.

Every dead-letter queue that the stack's outputs name is emptied, a message at a time: it is handed
on, and then removed. What cannot be handed on stays. Two runs at the same time take different
messages; a message that is handed on twice does no more than once, since hops repeat themselves
anyway.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from local import emulator
from local.console import fail, say

from ..bundle import ROOT
from ..server_file import ServerFile
from .destinations import LETTERS, Clients, way_of
from .errors import ReplayError, told
from .messages import DeadLetterMessage, DeadLetterMessages

PATIENCE: Final = Config(read_timeout=90, retries={"mode": "standard", "total_max_attempts": 4})
"""Longer than any function of the stack that is called here may take."""


@dataclass(slots=True)
class Tally:
    """What became of one queue's messages."""

    queue: str
    found: int = 0
    left: int = 0
    readable: bool = True

    @property
    def good(self) -> bool:
        """Whether nothing is left, as far as anybody can tell."""
        return self.readable and not self.left


def replay(outputs: Mapping[str, str], clients: Clients) -> list[Tally]:
    """Replay every queue that a stack's outputs name; print each failure as it happens."""
    return [
        _empty(
            name.removesuffix(LETTERS), DeadLetterMessages(clients("sqs"), url), outputs, clients
        )
        for name, url in sorted(outputs.items())
        if name.endswith(LETTERS)
    ]


def _empty(
    hop: str, letters: DeadLetterMessages, outputs: Mapping[str, str], clients: Clients
) -> Tally:
    tally = Tally(letters.name)
    kept: list[DeadLetterMessage] = []
    way = None
    try:
        for letter in letters.received():
            tally.found += 1
            try:
                way = way or way_of(hop, outputs, clients)
                way(letter)
                letters.remove(letter)
            except (ReplayError, ClientError, BotoCoreError) as error:
                tally.left += 1
                kept.append(letter)
                say(f"not replayed: {tally.queue}, message {letter.message_id}: {told(error)}")
    except (ClientError, BotoCoreError) as error:
        tally.readable = False
        say(f"not read: {tally.queue}: {told(error)}")
    for letter in kept:
        letters.put_back(letter)
    return tally


def _table(tallies: list[Tally]) -> str:
    width = max(len("queue"), *(len(tally.queue) for tally in tallies))
    rows = [f"{'queue':<{width}}  {'found':>6}  {'replayed':>8}  {'left':>6}"]
    rows += [
        f"{t.queue:<{width}}  {t.found:>6}  {t.found - t.left:>8}  {t.left:>6}" for t in tallies
    ]
    return "\n".join(rows)


def outputs_of(cloudformation: Any, stack: str) -> dict[str, str]:
    """The outputs of a stack."""
    (found,) = cloudformation.describe_stacks(StackName=stack)["Stacks"]
    return {output["OutputKey"]: output["OutputValue"] for output in found.get("Outputs", [])}


def clients_of(profile: str) -> Clients:
    """boto3 clients for AWS, or for what `make up` started. Raises ReplayError."""
    options: dict[str, str] = {}
    if profile == "local":
        running = emulator.find("up")
        if running is None:
            raise ReplayError("no stack runs on this machine; `make up` starts one")
        environment = running.environment
        options = {
            "endpoint_url": running.url,
            "aws_access_key_id": environment["AWS_ACCESS_KEY_ID"],
            "aws_secret_access_key": environment["AWS_SECRET_ACCESS_KEY"],
            "region_name": environment["AWS_REGION"],
        }
    session = boto3.Session()

    def client(service: str) -> Any:
        return session.client(service, config=PATIENCE, **options)  # type: ignore[call-overload]

    return client


def main() -> int:
    """Replay, and print a table; 1 when something is left."""
    parser = argparse.ArgumentParser(prog="python -m infra.replay")
    parser.add_argument("--stack", help="by default the one in server.toml")
    parser.add_argument("--profile", choices=["aws", "local"], default="aws")
    options = parser.parse_args()
    try:
        clients = clients_of(options.profile)
        stack = options.stack or ServerFile.read(ROOT).stack
        outputs = outputs_of(clients("cloudformation"), stack)
    except (ReplayError, ClientError, BotoCoreError) as error:
        return fail(error)
    tallies = replay(outputs, clients)
    if not tallies:
        return fail(f"the stack {stack} has no output that ends in {LETTERS}")
    say(_table(tallies))
    return 0 if all(tally.good for tally in tallies) else 1


if __name__ == "__main__":
    sys.exit(main())
