"""What PutEvents takes, by its documentation (EventBridge API reference, "PutEvents",
"PutEventsRequestEntry", "PutEventsResultEntry"; user guide, "PutEvents event entry size").

moto and the emulator take everything.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from botocore.exceptions import ClientError

MAX_CALL_BYTES: Final = 256 * 1024
"""Of one call, its entries together."""
MAX_DEPTH: Final = 1_000


def answer(entries: list[dict[str, Any]]) -> dict[str, Any]:
    """The answer to a call. Raises ClientError for one that is refused as a whole."""
    if not 1 <= len(entries) <= 10 or sum(map(size, entries)) >= MAX_CALL_BYTES:
        raise validation_error()
    results = [
        {"EventId": "1"} if is_taken(entry) else {"ErrorCode": "MalformedDetail"}
        for entry in entries
    ]
    return {"FailedEntryCount": sum("ErrorCode" in r for r in results), "Entries": results}


def validation_error() -> ClientError:
    """As AWS answers for a call that is too large."""
    return ClientError(
        {
            "Error": {
                "Code": "ValidationException",
                "Message": "Total size of the entries in the request is over the limit.",
            },
            "ResponseMetadata": {"HTTPStatusCode": 400},  # type: ignore[typeddict-item]
        },
        "PutEvents",
    )


def is_taken(entry: dict[str, Any]) -> bool:
    """Whether an entry's detail is a JSON object with integers of 64 bits."""
    detail = json.loads(entry["Detail"])
    return isinstance(detail, dict) and all(
        depth <= MAX_DEPTH and (not isinstance(value, int) or -(2**63) <= value < 2**63)
        for depth, value in _values(detail)
    )


def size(entry: dict[str, Any]) -> int:
    """User guide, "PutEvents event entry size": its example, in Python."""
    total = 14 if entry.get("Time") is not None else 0
    total += len(entry["Source"].encode()) + len(entry["DetailType"].encode())
    total += len(entry["Detail"].encode()) if entry.get("Detail") is not None else 0
    return total + sum(len(resource.encode()) for resource in entry.get("Resources", []))


def _values(value: Any) -> Iterator[tuple[int, Any]]:
    """All values within one, with their depths."""
    left = [(1, value)]
    while left:
        depth, each = left.pop()
        yield depth, each
        inner = each.values() if isinstance(each, dict) else each if isinstance(each, list) else ()
        left.extend((depth + 1, value) for value in inner)
