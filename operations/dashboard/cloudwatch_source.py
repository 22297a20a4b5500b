"""The figures of a deployed stack, from CloudWatch: GetMetricData, one call for a figure's line."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from infra.figures import Each, Series

from ..deployed_stack import DeployedStack
from .graph import Resource, is_own, label
from .points import Line, Window


class CloudWatchSource:
    """Reads metrics as the CloudWatch dashboard does. Each metric that is read costs $0.00001."""

    def __init__(self, stack: DeployedStack) -> None:
        self._stack = stack

    def lines(
        self, series: Series, resources: Sequence[Resource], window: Window
    ) -> list[Line] | None:
        """The lines of one series."""
        if series.each and not resources:
            return []
        subjects: Sequence[Resource | None] = resources or [None]
        answer = self._stack.client("cloudwatch").get_metric_data(
            MetricDataQueries=[
                {
                    "Id": f"m{number}",
                    "MetricStat": {
                        "Metric": self._metric(series, resource),
                        "Period": window.period_ms // 1000,
                        "Stat": series.statistic,
                    },
                }
                for number, resource in enumerate(subjects)
            ],
            StartTime=datetime.fromtimestamp(window.begin_ms / 1000, UTC),
            EndTime=datetime.fromtimestamp(window.end_ms / 1000, UTC),
        )
        data = {result["Id"]: result for result in answer["MetricDataResults"]}
        return [
            Line(label(series, resource), self._points(data[f"m{number}"], series, resource))
            for number, resource in enumerate(subjects)
        ]

    def _metric(self, series: Series, resource: Resource | None) -> dict[str, Any]:
        dimensions = dict(series.dimensions)
        if series.each and resource:
            dimensions[series.each.value] = self._value(series.each, resource)
        return {
            "Namespace": self._stack.name if is_own(series) else series.namespace,
            "MetricName": series.metric,
            "Dimensions": [{"Name": name, "Value": value} for name, value in dimensions.items()],
        }

    def _value(self, each: Each, resource: Resource) -> str:
        """What a metric's dimension calls a resource, which is not always its physical id."""
        if each is Each.DEAD_LETTER_QUEUE:  # the physical id is the URL
            return resource.physical_id.rsplit("/", 1)[1]
        if each is Each.API:
            api = self._stack.client("apigateway").get_rest_api(restApiId=resource.physical_id)
            return str(api["name"])
        return resource.physical_id

    def _points(
        self, result: dict[str, Any], series: Series, resource: Resource | None
    ) -> dict[int, float]:
        factor = self._gigabytes(resource) / 1000 if series.per_gigabyte and resource else 1
        times = [int(at.timestamp() * 1000) for at in result["Timestamps"]]
        values = [value * factor for value in result["Values"]]
        return dict(sorted(zip(times, values, strict=True)))

    def _gigabytes(self, function: Resource) -> float:
        """A function's memory, by which its milliseconds are GB-seconds."""
        name = function.physical_id
        found = self._stack.client("lambda").get_function_configuration(FunctionName=name)
        return float(found["MemorySize"]) / 1024
