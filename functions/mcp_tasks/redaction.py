"""Keep what tools are given, and what they say by accident, out of logs and clients' errors.

The message of an exception may quote arguments, answers or results. Three places would show it:

- a log: Lambda logs every exception that leaves a handler, with its message and its context;
- the history of an execution, which keeps a failed worker's error for 90 days;
- the error that a client receives.

Every exception of a tool passes one of the two context managers here. What goes on has the name of
the exception and no message. The exceptions whose message is written for the caller are named:
ToolError, ProtocolError, and those that a call of `client_errors_redacted` lists.

Errors of AWS are logged by `aws.errors.error_code`. `aws.streaming_runtime`, which imports nothing
but the standard library, writes the name of an exception and the line that raised it.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from aws_lambda_powertools import Logger

from .protocol.errors import ErrorCode, ProtocolError

_logger = Logger()


def error_without_message(name: str) -> Exception:
    """An exception of a class called `name`, whose message is the name and nothing else.

    Lambda reports the name of the class as the error's name, which `Retry` and `Catch` match. The
    message repeats it for `workflows.execution_outcome`.
    """
    exception: type[Exception] = type(name, (Exception,), {})
    return exception(f"[{name}] see the task, or the server's log")


@contextmanager
def step_errors_redacted(logger: Logger, explain: Callable[[str], None]) -> Iterator[None]:
    """Run a tool in a worker; its exceptions leave under their own name, without their message.

    A ToolError's message is written for the caller: `explain` stores it on the task's row. For a
    crash, `logger` writes the exception's name and the line that raised it.
    """
    # Not at the top: these import pydantic, and the functions that answer polls import this module.
    from .registry.asking import ToolError
    from .registry.context import TaskCancelled

    try:
        yield
    except TaskCancelled:
        raise error_without_message(TaskCancelled.__name__) from None
    except ToolError as error:
        explain(str(error))
        raise error_without_message(ToolError.__name__) from None
    except Exception as error:
        log_crash(logger, error)
        raise error_without_message(type(error).__name__) from None


def log_crash(logger: Logger, error: Exception) -> None:
    """Write the name of a tool's exception, and the line that raised it, to the log."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    name = type(error).__name__
    logger.error("A step crashed", error=name, file=frame.filename, line=frame.lineno)


@contextmanager
def client_errors_redacted(what: str, *for_the_client: type[Exception]) -> Iterator[None]:
    """Run a fork's code within a request; a crash becomes -32603 with the exception's name.

    `what` says what it is, for the message and the log. ProtocolError and `for_the_client` pass
    as they are.
    """
    try:
        yield
    except ProtocolError:
        raise
    except for_the_client:
        raise
    except Exception as error:
        name = type(error).__name__
        _logger.error(f"A {what} crashed", error=name)
        raise ProtocolError(ErrorCode.INTERNAL_ERROR, f"The {what} failed: {name}") from None
