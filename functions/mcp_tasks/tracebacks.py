"""Whole tracebacks, with the messages of exceptions: for whoever may read them, and nobody else.

A message may quote arguments, answers and results, so no log of a function has it. A traceback is
written where the deployment says so, and by default nowhere:

- to a log group of its own, with a key and a retention of its own (`make deploy log_messages=on`);
- to a file of this machine (`make up`, `make demo`);
- to the terminal, in tests (`mcp_tasks.testing`).

A traceback has the reference that the client and the function's log have (`crash_report`). The
values of variables are not in it: secrets would be among them.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from . import environment as names
from .aws.clients import SHORT_ATTEMPT, aws_client
from .aws.errors import error_code

MAX_TRACEBACK_CHARACTERS: Final = 100_000
"""Of one event in CloudWatch, which takes 1 MB (CloudWatch Logs user guide, "CloudWatch Logs
quotas"). The end is kept, which has the message."""

logger: Final = logging.getLogger("mcp_tasks.tracebacks")
logger.propagate = False  # the root logger's handler is that of the function's own log
logger.disabled = True  # until there is a place for tracebacks


def write_traceback(error: BaseException, reference: str, about: Mapping[str, Any]) -> None:
    """Write an exception's traceback to where the deployment says. Never raises.

    `about` says what has crashed: names and ids, as the function's log has them.
    """
    header = {"reference": reference, **about}
    shown = " ".join(f"{name}={value}" for name, value in header.items())
    information = (type(error), error, error.__traceback__)
    logger.error("%s", shown, exc_info=information, extra={"header": header})


def keep_tracebacks(environment: Mapping[str, str]) -> None:
    """Have tracebacks written to where a function's environment says, if it says anything."""
    if file := environment.get(names.TRACEBACK_FILE):
        handler: logging.Handler = logging.FileHandler(file, encoding="utf-8", delay=True)
        handler.setFormatter(logging.Formatter("\n%(asctime)s %(message)s"))
        add_handler(handler, file)
    if group := environment.get(names.TRACEBACK_LOG_GROUP):
        stream = environment.get("AWS_LAMBDA_LOG_STREAM_NAME", "")
        function = environment.get("AWS_LAMBDA_FUNCTION_NAME", "")
        add_handler(LogGroupHandler(group, f"{function}/{stream}"), group)


def show_tracebacks() -> None:
    """Have tracebacks shown on standard error."""
    add_handler(TerminalHandler(), "standard error")


def add_handler(handler: logging.Handler, place: str) -> None:
    """Have tracebacks written by a handler, unless there is one for the place already."""
    handler.set_name(f"{logger.name} to {place}")
    if handler.name not in {each.name for each in logger.handlers}:
        logger.addHandler(handler)
    logger.disabled = False


class TerminalHandler(logging.Handler):
    """Writes to standard error as it is at that moment: pytest replaces it for each test."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one traceback."""
        print(f"\n{self.format(record)}", file=sys.stderr, flush=True)


class LogGroupHandler(logging.Handler):
    """Writes each traceback as one JSON line of a log stream, which the first one creates.

    A traceback that cannot be written is left out, and the function's own log says so: the crash
    itself is there in any case. One call takes 1.5 seconds at most.
    """

    def __init__(self, group: str, stream: str, client: Any = None) -> None:
        super().__init__()
        self._group = group
        # CloudWatch Logs API reference, "CreateLogStream": neither ':' nor '*'.
        self._stream = stream.replace(":", "_").replace("*", "_")
        self._client = client
        self._created = False

    def emit(self, record: logging.LogRecord) -> None:
        """Write one traceback."""
        text = self.format(record)[-MAX_TRACEBACK_CHARACTERS:]
        line = json.dumps({**vars(record)["header"], "traceback": text}, default=str)
        try:
            self._put(line)
        except Exception as error:
            # To the function's log, as its runtime takes what a process prints.
            note = {"message": "A traceback was not written", "error": error_code(error)}
            print(json.dumps({"level": "WARNING", **note}), flush=True)

    def _put(self, line: str) -> None:
        client = self._client = self._client or aws_client("logs", SHORT_ATTEMPT)
        where = {"logGroupName": self._group, "logStreamName": self._stream}
        if not self._created:
            # An earlier process of this instance may have created it.
            with suppress(client.exceptions.ResourceAlreadyExistsException):
                client.create_log_stream(**where)
            self._created = True
        event = {"timestamp": time.time_ns() // 1_000_000, "message": line}
        client.put_log_events(**where, logEvents=[event])
