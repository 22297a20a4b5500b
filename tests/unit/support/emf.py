"""The metrics that functions write as lines of their logs, in CloudWatch's embedded metric format.

Source: CloudWatch user guide, "Specification: Embedded metric format".
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Written:
    """One line with metrics."""

    namespace: str
    dimensions: list[list[str]]
    """The sets of dimensions; each makes a metric of its own."""
    values: dict[str, list[float]]
    units: dict[str, str]
    members: dict[str, Any]
    """Everything else in the line: the dimensions' values, and what a query may ask for."""


def metrics_in(log: str) -> list[Written]:
    """What CloudWatch would read in the output of a function."""
    lines = [json.loads(line) for line in log.splitlines() if line.startswith('{"_aws"')]
    return [_read(line) for line in lines]


def _read(line: dict[str, Any]) -> Written:
    (directive,) = line.pop("_aws")["CloudWatchMetrics"]
    units = {metric["Name"]: metric["Unit"] for metric in directive["Metrics"]}
    values = {name: line.pop(name) for name in units}
    for dimension in (name for names in directive["Dimensions"] for name in names):
        assert isinstance(line[dimension], str), dimension
    return Written(directive["Namespace"], directive["Dimensions"], values, units, line)
