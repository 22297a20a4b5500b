"""The calls of a run: which tool, what its client does meanwhile, and what must come of it."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

Answering = Literal["once", "twice", "both at once", "never"]
"""`twice`: once it was accepted, another answer to the same questions is sent. `both at once`: two
answers are sent at the same time, and nobody knows which comes first."""

TTL_MS: Final = {"unheard": 25_000, "outlive": 25_000}
"""How long the tasks of some tools are kept."""

EFFECTS: Final[Mapping[str, frozenset[tuple[str, str]]]] = {
    "change": frozenset({("changed", "")}),
    "gather": frozenset({("merge", ""), *(("take", str(item)) for item in range(3))}),
    "ask": frozenset(("heard", name) for name in "abc"),
    "review": frozenset({("heard", "title"), ("heard", "text")}),
    "swell": frozenset({("swollen", "")}),
    "linger": frozenset({("leave", "")}),
}
"""Kind -> the steps and items whose effects a completed task has; of others, there is none."""

ASKS: Final = {"ask": 2, "review": 1}
"""Kind -> how often its tasks ask."""


@dataclass(frozen=True, slots=True)
class Call:
    """One `tools/call`, and what its client does."""

    mark: int
    """Its number, which it passes on to the tool."""
    kind: str
    tool: str
    arguments: Mapping[str, Any]
    key: str | None = None
    """Its Idempotency-Key."""
    doubled: bool = False
    """Sent twice at the same time."""
    again: bool = False
    """Sent once more when its task is known."""
    cancelled_after: float | None = None
    """Seconds."""
    answering: Answering = "once"
    listened: bool = False
    """Its client listens, and does not poll."""
    handshake: bool = False
    """Its client is of 2025-11-25, knows no tasks, and waits for the response."""

    @property
    def ttl_ms(self) -> int | None:
        """How long its task is kept; None for longer than any run."""
        return TTL_MS.get(self.tool)

    @property
    def refused(self) -> bool:
        """Whether the tool finds something wrong, and says so."""
        return "refuse" in self.kind

    def answer(self, name: str, second: bool = False) -> str:
        """What its client says when it is asked."""
        return f"{name} of {self.mark}{', on second thought' if second else ''}"

    def wrong(self, result: Mapping[str, Any], answers: Mapping[str, set[str]]) -> str | None:
        """What is wrong with the result of its tool, if anything is.

        `answers` has for each question what may have been the answer that was accepted.
        """
        if result.get("isError", False) is not self.refused:
            return f"isError is {result.get('isError')}"
        if self.refused:
            text = result["content"][0]["text"]
            # What it said goes by the row; when that cannot be written, the error stands without.
            said = text in (f"Refused: {self.mark}", "The tool failed")
            return None if said else f"the error {text!r}"
        found = result.get("structuredContent")
        match self.kind:
            case "change":
                expected: Any = {"changed": 2 * self.mark}
            case "gather":
                expected = {"total": 3 * self.mark}
            case "linger" | "outlive":
                expected = {"mark": self.mark}
            case "swell":
                expected = self._swollen()
            case _:
                if isinstance(found, dict) and found.keys() == answers.keys():
                    odd = {k: v for k, v in found.items() if v not in answers[k]}
                    return f"the answers {odd}" if odd else None
                return f"the answers {str(found)[:200]}, and {sorted(answers)} were given"
        return None if found == expected else f"the result {str(found)[:200]}"

    def _swollen(self) -> dict[str, str]:
        digest = hashlib.sha256(self.arguments["text"].encode()).hexdigest()
        size = self.arguments["size"]
        return {"digest": digest, "text": (digest * (size // len(digest) + 1))[:size]}


MIX: Final = {
    "change": 22,
    "gather": 17,
    "ask": 14,
    "review": 13,
    "refuse": 5,
    "crash": 4,
    "gather that refuses": 3,
    "swell": 7,
    "linger": 9,
    "outlive": 3,
    "unheard": 3,
}
"""The kinds' shares."""

OF_WORK: Final = frozenset({"change", "refuse", "crash", "ask", "swell"})
"""What the tool `work` does, as it is told."""


def calls(seed: int, count: int, mix: Mapping[str, int], large: int) -> list[Call]:
    """The calls of a seed. `large` is how many bytes a large argument has, and half a result."""
    dice = random.Random(f"{seed} calls")
    names = list(mix)
    # Each kind has its share, also of few.
    kinds = [names[n % len(names)] for n in range(min(count, len(names)))]
    kinds += dice.choices(names, list(mix.values()), k=count - len(kinds))
    dice.shuffle(kinds)
    return [_call(dice, mark, kind, large) for mark, kind in enumerate(kinds, start=1)]


def _call(dice: random.Random, mark: int, kind: str, large: int) -> Call:
    tool = "work" if kind in OF_WORK else kind.partition(" ")[0]
    arguments: dict[str, Any] = {"mark": mark}
    cancelled_after: float | None = None
    answering: Answering = "once"
    if kind in OF_WORK:
        arguments["how"] = kind
    if kind == "gather that refuses":
        arguments["refuse"] = True
    elif kind == "swell":
        arguments |= {"text": f"{mark} " * (large // len(f"{mark} ")), "size": large}
    elif kind == "linger":
        arguments["seconds"] = dice.randrange(2, 10)
        cancelled_after = dice.uniform(0, 8)
    elif kind == "outlive":
        arguments["seconds"] = 3600
    elif kind == "unheard":
        answering = "never"
    elif kind in ASKS:
        answering = dice.choices(("once", "twice", "both at once"), (6, 3, 1))[0]
        if dice.random() < 0.08:
            cancelled_after = dice.uniform(0, 15)
    keyed = dice.random() < 0.75
    waits = kind in ("change", "gather", "ask", "review") and cancelled_after is None
    if waits and dice.random() < 0.2:
        return Call(mark, kind, tool, arguments, handshake=True)
    return Call(
        mark,
        kind,
        tool,
        arguments,
        key=f"call-{mark}" if keyed else None,
        doubled=keyed and dice.random() < 0.1,
        again=keyed and dice.random() < 0.15,
        cancelled_after=cancelled_after,
        answering=answering,
        listened=kind in ("change", "gather") and dice.random() < 0.1,
    )
