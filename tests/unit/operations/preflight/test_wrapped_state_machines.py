"""A state machine that cannot be a tool is refused before its first task would hang."""

from __future__ import annotations

import pytest

from infra.wrapped_state_machines import METADATA
from operations.preflight.deployment import Deployment
from operations.preflight.wrapped_state_machines import run
from tests.unit.operations.removed_stack import ACCOUNT, PREFIX, REGION, Account

ARN = PREFIX + "Legacy"
KEY = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/1234abcd"


def wrapping(account: Account, arn: str = ARN, key: str | None = None) -> Deployment:
    described = {"Tool": "legacy", "Arn": arn, **({"KmsKeyArn": key} if key else {})}
    return Deployment("notes", {"Metadata": {METADATA: [described]}}, account, REGION)


def test_a_standard_one_of_this_account_is_fine() -> None:
    account = Account(types={ARN: "STANDARD"})
    found = run(wrapping(account))
    assert (found.refused, found.text) == (False, "1 tools wrap state machines, which are there")


@pytest.mark.parametrize(
    ("account", "arn", "says"),
    [
        (Account(), ARN, f"legacy: there is no {ARN}"),
        (Account(types={ARN: "EXPRESS"}), ARN, "is of type EXPRESS"),
        (Account(types={ARN: "STANDARD"}, status={ARN: "DELETING"}), ARN, "is being deleted"),
        (Account(), ARN.replace(REGION, "us-west-2"), "in us-west-2 of the account 111122223333"),
        (Account(), ARN.replace(ACCOUNT, "444455556666"), "of the account 444455556666"),
    ],
)
def test_others_are_refused(account: Account, arn: str, says: str) -> None:
    found = run(wrapping(account, arn))
    assert found.refused
    assert says in found.text


@pytest.mark.parametrize(
    ("has", "declared", "says"),
    [
        (KEY, KEY, ""),
        ("alias/1234abcd", KEY, ""),
        ("1234abcd", KEY, ""),
        (None, None, ""),
        (KEY, None, f'has the key {KEY}; declare it with kms_key_arn="{KEY}"'),
        (None, KEY, "has no customer managed key; declare it with no kms_key_arn"),
        (KEY, KEY.replace("1234", "4321"), f'declare it with kms_key_arn="{KEY}"'),
    ],
)
def test_its_key_has_to_be_declared(has: str | None, declared: str | None, says: str) -> None:
    """Whoever may not decrypt an execution does not learn how it ended."""
    account = Account(types={ARN: "STANDARD"}, keys={ARN: has} if has else {})
    found = run(wrapping(account, key=declared))
    assert found.refused == bool(says)
    assert says in found.text


def test_a_server_that_wraps_none_asks_for_nothing() -> None:
    def nothing(service: str) -> Account:
        raise AssertionError(service)

    assert run(Deployment("notes", {}, nothing, REGION)).text == ""
