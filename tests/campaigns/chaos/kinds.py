"""The kinds of calls: which tool is called with what, and what must come of it.

A new kind is an entry of `KINDS`, or of `durable_kinds.DURABLE_KINDS`; nothing else has to know it,
unless what it promises is of a new sort: then `verdict.judge` learns to check it.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

Arguments = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Cancel:
    """When the client of a call cancels its task, if it does."""

    odds: float
    within: tuple[float, float]
    """Seconds after the task is acknowledged, or after it holds; at least, and at most."""
    held: bool = False
    """Whether the client waits until the tool says that it holds, or asks."""


@dataclass(frozen=True, slots=True)
class Durable:
    """What a tool with durable operations promises, beside what all promise."""

    steps: frozenset[str] = frozenset()
    """The keys of the steps whose results a completed task returns."""
    items: int = 0
    """Of its map, all of whose results it returns."""


def _nothing(dice: random.Random, mark: int, large: int) -> Arguments:
    return {}


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of calls."""

    share: int
    tool: str
    arguments: Callable[[random.Random, int, int], Arguments] = _nothing
    """Those besides the call's mark. It gets the mark, and how large a large argument is."""
    result: Callable[[Arguments], Any] | None = None
    """What a completed task returns; None for a tool that returns its answers."""
    effects: frozenset[tuple[str, str]] = frozenset()
    """The steps and items whose effects a completed task has."""
    asks: int = 0
    """How often its tasks ask."""
    answered: bool = True
    """Whether its client answers."""
    refused: bool = False
    """Whether the tool finds something wrong, and says so."""
    crashes: bool = False
    """Whether the tool fails."""
    ttl_ms: int | None = None
    """How long its tasks are kept; None for longer than any run."""
    cancel: Cancel | None = None
    patient: bool = False
    """Whether a client may wait for its result: it ends by itself, and soon."""
    listened: bool = False
    """Whether a client may listen to it."""
    durable: Durable | None = None


def how(which: str, **more: Any) -> Callable[[random.Random, int, int], Arguments]:
    """The arguments of a tool that does one of several things."""

    def arguments(dice: random.Random, mark: int, large: int) -> Arguments:
        return {"how": which, **more}

    return arguments


def swelling(dice: random.Random, mark: int, large: int) -> Arguments:
    """A large argument, for a larger result."""
    return {"how": "swell", "text": f"{mark} " * (large // len(f"{mark} ")), "size": large}


def swollen(arguments: Arguments) -> dict[str, str]:
    """The result of `swelling`."""
    digest = hashlib.sha256(arguments["text"].encode()).hexdigest()
    size = arguments["size"]
    return {"digest": digest, "text": (digest * (size // len(digest) + 1))[:size]}


def lingering(dice: random.Random, mark: int, large: int) -> Arguments:
    """Wait for some seconds."""
    return {"seconds": dice.randrange(2, 10)}


def marked(arguments: Arguments) -> dict[str, int]:
    """The result of tools that return their mark."""
    return {"mark": arguments["mark"]}


NOW_AND_THEN: Final = Cancel(0.08, (0, 15))
SHORT_TTL_MS: Final = 25_000

KINDS: Final[Mapping[str, Kind]] = {
    "change": Kind(
        22,
        "work",
        how("change"),
        lambda arguments: {"changed": 2 * arguments["mark"]},
        frozenset({("changed", "")}),
        patient=True,
        listened=True,
    ),
    "gather": Kind(
        17,
        "gather",
        result=lambda arguments: {"total": 3 * arguments["mark"]},
        effects=frozenset({("merge", ""), *(("take", str(item)) for item in range(3))}),
        patient=True,
        listened=True,
    ),
    "ask": Kind(
        14,
        "work",
        how("ask"),
        effects=frozenset(("heard", name) for name in "abc"),
        asks=2,
        cancel=NOW_AND_THEN,
        patient=True,
    ),
    "review": Kind(
        13,
        "review",
        effects=frozenset({("heard", "title"), ("heard", "text")}),
        asks=1,
        cancel=NOW_AND_THEN,
        patient=True,
    ),
    "refuse": Kind(5, "work", how("refuse"), refused=True),
    "crash": Kind(4, "work", how("crash"), crashes=True),
    "gather that refuses": Kind(3, "gather", lambda *_: {"refuse": True}, refused=True),
    "swell": Kind(7, "work", swelling, swollen, frozenset({("swollen", "")})),
    "linger": Kind(
        9,
        "linger",
        lingering,
        marked,
        frozenset({("leave", "")}),
        cancel=Cancel(1, (0, 8)),
    ),
    "outlive": Kind(3, "outlive", lambda *_: {"seconds": 3600}, marked, ttl_ms=SHORT_TTL_MS),
    "unheard": Kind(3, "unheard", answered=False, ttl_ms=SHORT_TTL_MS),
}
