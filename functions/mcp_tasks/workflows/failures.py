"""What leaves a function when it fails: a name for Retry and Catch, and nothing of its values."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from aws_lambda_powertools import Logger

from ..aws.errors import error_code, is_transient

UNAVAILABLE: Final = "McpTasksUnavailable"
"""AWS has no room for what a function of ours needs. States are tried again for errors of this name
(`infra/state_machine_definition.py`), so it is one that no tool's
author gives to an exception of his own."""
DENIED: Final = "AccessDenied"
"""What S3 says while a permission is missing, or has just been given. To whoever may not list the
bucket, as a worker, it says so of a missing object as well (API reference, "GetObject")."""

logger = Logger()


@contextmanager
def tried_again() -> Iterator[None]:
    """For calls to AWS that are not the tool's: faults of them that pass leave as UNAVAILABLE."""
    try:
        yield
    except Exception as fault:
        if is_transient(fault) or error_code(fault) == DENIED:
            logger.warning(
                "A call to AWS failed; the state is tried again", error=error_code(fault)
            )
            raise failure(UNAVAILABLE) from None
        raise


def failure(name: str) -> Exception:
    """An exception called `name`, with a message that contains the name and nothing else.

    On AWS the class name becomes the error name that Retry and Catch match; the message carries
    it as well, which is what `outcome` reads.
    """
    exception: type[Exception] = type(name, (Exception,), {})
    return exception(f"[{name}] see the task, or the server's log")
