"""Two versions of a stack, and tasks that the first has begun when the second is deployed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from local.deployment import LocalStack, deploy
from local.emulator import Emulator
from operations.drain import drain_tools
from tests.integration.support.aws import client_of
from tests.integration.support.client import Client
from tests.limits import RAISED

STACK: Final = "mcp-redeployed"
DRAIN_SECONDS: Final = 30
VERSIONS: Final = Path(__file__).parents[1] / "versions"
WAIT_SECONDS: Final = 3600
"""How long a task's timer waits: longer than the tests, which cancel the task."""

SLEEP_SECONDS: Final = 90
"""How long a task sleeps: longer than a deployment takes on a busy machine."""


@dataclass(frozen=True, slots=True)
class Redeployed:
    """A stack of the second version, and tasks that the first has begun."""

    stack: LocalStack
    tasks: dict[str, str]
    """Task ids by what the task did while the second version was deployed."""


def redeployed(emulator: Emulator) -> Redeployed:
    """Deploy the first version, start tasks, and deploy the second, which has a tool less."""
    tasks = _begun(Client(_deployed(emulator, "first").url))
    left = drain_tools(client_of(emulator), STACK, ["retire"], DRAIN_SECONDS)
    assert not left, "as `make deploy remove=retire` does first"
    return Redeployed(_deployed(emulator, "second"), tasks)


def _deployed(emulator: Emulator, version: str) -> LocalStack:
    return deploy(emulator, VERSIONS / version, STACK, {"cell": "c5", **RAISED})


def _begun(client: Client) -> dict[str, str]:
    begun = {
        "asked": client.start("review", text="prose"),
        "asked something else": client.start("rework", text="prose"),
        "asked by its workflow": client.start("relay", wait=0, ask=True),
        "asked by a tool that goes": client.start("retire"),
        "asked on its old way": client.start("cook"),
        "asleep": client.start("rest", seconds=SLEEP_SECONDS),
        "on a timer": client.start("relay", wait=WAIT_SECONDS, ask=False),
    }
    for doing, key in [
        ("asked", "verdict"),
        ("asked something else", "marks"),
        ("asked by its workflow", "go"),
        ("asked by a tool that goes", "words"),
        ("asked on its old way", "go"),
    ]:
        client.until_asked(begun[doing], key)
    for doing in ("on a timer", "asleep"):
        client.until(begun[doing], lambda task: "statusMessage" in task)
    return begun
