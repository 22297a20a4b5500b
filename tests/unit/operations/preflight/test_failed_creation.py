"""A stack whose creation failed is protected, and the next deployment could not delete it."""

from __future__ import annotations

import pytest

from operations.preflight.deployment import Deployment
from operations.preflight.failed_creation import CHECK
from tests.unit.operations.preflight.conftest import Account


@pytest.mark.parametrize("status", ["ROLLBACK_COMPLETE", "ROLLBACK_FAILED"])
def test_the_protection_of_a_failed_stack_has_to_go_first(account: Account, status: str) -> None:
    account.stack = {"StackStatus": status, "EnableTerminationProtection": True}
    finding = CHECK.run(Deployment("notes", {}, account.client, "eu-west-1"))
    assert finding.refused
    assert "update-termination-protection --region eu-west-1" in finding.text
    assert "--no-enable-termination-protection --stack-name notes\n" in finding.text
    assert "With encryption=customer their key is scheduled for deletion" in finding.text


@pytest.mark.parametrize(
    ("status", "protected"), [("ROLLBACK_COMPLETE", False), ("UPDATE_ROLLBACK_COMPLETE", True)]
)
def test_other_stacks_are_deployed(account: Account, status: str, protected: bool) -> None:
    account.stack = {"StackStatus": status, "EnableTerminationProtection": protected}
    assert CHECK.run(Deployment("notes", {}, account.client, "eu-west-1")).text == ""


def test_a_first_deployment_is_none(account: Account) -> None:
    assert CHECK.run(Deployment("notes", {}, account.client, "eu-west-1")).text == ""
