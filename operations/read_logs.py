"""`make logs [TASK=id]`: what the functions of a stack logged, in the order of time.

    python -m operations.read_logs [--task ID] [--since 15m] [--follow] [--stack NAME]
        [--profile aws|local]

All log groups of the stack are read together. With a task's id, only the lines that name it. A line
that a function wrote as JSON is shown as its message and its own fields; what a tool printed, and
what Lambda says of an invocation that failed, is shown as it is.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from local.console import fail, say

from .deployed_stack import (
    DeployedStack,
    NoStack,
    add_stack_options,
    chosen_stack,
    clients_of,
    part_of,
)

LOG_GROUPS: Final = ("Logs", "Log")
"""How the logical ids of log groups end."""
UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
FOLLOW_SECONDS: Final = 2.0
LATE_MS: Final = 30_000
"""CloudWatch Logs may take so long until a line can be read; a later look goes so far back."""
OF_EVERY_LINE: Final = frozenset(
    {
        *("level", "location", "message", "timestamp", "service", "cold_start", "sampling_rate"),
        *("function_name", "function_memory_size", "function_arn", "xray_trace_id"),
    }
)
"""Fields of Powertools' logger that say nothing about the line."""
OF_LAMBDA: Final = re.compile(r"(START|END|INIT_START|REPORT) ")
"""Lambda's own lines. A REPORT that has an error is shown."""


@dataclass(frozen=True, slots=True, order=True)
class Line:
    """One line of a log group."""

    at: int
    """Milliseconds since the epoch."""
    function: str
    text: str
    event_id: str = ""
    """Tells equal lines apart; the emulator gives none."""

    def shown(self) -> str | None:
        """The line for a person; None for one that says nothing."""
        at = datetime.fromtimestamp(self.at / 1000, UTC).strftime("%H:%M:%S.%f")[:-3]
        try:
            fields = json.loads(self.text)
        except ValueError:
            fields = None
        if not isinstance(fields, dict):
            quiet = OF_LAMBDA.match(self.text) and "Error" not in self.text
            return None if quiet else f"{at}  {self.function}  {self.text.rstrip()}"
        if "_aws" in fields:  # a metric
            return None
        own = {name: value for name, value in fields.items() if name not in OF_EVERY_LINE}
        shown = " ".join(f"{name}={_value(value)}" for name, value in own.items())
        level, message = fields.get("level", ""), fields.get("message", "")
        return f"{at}  {self.function}  {level:<7}  {_value(message)}  {shown}".rstrip()


def since(text: str) -> timedelta:
    """Read `15m`, `2h` or `3d`. Raises ValueError."""
    found = re.fullmatch(r"([0-9]+)([smhd])", text)
    if found is None:
        raise ValueError(f"since={text}: a number and s, m, h or d, such as 15m")
    return timedelta(**{UNITS[found[2]]: int(found[1])})


def read(stack: DeployedStack, begin_ms: int, task_id: str | None) -> list[Line]:
    """The lines of all log groups since then, by time."""
    lines: list[Line] = []
    for resource in stack.resources:
        if resource["ResourceType"] == "AWS::Logs::LogGroup":
            name = part_of(resource["LogicalResourceId"], *LOG_GROUPS)
            lines += _of_group(stack, resource["PhysicalResourceId"], name, begin_ms, task_id)
    return sorted(lines)


def _of_group(
    stack: DeployedStack, group: str, function: str, begin_ms: int, task_id: str | None
) -> Iterator[Line]:
    pages = (
        stack.client("logs")
        .get_paginator("filter_log_events")
        .paginate(
            logGroupName=group,
            startTime=begin_ms,
            # CloudWatch Logs user guide, "Filter pattern syntax": a text anywhere in a line.
            **({"filterPattern": f'"{task_id}"'} if task_id else {}),
        )
    )
    for page in pages:
        for event in page["events"]:
            yield Line(event["timestamp"], function, event["message"], event.get("eventId", ""))


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def follow(stack: DeployedStack, begin_ms: int, task_id: str | None) -> Iterator[Line]:
    """The lines since then, and all that come, until somebody interrupts."""
    told: set[Line] = set()
    while True:
        for line in read(stack, begin_ms, task_id):
            if line not in told:
                told.add(line)
                yield line
        now = time.time_ns() // 1_000_000
        begin_ms = max(begin_ms, now - LATE_MS)
        told = {line for line in told if line.at >= begin_ms}
        time.sleep(FOLLOW_SECONDS)


def _print(lines: Iterator[Line]) -> int:
    count = 0
    for line in lines:
        if (shown := line.shown()) is not None:
            say(shown)
            count += 1
    return count


def main() -> int:
    """Print the lines. Returns 1 when they cannot be read."""
    parser = argparse.ArgumentParser(prog="python -m operations.read_logs")
    parser.add_argument("--task", help="only the lines that name this task")
    parser.add_argument("--since", default="15m", help="a number and s, m, h or d")
    parser.add_argument("--follow", action="store_true", help="go on until Ctrl-C")
    add_stack_options(parser)
    options = parser.parse_args()
    try:
        begin = datetime.now(UTC) - since(options.since)
        begin_ms = int(begin.timestamp() * 1000)
        stack = DeployedStack(chosen_stack(options), clients_of(options.profile))
        if options.follow:
            _print(follow(stack, begin_ms, options.task))
        elif not _print(iter(read(stack, begin_ms, options.task))):
            about = f" about {options.task}" if options.task else ""
            say(f"no line{about} in the last {options.since}; since=1d looks further back")
    except (NoStack, ValueError, ClientError, BotoCoreError) as error:
        return fail(error)
    except KeyboardInterrupt:
        pass
    return 0


if __name__ == "__main__":
    sys.exit(main())
