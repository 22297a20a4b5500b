"""How `make test` shares the tests out to two processes (pytest-xdist).

Tests of the deployed stacks wait most of the time, all others compute. The first are one piece of
work: one process has the emulator. The tests of tests/infra are another: one process synthesizes.
Of all others, each file is a piece. What takes longest comes first.
"""

from __future__ import annotations

from typing import Final

from xdist.scheduler import LoadScopeScheduling

EMULATOR: Final = "the emulator"
CDK: Final = "the CDK"
WHOLE: Final = {
    "tests/integration": EMULATOR,
    "tests/conformance": EMULATOR,
    "tests/tools": EMULATOR,
    "tests/infra": CDK,
}
"""Folder -> the piece that all its tests are in."""
FIRST: Final = (
    EMULATOR,
    CDK,
    "tests/campaigns/fuzz",
    "tests/campaigns/model",
    "tests/campaigns/conditions",
    "tests/audit",
)
"""Pieces and folders. The rest is tests/unit: many files, none of which takes long, so that both
processes end at one time.
"""


def folder(test: str) -> str:
    """A test's folder, by its node id."""
    return "/".join(test.split("/", 2)[:2])


def piece(test: str) -> str:
    """What a test is a part of."""
    return WHOLE.get(folder(test), test.partition("::")[0])


def rank(test: str) -> int:
    """Which come before which; otherwise they stay in their order."""
    first = WHOLE.get(folder(test), folder(test))
    return FIRST.index(first) if first in FIRST else len(FIRST)


class Pieces(LoadScopeScheduling):  # type: ignore[misc]  # it has no types
    """A process that has nothing left to do gets the next piece."""

    def _split_scope(self, nodeid: str) -> str:
        return piece(nodeid)
