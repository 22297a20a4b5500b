"""The values of a tool's secrets, read when the tool asks for them.

Powertools' parameters cache each value in the function's memory. A rotated secret comes in when
that time is over. No value is in the environment, in a template, in a row or in a log.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from aws_lambda_powertools import Logger

from ..aws.errors import error_code
from .secret_reference import SecretReference, secret_reference

MAX_AGE_SECONDS: Final = 300
"""How long a value is used before it is read again."""

logger = Logger()


class SecretUnavailable(Exception):
    """A secret of the tool could not be read. The message names it, and says what to do."""


class SecretValues(Mapping[str, str]):
    """A tool's secrets by the names that the tool gave them."""

    def __init__(self, references: Mapping[str, str]) -> None:
        self._references = references

    def __getitem__(self, name: str) -> str:
        """The value now. Raises KeyError for an undeclared name, and SecretUnavailable."""
        reference = secret_reference(self._references[name])
        try:
            return _read(reference)
        except Exception as error:
            # Powertools raises its own error, with AWS's as its context.
            cause = error.__cause__ or error.__context__ or error
            message = (
                f"{reference.id} could not be read from {reference.service}; create it in the "
                "function's account and region, or mend its key's policy"
            )
            logger.error(message, secret=name, error=error_code(cause))
            raise SecretUnavailable(message) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._references)

    def __len__(self) -> int:
        return len(self._references)

    def __repr__(self) -> str:
        """Without the values."""
        return f"SecretValues({', '.join(self._references)})"


def _read(reference: SecretReference) -> str:
    # Imports boto3, which takes 130 ms: only tools with secrets pay for it.
    from aws_lambda_powertools.utilities import parameters

    value: Any
    if reference.service == "ssm":
        value = parameters.get_parameter(reference.id, decrypt=True, max_age=MAX_AGE_SECONDS)
    else:
        value = parameters.get_secret(reference.id, max_age=MAX_AGE_SECONDS)
    if not isinstance(value, str):
        raise TypeError(f"{reference.id} is not text")
    return value
