"""What a method is, and what it gets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..protocol.headers import Headers
from ..protocol.meta import RequestMeta


@dataclass(frozen=True, slots=True)
class Call:
    """One checked request."""

    params: dict[str, Any]
    meta: RequestMeta
    headers: Headers
    principal: str


Method = Callable[[Call], dict[str, Any]]
"""Answers a request with its result, or raises ProtocolError."""

MethodTable = Mapping[str, Method]


def complete(**fields: Any) -> dict[str, Any]:
    """A result of the request's standard shape (basic/index.mdx, "ResultType")."""
    return {"resultType": "complete", **fields}
