"""Samples of the stack's metrics, read off what its functions logged.

The functions write their own metrics as lines of the log (CloudWatch user guide, "Embedding metrics
within logs"), and `api` a line for each request. Lambda's lines tell of invocations.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from infra.figures import ANSWERED_AT_ONCE
from mcp_tasks import metrics

from ..read_logs import Line
from .points import Sample

API: Final = "Api"
BYTES_OF_AN_EVENT: Final = 26
"""What CloudWatch Logs counts for each event besides its text (CloudWatch Logs quotas)."""
FAILED: Final = re.compile(r"\[ERROR\]|.*Task timed out|REPORT .*Status: (error|timeout)")

Key = tuple[str, str, str]
"""A namespace, which is empty for the stack's own; a metric; and the resource or the tool that the
line is about, or nothing for the whole stack."""


def samples(lines: Iterable[Line]) -> dict[Key, list[Sample]]:
    """The samples of each metric that the lines tell of."""
    found: dict[Key, list[Sample]] = defaultdict(list)
    for line in lines:
        for namespace, metric, resource, value in _of_line(line):
            found[namespace, metric, resource].append((line.at, value))
    return dict(found)


def _of_line(line: Line) -> Iterator[tuple[str, str, str, float]]:
    size = len(line.text.encode()) + BYTES_OF_AN_EVENT
    yield "AWS/Logs", "IncomingBytes", line.function, float(size)
    if line.text.startswith("START "):
        yield "AWS/Lambda", "Invocations", line.function, 1
        yield "AWS/Lambda", "Errors", line.function, 0
    elif FAILED.match(line.text):
        yield "AWS/Lambda", "Errors", line.function, 1
    fields = _fields(line.text)
    if "_aws" in fields:
        yield from _embedded(fields)
    elif fields.get("message") == "request answered" and line.function == API:
        yield from _request(fields)


def _fields(text: str) -> Mapping[str, Any]:
    if not text.startswith("{"):
        return {}
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _embedded(fields: Mapping[str, Any]) -> Iterator[tuple[str, str, str, float]]:
    tool = str(fields.get("tool", ""))
    for directive in fields["_aws"].get("CloudWatchMetrics", ()):
        for metric in directive.get("Metrics", ()):
            values = fields.get(metric["Name"], ())
            for value in values if isinstance(values, list) else [values]:
                yield "", metric["Name"], "", float(value)
                if tool:
                    yield "", metric["Name"], tool, float(value)


def _request(fields: Mapping[str, Any]) -> Iterator[tuple[str, str, str, float]]:
    status = int(fields["status"])
    yield "AWS/ApiGateway", "Count", API, 1
    yield "AWS/ApiGateway", "4XXError", API, float(400 <= status < 500)
    yield "AWS/ApiGateway", "5XXError", API, float(status >= 500)
    if fields.get("method") in ANSWERED_AT_ONCE and "duration_ms" in fields:
        yield "", metrics.ANSWER_TIME, "", float(fields["duration_ms"])
