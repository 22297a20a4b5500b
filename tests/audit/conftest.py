"""Says at the end of a run how old the audit's knowledge is: it passes only for what was known."""

from __future__ import annotations

import pytest

from .advisories import RANGES, RENEW, Snapshot


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line for each ecosystem."""
    sources = Snapshot.load().sources
    terminalreporter.section("dependency audit")
    for ecosystem in RANGES:
        if ecosystem in sources:
            source = sources[ecosystem]
            count = len(source["packages"])
            terminalreporter.line(
                f"{ecosystem}: {count} packages, advisories known on {source['as_of']}"
            )
        else:
            terminalreporter.line(f"{ecosystem}: no advisories in the snapshot. {RENEW}")
