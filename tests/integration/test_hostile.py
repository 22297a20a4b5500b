"""Hostile requests get no 5xx, no access, and create nothing that no response mentions.

These are 600 of the 10,000 requests of `make hostile` (tests/campaigns/hostile).
"""

from __future__ import annotations

from typing import Any, Final

from local.deployment import LocalStack
from local.gateway import Gateway
from tests.campaigns.hostile.run import hostile, show
from tests.integration.support.issuer import Issuer

SEED: Final = 20260728
REQUESTS: Final = 600
SECONDS: Final = 120


def test_hostile_requests_are_answered_and_change_nothing(
    guarded: LocalStack, guarded_gateway: Gateway, issuer: Issuer, aws: Any
) -> None:
    urls = [("emulator", guarded.url), ("gateway", guarded_gateway.url)]
    numbers = range(REQUESTS)
    report = hostile(guarded, aws, issuer, urls, seed=SEED, numbers=numbers, seconds=SECONDS)
    show(report)
    assert not report.faults, report.faults[0]
    assert report.sent.total() == REQUESTS
