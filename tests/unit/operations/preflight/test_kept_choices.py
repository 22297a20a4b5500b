"""A deployment that forgets an argument does not change what the stack was deployed with."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any, Final

import pytest

from infra.kept_choices import CHOICES
from operations.deployed_stack import Clients
from operations.preflight.__main__ import CHANGES, changes_of
from operations.preflight.check import Finding
from operations.preflight.deployment import Deployment
from operations.preflight.kept_choices import CHECK, KEPT
from tests.unit.operations.preflight.conftest import Account

REGION: Final = "eu-west-1"
TODAY: Final = {
    "auth": "oauth",
    "cell": "c1",
    "data": "retain",
    "domain": "",
    "earlier_keys": "",
    "encryption": "aws",
    "issuer": "https://login.example",
    "max_ttl_days": "30",
    "principal": "",
}
KEY: Final = "arn:aws:kms:eu-west-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
OWN_KEY: Final = "arn:aws-cn:kms:cn-north-1:111122223333:key/1234"
"""Of the account's partition, which the stack's own id names."""
OTHER: Final = KEY.replace("1234abcd", "4321dcba")


def template(**choices: str) -> dict[str, Any]:
    """A template as the stack writes it, with the stack's own key where it was chosen."""
    chosen = TODAY | choices
    own = chosen["encryption"] == "customer"
    key = {"Type": "AWS::KMS::Key", "DeletionPolicy": "Retain", "Properties": {"KeyPolicy": {}}}
    topic = {"Type": "AWS::SNS::Topic"}
    return {
        "Metadata": {CHOICES: chosen},
        "Resources": {"Topic": topic, **({"EncryptionKey": key} if own else {})},
    }


@pytest.fixture
def clients(account: Account) -> Clients:
    """Clients of an account without stacks; the key of a stack has an id."""
    account.physical_ids = {"EncryptionKey": "1234"}
    return account.client


def deployed(clients: Clients, body: Mapping[str, Any]) -> None:
    """Deploy a template as the stack `notes`."""
    clients("cloudformation").body = body


def check(clients: Clients, change: str = "", **choices: str) -> Finding:
    """What the check says of a deployment with these choices."""
    words = changes_of(change)
    return CHECK.run(Deployment("notes", template(**choices), clients, REGION, words))


def test_a_first_deployment_may_choose_anything(clients: Clients) -> None:
    assert not check(clients, auth="none", cell="eu").refused


def test_the_same_choices_again_are_deployed(clients: Clients) -> None:
    deployed(clients, template(encryption="customer"))
    assert check(clients, encryption="customer") == Finding(
        "the stack keeps what it was deployed with"
    )


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ({"encryption": "customer"}, {"earlier_keys": KEY}),
        ({"encryption": KEY}, {"earlier_keys": KEY}),
        ({"cell": "eu1"}, {}),
        ({}, {"auth": "none", "issuer": ""}),
        ({"auth": "iam", "principal": "role"}, {"auth": "iam", "principal": "session"}),
        ({}, {"issuer": "https://other.example"}),
        ({"domain": "mcp.example.com"}, {}),
        ({"earlier_keys": f"{KEY} {OTHER}"}, {"earlier_keys": KEY}),
        ({"max_ttl_days": "90"}, {}),
        ({}, {"data": "destroy"}),
    ],
)
def test_a_change_is_refused_until_it_is_told(
    clients: Clients, before: dict[str, str], now: dict[str, str]
) -> None:
    """With the words that keep what is deployed, and with those that change it."""
    deployed(clients, template(**before))
    finding = check(clients, **now)
    assert finding.refused
    wanted = TODAY | now
    names = [n for n in KEPT if (TODAY | before)[n] != wanted[n] and n in before | now]
    for name in names if "encryption" not in before else ["encryption"]:
        value = (TODAY | before)[name]
        shown = f"'{value}'" if " " in value else value
        assert f"{name}={shown}" in finding.text
        assert f"{name}: deployed with {value or 'none'}, now {wanted[name] or 'none'}" in (
            finding.text
        )
        assert KEPT[name].loss in finding.text
    told = check(clients, " ".join({*names, "earlier_keys"}), **now)
    assert not told.refused, told.text


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ({"max_ttl_days": "30"}, {"max_ttl_days": "90"}),
        ({"data": "destroy"}, {}),
        ({"earlier_keys": KEY}, {"earlier_keys": f"{OTHER} {KEY}"}),
    ],
)
def test_what_takes_nothing_away_needs_no_word(
    clients: Clients, before: dict[str, str], now: dict[str, str]
) -> None:
    deployed(clients, template(**before))
    assert not check(clients, **now).refused


