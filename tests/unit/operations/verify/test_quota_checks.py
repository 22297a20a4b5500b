"""Whether Service Quotas knows every quota that `make preflight` compares."""

from __future__ import annotations

from typing import Any

from operations.preflight.quotas import DEMANDS
from operations.verify.check import outcome_of
from operations.verify.quota_checks import CHECKS
from tests.unit.operations.verify.account import Account

(NAMES,) = CHECKS


def knowing(*unknown: str) -> dict[str, Any]:
    """An account to which some quotas were applied, and that knows the defaults of the others."""

    def listed(service: str, applied: bool) -> dict[str, Any]:
        names = [demand.quota for demand in DEMANDS if demand.service == service]
        known = [name for name in names if name not in unknown]
        chosen = known[:1] if applied else known[1:]
        quotas = [{"QuotaName": n, "QuotaCode": "L-1", "Value": 10.0} for n in chosen]
        return {"Quotas": quotas}

    return {
        "list_service_quotas": lambda asked: listed(asked["ServiceCode"], True),
        "list_aws_default_service_quotas": lambda asked: listed(asked["ServiceCode"], False),
    }


def test_quotas_that_are_known_pass() -> None:
    outcome = outcome_of(NAMES, Account(**knowing()).deployed())
    assert (outcome.verdict, outcome.seen) == ("passed", f"{len(DEMANDS)} quotas are known")


def test_a_name_that_aws_has_changed_is_found() -> None:
    name = "StateTransition throttle token refill rate per second"
    outcome = outcome_of(NAMES, Account(**knowing(name)).deployed())
    assert outcome.verdict == "FAILED"
    assert outcome.seen == f'Service Quotas does not know "{name}" of states'


def test_what_the_credentials_may_not_read_is_not_tried() -> None:
    account = Account(list_aws_default_service_quotas="AccessDeniedException")
    assert outcome_of(NAMES, account.deployed()).verdict == "not tried"
