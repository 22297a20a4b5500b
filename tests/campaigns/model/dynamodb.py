"""DynamoDB as moto has it, without HTTP: a read takes a fraction of a millisecond, a write two.

The conditions and the updates are evaluated by moto, as under `tests/unit`. What is left out is
botocore: its checks of parameters, its signatures and its retries.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from typing import Any

from botocore.exceptions import ClientError
from moto.core.exceptions import ServiceException
from moto.dynamodb.exceptions import DynamodbException
from moto.dynamodb.models import dynamodb_backends
from moto.dynamodb.responses import DynamoHandler

from tests.unit.support.aws import (
    ACCOUNT,
    REGION,
    create_callers,
    create_journal,
    create_sessions,
    create_table,
)

Item = dict[str, Any]


class InProcess:
    """The part of a DynamoDB client that the tables' modules use."""

    def __getattr__(self, operation: str) -> Callable[..., Any]:
        def call(**arguments: Any) -> Any:
            request = copy.deepcopy(arguments)
            try:
                if operation == "update_item":
                    return _update(request)
                handler = DynamoHandler()
                handler.body = handler.params = request
                handler.current_account, handler.region = ACCOUNT, REGION
                return getattr(handler, operation)().result
            except (DynamodbException, ServiceException) as error:
                raise _as_botocore_has_it(error, operation) from None

        return call


def _update(request: dict[str, Any]) -> dict[str, Any]:
    """UpdateItem. moto's handler parses and copies all of it once more to check the request."""
    written = dynamodb_backends[ACCOUNT][REGION].update_item(
        request["TableName"],
        request["Key"],
        update_expression=request["UpdateExpression"],
        expression_attribute_names=request.get("ExpressionAttributeNames", {}),
        expression_attribute_values=request.get("ExpressionAttributeValues", {}),
        condition_expression=request.get("ConditionExpression"),
        return_values_on_condition_check_failure=request.get("ReturnValuesOnConditionCheckFailure"),
    )
    return {"Attributes": _plain(written)}


def create_tables() -> None:
    """The tables of tasks, callers, sessions and journals, empty, and without a stream: nobody
    reads it."""
    dynamodb_backends.reset()
    for name in (create_table(), create_callers(), create_sessions(), create_journal()):
        _table(name).stream_shard = None


def empty(name: str) -> None:
    """Remove all items of a table."""
    _table(name).items.clear()


def item(table: str, key: str) -> Item | None:
    """The only item with a partition key, as it is stored; None when there is none."""
    found = _table(table).items.get(_hashed(key))
    if isinstance(found, Mapping):  # by sort key; there is one
        (found,) = found.values() or (None,)
    return None if found is None else _plain(found)


def items(table: str) -> list[Item]:
    """All items of a table."""
    return [_plain(found) for found in _table(table).all_items()]


def remove(table: str, key: str) -> None:
    """Remove an item, as DynamoDB does when its time to live is over."""
    del _table(table).items[_hashed(key)]


def _table(name: str) -> Any:
    return dynamodb_backends[ACCOUNT][REGION].tables[name]


def _hashed(key: str) -> Any:
    from moto.dynamodb.models.dynamo_type import DynamoType

    return DynamoType({"S": key})


def _plain(found: Any) -> Item:
    attributes: Item = found.to_json()["Attributes"]
    return copy.deepcopy(attributes)


def _as_botocore_has_it(error: Any, operation: str) -> ClientError:
    told = json.loads(error.description)
    code = told["__type"].rpartition("#")[2]
    message = told.get("message") or told.get("Message") or ""
    response: Any = {
        "Error": {"Code": code, "Message": message},
        "ResponseMetadata": {"HTTPStatusCode": 400},
    }
    if "Item" in told:
        response["Item"] = told["Item"]
    if "CancellationReasons" in told:
        response["CancellationReasons"] = told["CancellationReasons"]
    return ClientError(response, operation)
