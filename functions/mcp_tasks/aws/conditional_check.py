"""What a conditional write says when its condition did not hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from botocore.exceptions import ClientError


def existing_item(error: ClientError) -> dict[str, Any]:
    """The item that a condition failed on, which was asked for with the write (ALL_OLD).

    Empty when there was none. Raises the error itself when it is another.
    """
    if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
        raise error
    response: Mapping[str, Any] = error.response  # botocore's types do not know the item
    item: dict[str, Any] = response.get("Item") or {}
    return item
