"""What a client is told about wrong arguments: the first errors, and how many more there are.

A message has each wrong field and what is wrong with it. It has no value, which may be private, and
is some kilobytes at most, whatever was sent.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from pydantic import ValidationError

from ..json_schema import MAX_REASON_CHARACTERS, location, shortened

MAX_REFUSAL_BYTES: Final = 6000
"""Of a message in JSON. The answer around it is some hundred bytes."""

_MANY: Final = 1000
"""Errors that are not all made Python objects: pydantic makes either all or none."""


class InvalidArguments(ValueError):
    """Arguments do not fit their schema. The message names wrong fields and what is wrong."""


def invalid_arguments(error: ValidationError) -> InvalidArguments:
    """What pydantic found, as a client is told."""
    count = error.error_count()
    said: list[str] = []
    left = MAX_REFUSAL_BYTES
    for details in _errors(error, count):
        text = _field_error(details)
        left -= len(json.dumps(text))
        if left < 0:
            break
        said.append(text)
    more = [f"and {count - len(said)} more"] if count > len(said) else []
    return InvalidArguments("; ".join([*said, *more]))


def too_costly() -> InvalidArguments:
    """The arguments were not looked at, because that could take too long."""
    return InvalidArguments(
        "arguments: checking them could take too long; send fewer, shorter or less nested values"
    )


def too_large() -> InvalidArguments:
    """A Python function could not convert a value because of its size."""
    return InvalidArguments(
        "arguments: a number in them is too large, or a regular expression too deeply nested"
    )


def _errors(error: ValidationError, count: int) -> Iterator[dict[str, Any]]:
    """The errors, as pydantic describes them; of many, as many as can be read from their text."""
    if count <= _MANY:
        described = error.errors(include_url=False, include_context=False, include_input=False)
        yield from (dict(each) for each in described)
        return
    text = error.json(include_url=False, include_context=False, include_input=False)
    decoder, position = json.JSONDecoder(), 1
    while position < len(text):
        details, position = decoder.raw_decode(text, position)
        position += 1  # the comma
        yield details


def _field_error(error: dict[str, Any]) -> str:
    """`field: what is wrong`."""
    reason = error["msg"]
    if error["type"] == "union_tag_invalid":  # It quotes the tag that was sent.
        reason = f"The tag is none of {reason.rpartition(' tags: ')[2]}"
    return f"{location(error['loc']) or 'arguments'}: {shortened(reason, MAX_REASON_CHARACTERS)}"
