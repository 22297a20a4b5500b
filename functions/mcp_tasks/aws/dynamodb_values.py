"""DynamoDB's notation of values (AttributeValue), for the few types that rows use.

boto3 has a complete converter. But importing any part of boto3 imports its S3 transfer manager,
which took 130 of a cold start's 300 milliseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def to_attribute(value: str | int | bool | Mapping[str, Any] | list[Any] | None) -> dict[str, Any]:
    """A value as an AttributeValue. Raises TypeError for a type that rows do not use."""
    match value:
        case None:
            return {"NULL": True}
        case bool():
            return {"BOOL": value}
        case str():
            return {"S": value}
        case int():
            return {"N": str(value)}
        case Mapping():
            return {"M": {name: to_attribute(child) for name, child in value.items()}}
        case list():
            return {"L": [to_attribute(child) for child in value]}
    raise TypeError(f"rows hold no {type(value).__name__}")


def from_attribute(attribute: Mapping[str, Any]) -> Any:
    """An AttributeValue as a value. Raises TypeError for a type that rows do not use."""
    ((kind, value),) = attribute.items()
    match kind:
        case "NULL":
            return None
        case "BOOL" | "S":
            return value
        case "N":
            return int(value)
        case "M":
            return {name: from_attribute(child) for name, child in value.items()}
        case "L":
            return [from_attribute(child) for child in value]
    raise TypeError(f"rows hold no attribute of type {kind}")
