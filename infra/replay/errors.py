"""Why something was not replayed."""

from __future__ import annotations

from botocore.exceptions import ClientError


class ReplayError(Exception):
    """The message stays where it is; the text says why, and nothing of what is in it."""


def told(error: Exception) -> str:
    """An error in words that hold nothing of a message."""
    match error:
        case ReplayError():
            return str(error)
        case ClientError():
            return f"{error.operation_name}: {error.response['Error']['Code']}"
        case _:
            return type(error).__name__
