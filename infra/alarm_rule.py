"""When an alarm rings that computes with several metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch

MINUTE: Final = Duration.minutes(1)
FIVE_MINUTES: Final = Duration.minutes(5)

Metrics = Mapping[str, cloudwatch.IMetric]


@dataclass(frozen=True, slots=True)
class Rule:
    """When an alarm rings: above a value, for some periods in a row. No data is good news."""

    expression: str
    metrics: Metrics
    """By the names that the expression uses."""
    above: float
    period: Duration = FIVE_MINUTES
    periods: int = 1


def total(used: Metrics) -> str:
    """Their sum, in which a metric without data counts nothing."""
    return " + ".join(f"FILL({name}, 0)" for name in used)
