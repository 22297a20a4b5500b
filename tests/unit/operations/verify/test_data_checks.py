"""Whether an account protects the stack's data, and still has the keys that it needs."""

from __future__ import annotations

from typing import Any

import pytest

from infra.kept_choices import CHOICES
from operations.verify.check import Outcome, outcome_of
from operations.verify.data_checks import CHECKS
from tests.unit.operations.verify.account import Account

PROTECTION, KEYS = CHECKS
EARLIER = "arn:aws:kms:eu-west-1:111122223333:key/1"
OUTPUTS = Account().answers["describe_stacks"]["Stacks"][0]["Outputs"]


def template(**choices: str) -> dict[str, Any]:
    chosen = {"data": "retain", "encryption": "aws", "earlier_keys": ""} | choices
    return {"TemplateBody": {"Metadata": {CHOICES: chosen}}}


def stack(protected: bool) -> dict[str, Any]:
    return {"Stacks": [{"Outputs": OUTPUTS, "EnableTerminationProtection": protected}]}


def group(protected: bool) -> dict[str, Any]:
    name = "physical-ApiLogs"
    return {"logGroups": [{"logGroupName": name, "deletionProtectionEnabled": protected}]}


GOOD: dict[str, Any] = {
    "get_template": template(),
    "describe_stacks": stack(True),
    "describe_table": {"Table": {"DeletionProtectionEnabled": True}},
    "describe_log_groups": group(True),
    "describe_key": {"KeyMetadata": {"KeyState": "Enabled"}},
}


def seen(check: Any, **wrong: Any) -> Outcome:
    return outcome_of(check, Account(**GOOD | wrong).deployed())


def test_what_is_protected_passes() -> None:
    assert seen(PROTECTION).verdict == "passed"
    destroyed = seen(PROTECTION, get_template=template(data="destroy"), describe_table="Denied")
    assert (destroyed.verdict, destroyed.seen) == ("passed", "data=destroy: nothing is protected")


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"describe_stacks": stack(False)}, "the stack may be deleted"),
        ({"describe_table": {"Table": {}}}, "physical-TasksTable may be deleted"),
        ({"describe_log_groups": group(False)}, "physical-ApiLogs may be deleted"),
        ({"describe_log_groups": {"logGroups": []}}, "physical-ApiLogs may be deleted"),
    ],
)
def test_what_is_not_protected_is_named(wrong: dict[str, Any], problem: str) -> None:
    outcome = seen(PROTECTION, **wrong)
    assert (outcome.verdict, outcome.seen) == ("FAILED", problem)


def test_a_key_that_is_to_be_deleted_is_found() -> None:
    """Also an earlier one, which nothing in the template uses to encrypt."""
    assert seen(KEYS).seen == "keys that AWS manages"
    after = template(earlier_keys=EARLIER, encryption=EARLIER.replace("/1", "/2"))
    assert seen(KEYS, get_template=after).seen == "2 are enabled"
    pending = {"KeyMetadata": {"KeyState": "PendingDeletion"}}
    outcome = seen(KEYS, get_template=template(earlier_keys=EARLIER), describe_key=pending)
    assert outcome.verdict == "FAILED"
    assert outcome.seen.startswith(f"the key {EARLIER} is PendingDeletion")


@pytest.mark.parametrize("check", CHECKS)
def test_a_stack_of_an_earlier_version_says_nothing(check: Any) -> None:
    assert seen(check, get_template={"TemplateBody": {}}).verdict == "not tried"
