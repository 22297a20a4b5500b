"""Keep what tools are given, and what they say by accident, out of logs and clients' errors.

The message of an exception may quote arguments, answers or results. Three places would show it:

- a log: Lambda logs every exception that leaves a handler, with its message and its context;
- the history of an execution, which keeps a failed worker's error for 90 days;
- the error that a client receives.

Every exception of a tool passes one of the two context managers here. What goes on has the name of
the exception, a reference, and no message. The log has a line with the same reference, the classes
of the exceptions and where they were raised (`crash_report`); the messages are written to where the
deployment says, and by default nowhere (`tracebacks`). The exceptions whose message is written for
the caller are named: ToolError, ProtocolError, and those that a call of `client_errors_redacted`
lists.

Errors of AWS are logged by `aws.errors.error_code`. `aws.streaming_runtime`, which imports nothing
but the standard library, writes the name of an exception and the line that raised it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from aws_lambda_powertools import Logger

from .crash_report import crash_report, with_reference
from .protocol.errors import ErrorCode, ProtocolError
from .tracebacks import write_traceback

_logger = Logger()

ABOUT: Final = ("tool", "step", "prompt", "resource", "task_id")
"""Keys of a function's log that a traceback has as well."""


class RedactedError(Exception):
    """What leaves a function: its class has the name of what was raised, and its message too."""


def error_without_message(name: str, reference: str | None = None) -> RedactedError:
    """An exception of a class called `name`, whose message is the name and a crash's reference.

    Lambda reports the name of the class as the error's name, which `Retry` and `Catch` match. The
    message repeats it for `workflows.execution_outcome`.
    """
    exception: type[RedactedError] = type(name, (RedactedError,), {})
    return exception(with_reference(f"[{name}] see the task, or the server's log", reference))


@contextmanager
def step_errors_redacted(logger: Logger, explain: Callable[[str], None]) -> Iterator[None]:
    """Run a tool in a worker; its exceptions leave under their own name, without their message.

    A ToolError's message is written for the caller: `explain` stores it on the task's row. For a
    crash, `logger` writes a report, and the reference to it leaves with the name.
    """
    # Not at the top: these import pydantic, and the functions that answer polls import this module.
    from .registry.asking import ToolError
    from .registry.context import TaskCancelled

    with crash_redacted(logger, "A tool crashed"):
        try:
            yield
        except TaskCancelled:
            raise error_without_message(TaskCancelled.__name__) from None
        except ToolError as error:
            explain(str(error))
            raise error_without_message(ToolError.__name__) from None


@contextmanager
def crash_redacted(logger: Logger, message: str) -> Iterator[None]:
    """Run a state's code; what it raises is logged, and leaves with its name and a reference.

    What has been redacted already passes.
    """
    try:
        yield
    except RedactedError:
        raise
    except Exception as error:
        reference = log_crash(logger, error, message)
        raise error_without_message(type(error).__name__, reference) from None


def log_crash(
    logger: Logger, error: BaseException, message: str = "A tool crashed", **more: Any
) -> str:
    """Write to the log what a tool has raised, and where. Returns the reference to the line.

    `more` are further keys of the line.
    """
    report = crash_report(error)
    logger.error(message, **report, **more)
    keys = {**logger.get_current_keys(), **more}
    about = {name: keys[name] for name in ABOUT if keys.get(name) is not None}
    reference = str(report["reference"])
    write_traceback(error, reference, about)
    return reference


@contextmanager
def client_errors_redacted(what: str, *for_the_client: type[Exception]) -> Iterator[None]:
    """Run a fork's code within a request; a crash becomes -32603 with the exception's name, and
    with the reference to the log in the message and as `data.reference`.

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
        reference = log_crash(_logger, error, f"A {what} crashed")
        message = with_reference(f"The {what} failed: {type(error).__name__}", reference)
        data = {"reference": reference}
        raise ProtocolError(ErrorCode.INTERNAL_ERROR, message, data) from None


def unexpected_error(logger: Logger, error: Exception) -> ProtocolError:
    """The error -32603 for an exception that nobody expects within a request: of this server, or of
    a tool's file that cannot be imported. It says nothing but where the log says more."""
    reference = log_crash(logger, error, "Request failed with an unexpected error")
    message = with_reference("Internal error", reference)
    return ProtocolError(ErrorCode.INTERNAL_ERROR, message, {"reference": reference})
