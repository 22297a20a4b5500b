"""A deployment that would replace or remove a table, the bucket or the bus is refused."""

from __future__ import annotations

from typing import Any

import pytest

from operations.preflight.deployment import Deployment
from operations.preflight.replaced_resources import CHECK, DATA
from tests.unit.operations.preflight.conftest import Account

TABLE: dict[str, Any] = {
    "Type": "AWS::DynamoDB::Table",
    "Properties": {"KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}], "Tags": []},
}
BUS = {"Type": "AWS::Events::EventBus", "Properties": {"Name": "notes"}}
BUCKET = {"Type": "AWS::S3::Bucket"}
TOPIC = {"Type": "AWS::SNS::Topic"}
BEFORE = {"Tasks": TABLE, "Bus": BUS, "Bucket": BUCKET, "Topic": TOPIC}
KEY = {"KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}]}


def deployment(account: Account, after: dict[str, Any], *changes: str) -> Deployment:
    account.body = {"Resources": BEFORE}
    template = {"Resources": after}
    return Deployment("notes", template, account.client, "eu-west-1", frozenset(changes))


@pytest.mark.parametrize(
    ("after", "lost"),
    [
        ({"Bus": BUS, "Bucket": BUCKET}, "Tasks"),
        ({"Tasks2": TABLE, "Bus": BUS, "Bucket": BUCKET}, "Tasks"),
        ({**BEFORE, "Tasks": {"Type": "AWS::DynamoDB::Table", "Properties": KEY}}, "Tasks"),
        ({**BEFORE, "Bus": {**BUS, "Properties": {"Name": "other"}}}, "Bus"),
        ({**BEFORE, "Bucket": {**BUCKET, "Properties": {"BucketName": "b"}}}, "Bucket"),
        ({**BEFORE, "Bucket": {**TOPIC}}, "Bucket"),
    ],
)
def test_what_holds_data_is_not_lost_unless_told(
    account: Account, after: dict[str, Any], lost: str
) -> None:
    finding = CHECK.run(deployment(account, after))
    assert finding.refused
    assert f"    {BEFORE[lost]['Type']} {lost}\n" in finding.text
    assert "change=replace" in finding.text
    told = CHECK.run(deployment(account, after, "replace"))
    assert (told.text, told.refused) == (f"replaced or removed, as told: {lost}", False)


def test_what_is_updated_in_place_is_deployed(account: Account) -> None:
    other = {**TABLE["Properties"], "DeletionProtectionEnabled": True}
    after = {**BEFORE, "Tasks": {**TABLE, "Properties": other}}
    after.pop("Topic")
    assert CHECK.run(deployment(account, after)).text == ""


def test_a_first_deployment_replaces_nothing(account: Account) -> None:
    assert CHECK.run(Deployment("notes", {"Resources": {}}, account.client, "eu-west-1")).text == ""
    assert set(DATA) == {resource["Type"] for resource in BEFORE.values()} - {"AWS::SNS::Topic"}
