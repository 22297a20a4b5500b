"""How a check says what it expects, and how it reads a tool's result."""

from __future__ import annotations

import json
from typing import Any

from mcp_types import CallToolResult, TextContent


class CheckFailed(Exception):
    """A check failed. The message says what was expected and what was received."""


def expect(what: str, received: object, expected: object) -> None:
    """Raise CheckFailed unless `received` equals `expected`."""
    if received != expected:
        raise CheckFailed(f"{what}: expected {expected!r}, received {received!r}")


def expect_that(condition: bool, what: str, received: object) -> None:
    """Raise CheckFailed unless the condition is true."""
    if not condition:
        raise CheckFailed(f"expected {what}, received {received!r}")


def structured(result: CallToolResult) -> dict[str, Any]:
    """The structured content of a result.

    Raises CheckFailed when the result is an error, or when its text is not a copy of the
    structured content in JSON.
    """
    expect("isError", result.is_error, False)
    expect("the copy as text", json.loads(text_of(result)), result.structured_content)
    content: dict[str, Any] = result.structured_content
    return content


def text_of(result: CallToolResult) -> str:
    """The text blocks of a result, one a line."""
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))
