"""CDK context (`-c key=value`, or cdk.json), read and checked by the table of options.

Every refusal names the key and its value, and says what the option takes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from .options import OPTIONS


class Context:
    """The options' values."""

    def __init__(self, lookup: Callable[[str], Any]) -> None:
        self._lookup = lookup

    def given(self, key: str) -> str:
        """What was given, as text, unchecked; empty when nothing was."""
        value = self._lookup(key)
        return "" if value is None else str(value)

    def text(self, key: str, default: str = "") -> str:
        """The value, or the default: of the table, or else the one that is passed.

        Raises ValueError for a value that the option does not take.
        """
        option = OPTIONS[key]
        return self.match(key, option.pattern, option.values, default)

    def match(self, key: str, pattern: str, remedy: str, default: str = "") -> str:
        """The value, or the default, when all of it matches. Raises ValueError with the remedy."""
        default = OPTIONS[key].default or default
        text = default if self._lookup(key) is None else self.given(key)
        if not re.fullmatch(pattern, text):
            raise refusal(key, text, remedy)
        return text

    def number(self, key: str) -> int:
        """The whole number. Raises ValueError for one outside of the option's bounds."""
        option = OPTIONS[key]
        if option.bounds is None:
            raise TypeError(f"{key} is not a number")
        low, high = option.bounds
        text = self.match(key, "[0-9]{1,9}", option.values)
        if not low <= int(text) <= high:
            raise refusal(key, text, option.values)
        return int(text)

    def words(self, key: str) -> tuple[str, ...]:
        """The value's words, which spaces separate."""
        return tuple(self.given(key).split())


def refusal(key: str, value: str, remedy: str) -> ValueError:
    """The error that refuses a value."""
    return ValueError(f"-c {key}={value}: {remedy}")
