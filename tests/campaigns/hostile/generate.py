"""What is sent: request N of a seed is always the same, but for what the run itself made (task ids,
tokens and states)."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Final

from tests.campaigns.hostile import bodies, headers, lines, strangers, tokens
from tests.campaigns.hostile.attempts import Attempt, Draft, Way, draft
from tests.campaigns.hostile.scene import Scene


def correct(made: Draft) -> Attempt:
    """A correct request: if these do not come in, nothing that is refused proves anything."""
    method = str(made.body["method"])
    return Attempt("control", method, made.door, made.caller, made.post(), "answered")


FAMILIES: Final[Mapping[str, tuple[int, Mapping[Way, int]]]] = {
    "control": (5, {correct: 1}),
    "bodies": (29, bodies.WAYS),
    "headers": (19, headers.WAYS),
    "lines": (12, lines.WAYS),
    "tokens": (15, tokens.WAYS),
    "strangers": (20, strangers.WAYS),
}
"""Family -> its share in percent, and its ways to spoil a request."""


def attempt(scene: Scene, seed: int, number: int) -> Attempt:
    """One of a run's requests."""
    rng = random.Random(f"{seed} {number}")
    (family,) = rng.choices(list(FAMILIES), [share for share, _ in FAMILIES.values()])
    ways = FAMILIES[family][1]
    (way,) = rng.choices(list(ways), list(ways.values()))
    # A key that came with other arguments before is refused: the correct requests have their own.
    return way(draft(rng, scene, "good" if family == "control" else "key"))
