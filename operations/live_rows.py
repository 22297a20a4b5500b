"""The rows of a tasks table whose tasks have not ended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mcp_tasks.tasks.state import Status
from mcp_tasks.tasks.task import now_ms


def live_rows(dynamodb: Any, table: str, **options: Any) -> Iterator[Mapping[str, Any]]:
    """The items in DynamoDB's notation. It reads the whole table.

    `options` are further arguments of Scan. Raises ClientError.
    """
    names = {"#status": "status", "#expiresAtMs": "expiresAtMs"}
    pages = dynamodb.get_paginator("scan").paginate(
        TableName=table,
        FilterExpression="#status IN (:working, :asks) AND #expiresAtMs > :now",
        ExpressionAttributeNames=names | options.pop("ExpressionAttributeNames", {}),
        ExpressionAttributeValues={
            ":working": {"S": Status.WORKING.value},
            ":asks": {"S": Status.INPUT_REQUIRED.value},
            ":now": {"N": str(now_ms())},
        },
        **options,
    )
    for page in pages:
        yield from page["Items"]
