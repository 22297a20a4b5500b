"""Have Step Functions retry a state whose function met a transient AWS error.

A state retries the errors that its `Retry` names (`infra/state_machine_definition.py`). The many
names of AWS's errors are mapped to one, TRANSIENT_ERROR, so that no exception of a tool's author is
retried by mistake: a step that raised it may have had effects.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from aws_lambda_powertools import Logger

from ..aws.errors import error_code, is_transient
from ..redaction import error_without_message
from ..tasks.errors import Busy

TRANSIENT_ERROR: Final = "McpTasksTransientError"
"""The error name that states retry. A tool's author would not give it to an exception."""

ACCESS_DENIED: Final = "AccessDenied"
"""S3's error for a permission that is missing, or was granted a moment ago. A role that may not
list the bucket, such as a worker's, gets it for a missing object as well (S3 API reference,
"GetObject")."""

logger = Logger()


@contextmanager
def state_retried_if_transient() -> Iterator[None]:
    """Raise transient errors of AWS, and AccessDenied, as TRANSIENT_ERROR; all others as they are.

    For the function's own calls to AWS, never for a tool's code.
    """
    try:
        yield
    except Exception as error:
        busy = isinstance(error, Busy)
        if busy or is_transient(error) or error_code(error) == ACCESS_DENIED:
            logger.warning(
                "A call to AWS failed; Step Functions retries the state", error=error_code(error)
            )
            raise error_without_message(TRANSIENT_ERROR) from None
        raise
