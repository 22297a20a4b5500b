"""Why a message was not replayed."""

from __future__ import annotations

from botocore.exceptions import ClientError


class ReplayError(Exception):
    """A message could not be replayed, and stays in its queue.

    The text says why, without anything of the message's contents.
    """


def reason(error: Exception) -> str:
    """What to print of an error. AWS's own texts may quote a message, and are not printed."""
    match error:
        case ReplayError():
            return str(error)
        case ClientError():
            return f"{error.operation_name}: {error.response['Error']['Code']}"
        case _:
            return type(error).__name__
