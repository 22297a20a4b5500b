"""What the tests of the server share."""

from __future__ import annotations

from functools import partial

import pytest

from mcp_tasks.server.methods.poll_rate_limit import PollRateLimit
from tests.unit.support.limited import Limited
from tests.unit.support.listening import Time
from tests.unit.support.stack import Stack


@pytest.fixture
def limited(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> Limited:
    time = Time()
    time.rule(monkeypatch)
    monkeypatch.setattr(
        "mcp_tasks.server.server.PollRateLimit", partial(PollRateLimit, clock=time.read)
    )
    return Limited(stack, time)