def test_forgetting_the_stack_s_own_key_names_the_key(clients: Clients) -> None:
    """Whoever means the change learns which key the roles have to read with."""
    deployed(clients, template(encryption="customer"))
    text = check(clients).text
    arn = OWN_KEY
    assert "    encryption=customer\n" in text
    assert f"    change=encryption earlier_keys={arn}\n" in text
    assert f"    encryption={arn} change=encryption" in text


def test_a_key_is_not_left_behind_by_saying_change_alone(clients: Clients) -> None:
    """`earlier_keys` keeps what it encrypted readable; to give that up has a word of its own."""
    deployed(clients, template(encryption="customer"))
    arn = OWN_KEY
    assert check(clients, "encryption").refused
    assert not check(clients, "encryption", earlier_keys=arn).refused
    assert not check(clients, "encryption", encryption=arn).refused
    assert check(clients, "encryption", encryption=OTHER).refused
    assert not check(clients, "encryption, earlier_keys").refused


def test_keys_before_the_last_one_are_named_as_well(clients: Clients) -> None:
    deployed(clients, template(encryption=KEY, earlier_keys=OTHER))
    finding = check(clients, "encryption", earlier_keys=OTHER)
    assert finding.refused
    assert f"earlier_keys='{OTHER} {KEY}'" in finding.text


def test_from_keys_that_aws_manages_no_key_is_left_behind(clients: Clients) -> None:
    deployed(clients, template())
    assert check(clients, encryption="customer").refused
    assert not check(clients, "encryption", encryption="customer").refused


def _of_an_earlier_version(key: Any) -> dict[str, Any]:
    """A stack's template before it had the metadata."""
    encrypted = {"SSEEnabled": True, **({"KMSMasterKeyId": key} if key else {})}
    variables = {"AUTH": "oauth", "CELL": "eu1"}
    environment = {"Environment": {"Variables": variables}}
    return {
        "Resources": {
            "EncryptionKey": {"Type": "AWS::KMS::Key"},
            "Table": {
                "Type": "AWS::DynamoDB::Table",
                "Properties": {"SSESpecification": encrypted},
            },
            "Topic": {"Type": "AWS::SNS::Topic"},
            "Api": {"Type": "AWS::Lambda::Function", "Properties": environment},
        }
    }


@pytest.mark.parametrize(
    ("key", "encryption"),
    [({"Fn::GetAtt": ["EncryptionKey", "Arn"]}, "customer"), (KEY, KEY), (None, "aws")],
)
def test_a_stack_of_an_earlier_version_shows_its_choices(
    clients: Clients, key: Any, encryption: str
) -> None:
    deployed(clients, _of_an_earlier_version(key))
    kept = {"encryption": encryption, "cell": "eu1"}
    assert not check(clients, **kept).refused
    assert "cell=eu1" in check(clients, **kept | {"cell": "c1"}).text
    assert check(clients, **kept | {"auth": "none"}).refused
    forgotten = check(clients, cell="eu1")
    assert forgotten.refused == (encryption != "aws")
    if encryption == "customer":
        assert f"earlier_keys={OWN_KEY}\n" in forgotten.text


def test_change_takes_the_choices_by_name() -> None:
    assert changes_of("cell, auth  encryption") == {"cell", "auth", "encryption"}
    assert set(KEPT) <= CHANGES
    with pytest.raises(argparse.ArgumentTypeError, match=r"change=everything: one or more of .*"):
        changes_of("everything")
