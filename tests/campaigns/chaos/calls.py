"""The calls of a run: which tool, what its client does meanwhile, and what must come of it."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from tests.campaigns.chaos.durable_kinds import DURABLE_KINDS
from tests.campaigns.chaos.kinds import KINDS, Cancel, Durable, Kind

Answering = Literal["once", "twice", "both at once", "never"]
"""`twice`: once it was accepted, another answer to the same questions is sent. `both at once`: two
answers are sent at the same time, and nobody knows which comes first."""

ALL_KINDS: Final[Mapping[str, Kind]] = {**KINDS, **DURABLE_KINDS}


@dataclass(frozen=True, slots=True)
class Call:
    """One `tools/call`, and what its client does."""

    mark: int
    """Its number, which it passes on to the tool."""
    name: str
    """Of its kind."""
    arguments: Mapping[str, Any]
    key: str | None = None
    """Its Idempotency-Key."""
    doubled: bool = False
    """Sent twice at the same time."""
    again: bool = False
    """Sent once more when its task is known."""
    cancelled_after: float | None = None
    """Seconds."""
    held: bool = False
    """They begin when the tool says that it holds."""
    answering: Answering = "once"
    listened: bool = False
    """Its client listens, and does not poll."""
    handshake: bool = False
    """Its client is of 2025-11-25, knows no tasks, and waits for the response."""

    @property
    def kind(self) -> Kind:
        """What is promised of it."""
        return ALL_KINDS[self.name]

    def answer(self, name: str, second: bool = False) -> str:
        """What its client says when it is asked."""
        return f"{name} of {self.mark}{', on second thought' if second else ''}"

    def wrong(self, result: Mapping[str, Any], answers: Mapping[str, set[str]]) -> str | None:
        """What is wrong with the result of its tool, if anything is.

        `answers` has for each question what may have been the answer that was accepted.
        """
        kind = self.kind
        if kind.crashes:
            return "has a result, and its tool crashes"
        if result.get("isError", False) is not kind.refused:
            return f"isError is {result.get('isError')}: {str(result.get('content'))[:200]}"
        if kind.refused:
            text = result["content"][0]["text"].partition("\n")[0]
            # What it said goes by the row; when that cannot be written, the error stands without.
            said = text == f"Refused: {self.mark}" or (not kind.durable and text == UNEXPLAINED)
            return None if said else f"the error {text!r}"
        found = result.get("structuredContent")
        if kind.durable is not None:
            return _wrong_of_durable(kind.durable, found, answers)
        if kind.result is None:
            return _wrong_answers(found, answers)
        return None if found == kind.result(self.arguments) else f"the result {str(found)[:200]}"


UNEXPLAINED: Final = "The tool failed"


def _wrong_of_durable(durable: Durable, found: Any, answers: Mapping[str, set[str]]) -> str | None:
    """What is wrong with which steps and items a tool has results of; `durable_verdict` has the
    results themselves."""
    if found["steps"].keys() != durable.steps:
        return f"the steps {sorted(found['steps'])}"
    if len(found["items"]) != durable.items:
        return f"{len(found['items'])} items"
    return _wrong_answers(found["answers"], answers)


def _wrong_answers(found: Any, answers: Mapping[str, set[str]]) -> str | None:
    if isinstance(found, dict) and found.keys() == answers.keys():
        odd = {k: v for k, v in found.items() if v not in answers[k]}
        return f"the answers {odd}" if odd else None
    return f"the answers {str(found)[:200]}, and {sorted(answers)} were given"


def calls(seed: int, count: int, large: int, without: Collection[str] = ()) -> list[Call]:
    """The calls of a seed, without those of some kinds.

    `large` is how many bytes a large argument has, and half a result.
    """
    dice = random.Random(f"{seed} calls")
    shares = {name: kind.share for name, kind in ALL_KINDS.items() if name not in without}
    names = list(shares)
    # Each kind has its share, also of few.
    kinds = [names[n % len(names)] for n in range(min(count, len(names)))]
    kinds += dice.choices(names, list(shares.values()), k=count - len(kinds))
    dice.shuffle(kinds)
    return [_call(dice, mark, name, large) for mark, name in enumerate(kinds, start=1)]


def _call(dice: random.Random, mark: int, name: str, large: int) -> Call:
    kind = ALL_KINDS[name]
    arguments = {"mark": mark, **kind.arguments(dice, mark, large)}
    cancelled_after = _cancelled_after(dice, kind.cancel)
    answering: Answering = "once"
    if not kind.answered:
        answering = "never"
    elif kind.asks:
        answering = dice.choices(("once", "twice", "both at once"), (6, 3, 1))[0]
    keyed = dice.random() < 0.75
    if kind.patient and cancelled_after is None and dice.random() < 0.2:
        return Call(mark, name, arguments, handshake=True)
    return Call(
        mark,
        name,
        arguments,
        key=f"call-{mark}" if keyed else None,
        doubled=keyed and dice.random() < 0.1,
        again=keyed and dice.random() < 0.15,
        cancelled_after=cancelled_after,
        held=kind.cancel is not None and kind.cancel.held,
        answering=answering,
        listened=kind.listened and dice.random() < 0.1,
    )


def _cancelled_after(dice: random.Random, cancel: Cancel | None) -> float | None:
    if cancel is None or dice.random() >= cancel.odds:
        return None
    return dice.uniform(*cancel.within)
