"""No AWS but moto's, and the figures of a long run at its end."""

from __future__ import annotations

import os

import pytest

from tests.unit.support.aws import REGION


@pytest.fixture(autouse=True)
def no_account(monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller's account, profile and endpoints must not leak into a test."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """`make model` says how much happened."""
    from tests.campaigns.model.figures import figures

    if {"MODEL_RUNS", "MODEL_FIGURES"} & os.environ.keys() and figures:
        terminalreporter.section("the model check")
        for name, count in sorted(figures.items()):
            terminalreporter.line(f"{count:>9,}  {name}")
