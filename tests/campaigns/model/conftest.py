"""The figures of a long run at its end."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(autouse=True)
def no_account_here(no_account: None) -> None:
    """No test of the model sees the caller's account."""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """`make model` says how much happened."""
    from tests.campaigns.model.figures import figures

    if {"MODEL_RUNS", "MODEL_FIGURES"} & os.environ.keys() and figures:
        terminalreporter.section("the model check")
        for name, count in sorted(figures.items()):
            terminalreporter.line(f"{count:>9,}  {name}")
