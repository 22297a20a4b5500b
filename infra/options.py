"""What a deployment may choose, one key of CDK context (`-c key=value`, or cdk.json) at a time.

Every refusal names the key and its value, and says what would be good.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any


class Choices:
    """The context, read and checked."""

    def __init__(self, context: Callable[[str], Any]) -> None:
        self._context = context

    def given(self, key: str) -> str:
        """What was given, as text; empty when nothing was."""
        value = self._context(key)
        return "" if value is None else str(value)

    def text(self, key: str, default: str, pattern: str, remedy: str) -> str:
        """A text that matches all of a pattern. Raises ValueError."""
        text = default if self._context(key) is None else self.given(key)
        if not re.fullmatch(pattern, text):
            raise refusal(key, text, remedy)
        return text

    def number(self, key: str, default: int, low: int, high: int, remedy: str) -> int:
        """A whole number from `low` to `high`. Raises ValueError."""
        text = self.text(key, str(default), "[0-9]{1,9}", remedy)
        if not low <= int(text) <= high:
            raise refusal(key, text, remedy)
        return int(text)

    def words(self, key: str) -> tuple[str, ...]:
        """What spaces separate."""
        return tuple(self.given(key).split())


def refusal(key: str, value: str, remedy: str) -> ValueError:
    """The error that refuses a value."""
    return ValueError(f"-c {key}={value}: {remedy}")
