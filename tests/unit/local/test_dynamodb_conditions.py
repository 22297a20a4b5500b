"""The IAM condition keys of requests to DynamoDB."""

from __future__ import annotations

import json
from typing import Any

import pytest

from local.dynamodb_conditions import with_condition_keys

VALUES = {":t": {"S": "t#1"}, ":n": {"N": "0"}}


def _partition_key(table: str, index: str | None) -> str | None:
    return {("rows", None): "taskId", ("rows", "byPrincipal"): "principal"}.get((table, index))


def _keys(**request: Any) -> dict[str, Any]:
    return with_condition_keys({}, json.dumps(request).encode(), _partition_key)


def test_an_update_has_the_attributes_of_its_key_and_of_all_expressions() -> None:
    assert _keys(
        TableName="rows",
        Key={"taskId": {"S": "t1"}},
        UpdateExpression="SET #s = :s, note = if_not_exists(note, :n) REMOVE gone",
        ConditionExpression="attribute_exists(taskId) AND #s IN (:a, :b)",
        ExpressionAttributeNames={"#s": "status"},
        ReturnValues="ALL_NEW",
    ) == {
        "dynamodb:Attributes": ["gone", "note", "status", "taskId"],
        "dynamodb:LeadingKeys": ["t1"],
        "dynamodb:ReturnValues": "ALL_NEW",
    }


@pytest.mark.parametrize(
    ("request_", "leading_keys"),
    [
        ({"TableName": "rows", "Item": {"taskId": {"S": "t1"}}}, ["t1"]),
        (
            {
                "TableName": "rows",
                "KeyConditionExpression": "taskId = :t AND revision > :n",
                "ExpressionAttributeValues": VALUES,
            },
            ["t#1"],
        ),
        (
            {
                "TableName": "rows",
                "IndexName": "byPrincipal",
                "KeyConditionExpression": "#p = :t",
                "ExpressionAttributeNames": {"#p": "principal"},
                "ExpressionAttributeValues": VALUES,
            },
            ["t#1"],
        ),
        (
            {"RequestItems": {"rows": {"Keys": [{"taskId": {"S": "b"}}, {"taskId": {"S": "a"}}]}}},
            ["a", "b"],
        ),
        (
            {
                "RequestItems": {
                    "rows": [
                        {"PutRequest": {"Item": {"taskId": {"S": "a"}}}},
                        {"DeleteRequest": {"Key": {"taskId": {"S": "b"}}}},
                    ]
                }
            },
            ["a", "b"],
        ),
    ],
)
def test_the_leading_keys_are_the_values_of_partition_keys(
    request_: dict[str, Any], leading_keys: list[str]
) -> None:
    assert _keys(**request_)["dynamodb:LeadingKeys"] == leading_keys


def test_what_names_no_item_has_no_leading_keys() -> None:
    assert _keys(TableName="rows") == {}
    assert with_condition_keys({"a": "b"}, b"not JSON", _partition_key) == {"a": "b"}


def test_a_transaction_has_those_of_all_its_parts() -> None:
    put = {"TableName": "rows", "Item": {"taskId": {"S": "a"}, "input": {"S": "{}"}}}
    update = {
        "TableName": "rows",
        "Key": {"taskId": {"S": "b"}},
        "UpdateExpression": "ADD childTaskIds :a",
    }
    assert _keys(TransactItems=[{"Put": put}, {"Update": update}]) == {
        "dynamodb:Attributes": ["childTaskIds", "input", "taskId"],
        "dynamodb:LeadingKeys": ["a", "b"],
    }
