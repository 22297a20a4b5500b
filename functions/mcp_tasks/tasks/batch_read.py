"""Read several rows of the tasks table at once."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from .errors import Busy

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

MAX_BATCH_ROWS: Final = 100
"""Rows that one BatchGetItem may read."""

MAX_READ_ATTEMPTS: Final = 6
"""How often a BatchGetItem is repeated for the rows that DynamoDB left out of its answer."""


def read_batch(
    client: DynamoDBClient,
    table: str,
    task_ids: Iterable[str],
    options: Mapping[str, Any] | None = None,
) -> list[dict[str, Any]]:
    """The rows of up to MAX_BATCH_ROWS tasks, those that there are.

    Raises Busy when DynamoDB keeps leaving rows out of its answers.
    """
    keys: list[Any] = [{"taskId": {"S": task_id}} for task_id in task_ids]
    items: list[dict[str, Any]] = []
    for attempt in range(MAX_READ_ATTEMPTS):
        if not keys:
            break
        # An answer holds 16 MB at most, and less from a busy table: the rest is asked again.
        time.sleep(attempt and 0.02 * 2**attempt)
        request: Any = {table: {"Keys": keys, "ConsistentRead": True, **(options or {})}}
        response: Mapping[str, Any] = client.batch_get_item(RequestItems=request)
        items += response.get("Responses", {}).get(table, [])
        keys = response.get("UnprocessedKeys", {}).get(table, {}).get("Keys", [])
    if keys:
        raise Busy(f"{len(keys)} tasks could not be read")
    return items
