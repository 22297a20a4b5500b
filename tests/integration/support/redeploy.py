"""Tasks of one version of the tools in `versions`, and the next version deployed around them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from local.deployment import LocalStack, deploy
from local.emulator import Emulator
from tests.integration.support.client import Client
from tests.limits import RAISED

VERSIONS: Final = Path(__file__).parents[1] / "versions"
WAITS_S: Final = 3600
"""Longer than the tests; then it is cancelled."""


@dataclass(frozen=True, slots=True)
class Redeployed:
    """The second version, and tasks that the first has begun."""

    stack: LocalStack
    tasks: dict[str, str]
    """By what they did while the second was deployed."""


def redeployed(emulator: Emulator) -> Redeployed:
    """Deploy the first, begin tasks, and deploy the second."""
    tasks = _begun(Client(_deployed(emulator, "first").url))
    return Redeployed(_deployed(emulator, "second"), tasks)


def _deployed(emulator: Emulator, version: str) -> LocalStack:
    return deploy(emulator, VERSIONS / version, "mcp-redeployed", {"cell": "c5", **RAISED})


def _begun(client: Client) -> dict[str, str]:
    begun = {
        "asked": client.start("review", text="prose"),
        "asked something else": client.start("rework", text="prose"),
        "asked by its workflow": client.start("relay", wait=0, ask=True),
        "asked by a tool that goes": client.start("retire"),
        "on a timer": client.start("relay", wait=WAITS_S, ask=False),
    }
    for doing, key in [
        ("asked", "verdict"),
        ("asked something else", "marks"),
        ("asked by its workflow", "go"),
        ("asked by a tool that goes", "words"),
    ]:
        client.until_asked(begun[doing], key)
    client.until(begun["on a timer"], lambda task: "statusMessage" in task)
    return begun
