"""CloudWatch metrics of what an operator has to look at (`infra/alarms.py` has their alarms)."""

from __future__ import annotations

import os
from typing import Final

SERVICE: Final = "mcp-tasks"
"""The metrics' dimension `service`: of whichever function writes them."""

NOT_UNDONE: Final = "NotUndone"
"""Tasks that were cancelled or failed, and of which something was not undone."""
NON_DETERMINISM: Final = "NonDeterminism"
"""Tasks that failed because their tool took another way than before."""


def count(metric: str) -> None:
    """Count one, in the stack's namespace."""
    from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit  # seldom needed

    # Authors' tests run this, too, and have no stack.
    namespace = os.environ.get("POWERTOOLS_METRICS_NAMESPACE", SERVICE)
    metrics = EphemeralMetrics(service=SERVICE, namespace=namespace)
    metrics.add_metric(metric, MetricUnit.Count, 1)
    metrics.flush_metrics()
