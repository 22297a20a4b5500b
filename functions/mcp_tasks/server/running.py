"""Run what a fork's author wrote, so that nothing it says by accident reaches a client."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from aws_lambda_powertools import Logger

from ..protocol.errors import ErrorCode, ProtocolError

logger = Logger()


@contextmanager
def guarded(what: str, *is_transient: type[Exception]) -> Iterator[None]:
    """Turn a crash into -32603 with the exception's name.

    Its message may quote arguments or answers, and stays here. ProtocolError and the exceptions
    named in `passing` were written for the caller.
    """
    try:
        yield
    except ProtocolError:
        raise
    except is_transient:
        raise
    except Exception as error:
        logger.error(f"A {what} crashed", error=type(error).__name__)
        raise ProtocolError(
            ErrorCode.INTERNAL_ERROR, f"The {what} failed: {type(error).__name__}"
        ) from None
