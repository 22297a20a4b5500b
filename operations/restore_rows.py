"""`make restore`: copy the rows of a restored table back into the table of the stack.

    python -m operations.restore_rows --table Tasks --source NAME [--rows missing|all]
                                      [--stack NAME] [--profile aws|local]

Point-in-time recovery "always restores to a new table" (DynamoDB developer guide, "Point-in-time
recovery: How it works"), which no function of the stack knows. `docs/restore.md` says when to copy
what. A row is copied as it is, attribute by attribute; expired rows are left out. The command may
be repeated.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from local.console import fail, say

from .deployed_stack import (
    DeployedStack,
    NoStack,
    add_stack_options,
    chosen_stack,
    clients_of,
)

TABLES: Final = ("Tasks", "Callers", "Journal")
"""The tables with point-in-time recovery, by their constructs."""
EXPIRY: Final = "expiresAt"
"""The attribute of time-to-live, in seconds since 1970."""
MISSING, ALL = "missing", "all"


class RestoreError(Exception):
    """The rows cannot be copied. The message says why, and what to do."""


@dataclass(slots=True)
class Copied:
    """What became of the rows of the restored table."""

    written: int = 0
    present: int = 0
    expired: int = 0


def restore(client: Any, source: str, target: str, rows: str, now: float) -> Copied:
    """Copy the rows of a table into another one. `now` is in seconds since 1970.

    Raises RestoreError, ClientError and BotoCoreError.
    """
    keys = _keys(client, target)
    if _keys(client, source) != keys:
        raise RestoreError(f"{source} and {target} have different keys: they are not one table")
    copied = Copied()
    for item in _items(client, source):
        if int(item.get(EXPIRY, {"N": str(now + 1)})["N"].partition(".")[0]) <= now:
            copied.expired += 1
        elif _write(client, target, item, keys[0], rows):
            copied.written += 1
        else:
            copied.present += 1
    return copied


def _keys(client: Any, name: str) -> list[str]:
    """The names of a table's keys. Raises RestoreError when it is not there, or not yet."""
    try:
        table = client.describe_table(TableName=name)["Table"]
    except client.exceptions.ResourceNotFoundException:
        raise RestoreError(f"the account has no table {name} in this region") from None
    if table["TableStatus"] != "ACTIVE":
        raise RestoreError(
            f"{name} is {table['TableStatus']}; wait until it is ACTIVE: "
            f"aws dynamodb wait table-exists --table-name {name}"
        )
    return [key["AttributeName"] for key in table["KeySchema"]]


def _items(client: Any, name: str) -> Iterator[dict[str, Any]]:
    for page in client.get_paginator("scan").paginate(TableName=name):
        yield from page["Items"]


def _write(client: Any, table: str, item: dict[str, Any], key: str, rows: str) -> bool:
    """Write a row. Returns False when it is there, and only missing rows are written."""
    condition: dict[str, Any] = {}
    if rows == MISSING:
        # The race with whoever writes the same row while rows are copied: theirs is newer.
        condition = {
            "ConditionExpression": "attribute_not_exists(#key)",
            "ExpressionAttributeNames": {"#key": key},
        }
    try:
        client.put_item(TableName=table, Item=item, **condition)
    except client.exceptions.ConditionalCheckFailedException:
        return False
    return True


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m operations.restore_rows")
    parser.add_argument("--table", choices=TABLES, required=True, help="of the stack")
    parser.add_argument("--source", required=True, help="the name of the restored table")
    parser.add_argument(
        "--rows",
        choices=(MISSING, ALL),
        default=MISSING,
        help="only rows that the stack's table has not, or all, over those that it has",
    )
    add_stack_options(parser)
    return parser.parse_args()


def main() -> int:
    """Copy the rows, and say how many. Returns 1 when they cannot be copied."""
    given = _arguments()
    try:
        stack = DeployedStack(chosen_stack(given), clients_of(given.profile))
        (target,) = stack.physical_ids("AWS::DynamoDB::Table", f"{given.table}Table")
        copied = restore(stack.client("dynamodb"), given.source, target, given.rows, time.time())
    except (NoStack, RestoreError, ClientError, BotoCoreError) as error:
        return fail(error)
    say(
        f"{target}: {copied.written} rows written, {copied.present} were there, "
        f"{copied.expired} had expired"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
