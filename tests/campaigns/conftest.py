"""What campaigns without an emulator start from: no AWS but moto's."""

from __future__ import annotations

import os

import pytest

from tests.unit.support.aws import REGION


@pytest.fixture
def no_account(monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller's account, profile and endpoints must not leak into a test."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
