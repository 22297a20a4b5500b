"""How `make test` shares the tests out to two processes (pytest-xdist).

A process takes a piece of work at a time, and the next one when it is through: in general, a file.
The tests of deployed stacks are one piece, since only one process has the emulator. They wait most
of the time, while the other process computes. The tests of tests/infra are one piece too: one
process synthesizes for all of them. The longest pieces come first.
"""

from __future__ import annotations

from typing import Final

from xdist.scheduler import LoadScopeScheduling

EMULATOR: Final = "the emulator"
CDK: Final = "the CDK"
PIECES: Final = {
    "tests/integration/": EMULATOR,
    "tests/conformance/": EMULATOR,
    "tests/tools/": EMULATOR,  # some of them use it
    "tests/infra/": CDK,
}
"""Folder -> the piece that all its tests are in."""
LONGEST_FIRST: Final = (
    EMULATOR,
    CDK,
    "tests/fork/",
    "tests/campaigns/fuzz/",
    "tests/campaigns/model/",
    "tests/campaigns/conditions/",
    "tests/campaigns/month/",
    "tests/audit/",
)
"""Pieces, and folders whose files are pieces. Then come the many short files of tests/unit, so that
both processes end at the same time.
"""


def piece(test: str) -> str:
    """The piece that a test is in, by the test's node id."""
    for folder, name in PIECES.items():
        if test.startswith(folder):
            return name
    return test.partition("::")[0]


def rank(test: str) -> int:
    """Which tests come before which. Tests of one rank keep their order."""
    name = piece(test)
    for position, beginning in enumerate(LONGEST_FIRST):
        if name.startswith(beginning):
            return position
    return len(LONGEST_FIRST)


class Pieces(LoadScopeScheduling):  # type: ignore[misc]  # it has no types
    """Hands out pieces: a process that has nothing left to do gets the next one."""

    def _split_scope(self, nodeid: str) -> str:
        return piece(nodeid)
