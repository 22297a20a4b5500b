"""The error of a conditional write whose condition did not hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from botocore.exceptions import ClientError


def existing_item(error: ClientError) -> dict[str, Any]:
    """The item that a condition failed on, in DynamoDB's notation; empty when there was none.

    The write has to ask for it (`ReturnValuesOnConditionCheckFailure`: ALL_OLD). Raises the error
    itself when it is another one.
    """
    if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
        raise error
    response: Mapping[str, Any] = error.response  # the type stubs lack `Item`
    item: dict[str, Any] = response.get("Item") or {}
    return item
