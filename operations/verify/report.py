"""The report: Markdown that can be pasted into an issue, without account numbers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from .check import Outcome

ACCOUNT: Final = re.compile(r"(?<![0-9])[0-9]{12}(?![0-9])")
HEAD: Final = "| check | verdict | seen | seconds |\n|---|---|---|---|"


def line(outcome: Outcome) -> str:
    """One row of the table."""
    seen = hidden(outcome.seen).replace("|", "\\|").replace("\n", " ")
    return f"| {outcome.title} | {outcome.verdict} | {seen} | {outcome.seconds:.1f} |"


def summary(outcomes: Sequence[Outcome]) -> str:
    """How many ended how."""
    counts = Counter(outcome.verdict for outcome in outcomes)
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.items())


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """What was verified, above the table."""
    return "\n".join(f"- {name}: {hidden(value)}" for name, value in pairs)


def hidden(text: str) -> str:
    """The text without the numbers of AWS accounts."""
    return ACCOUNT.sub("<account>", text)
