"""The IAM condition keys of requests to DynamoDB (developer guide, "Using IAM policy conditions for
fine-grained access control"), for MiniStack, which knows few of them.

MiniStack fills dynamodb:Attributes from projections only, and has neither dynamodb:LeadingKeys nor
dynamodb:ReturnValues. On AWS, the first has the attributes of keys, items and all expressions, the
second the values of partition keys.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

EXPRESSION_PATH: Final = re.compile(r"(?<![\w:#.])(#?[A-Za-z_]\w*)(?![\w(]|\s*\()")
"""The first name of each attribute path in an expression, without values and functions."""
KEYWORDS: Final = frozenset({"SET", "REMOVE", "ADD", "DELETE", "AND", "OR", "NOT", "IN", "BETWEEN"})
EQUALS: Final = re.compile(r"(#?\w+)\s*=\s*(:\w+)")

Request = Mapping[str, Any]


def with_condition_keys(
    context: Mapping[str, Any], body: bytes, partition_key: Callable[[str, str | None], str | None]
) -> dict[str, Any]:
    """MiniStack's condition keys of a request, completed.

    `partition_key` has the name of the partition key of a table or of an index of it.
    """
    found = dict(context)
    try:
        request = json.loads(body or b"{}")
    except ValueError:
        return found
    attributes = {*found.get("dynamodb:Attributes", ())}
    attributes |= {name for part in _parts(request) for name in _attributes(part)}
    if attributes:
        found["dynamodb:Attributes"] = sorted(attributes)
    keys = {key for part in _parts(request) for key in _leading_keys(part, partition_key)} - {None}
    if keys:
        found["dynamodb:LeadingKeys"] = sorted(filter(None, keys))
    if "ReturnValues" in request:
        found["dynamodb:ReturnValues"] = request["ReturnValues"]
    return found


def _parts(request: Request) -> Iterator[Request]:
    """The request, or those that a transaction consists of."""
    yield request
    for item in request.get("TransactItems") or ():
        yield from item.values()


def _attributes(request: Request) -> Iterator[str]:
    """The attributes that a request to one item or one partition names."""
    names = request.get("ExpressionAttributeNames") or {}
    yield from request.get("Key") or {}
    yield from request.get("Item") or {}
    for member in ("UpdateExpression", "ConditionExpression", "KeyConditionExpression"):
        for path in EXPRESSION_PATH.findall(request.get(member) or ""):
            if path.upper() not in KEYWORDS:
                yield names.get(path, path)


def _leading_keys(
    request: Request, partition_key: Callable[[str, str | None], str | None]
) -> Iterator[str | None]:
    """The values of partition keys, of a request to one table or of a batch."""
    if "TableName" in request:
        name = partition_key(request["TableName"], request.get("IndexName"))
        for item in (request.get("Key"), request.get("Item")):
            yield _text((item or {}).get(name))
        names = request.get("ExpressionAttributeNames") or {}
        values = request.get("ExpressionAttributeValues") or {}
        for path, value in EQUALS.findall(request.get("KeyConditionExpression") or ""):
            if names.get(path, path) == name:
                yield _text(values.get(value))
    batch = request.get("RequestItems")
    for table, wanted in batch.items() if isinstance(batch, dict) else ():
        name = partition_key(table, None)
        for item in wanted.get("Keys", ()) if isinstance(wanted, dict) else wanted:
            put, delete = item.get("PutRequest") or {}, item.get("DeleteRequest") or {}
            yield _text((put.get("Item") or delete.get("Key") or item).get(name))


def _text(value: Any) -> str | None:
    """A typed value of DynamoDB's, as IAM compares it."""
    return None if not value else str(next(iter(value.values())))
