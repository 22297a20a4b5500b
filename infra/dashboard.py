"""The CloudWatch dashboard: `infra/figures.py`, drawn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from aws_cdk import Duration, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from .figures import COST, HEALTH, OWN, Figure, Series
from .watched import Watched

WIDTH: Final = 8
"""Of 24 columns."""
HOUR: Final = Duration.hours(1)


class Dashboard(Construct):
    """One page: is it healthy, and what does it cost."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        watched: Watched,
        alarms: Sequence[cloudwatch.IAlarm],
        by_tool: bool,
    ) -> None:
        super().__init__(scope, construct_id)
        self._watched = watched
        dashboard = cloudwatch.Dashboard(
            self,
            "Dashboard",
            dashboard_name=Stack.of(self).stack_name,
            default_interval=Duration.hours(24),
        )
        if alarms:
            dashboard.add_widgets(
                cloudwatch.AlarmStatusWidget(alarms=list(alarms), title="Alarms", width=24)
            )
        health = [figure for figure in HEALTH if by_tool or not figure.only_by_tool]
        dashboard.add_widgets(_heading("Is it healthy?"))
        dashboard.add_widgets(*self._graphs(health, Duration.minutes(5)))
        dashboard.add_widgets(_heading("What does it cost? Each point is an hour"))
        dashboard.add_widgets(*self._graphs(COST, HOUR))

    def _graphs(self, figures: Sequence[Figure], period: Duration) -> Iterator[cloudwatch.IWidget]:
        for figure in figures:
            lines = [line for each in figure.series for line in self._lines(each, period)]
            if lines:
                yield cloudwatch.GraphWidget(
                    title=figure.title,
                    left=lines,
                    left_y_axis=cloudwatch.YAxisProps(min=0, show_units=False),
                    period=period,
                    width=WIDTH,
                )

    def _lines(self, series: Series, period: Duration) -> Iterator[cloudwatch.IMetric]:
        if series.each is None:
            yield self._metric(series, dict(series.dimensions), series.label, period)
            return
        for number, (name, value) in enumerate(self._watched.dimension_values(series.each)):
            dimensions = {**series.dimensions, series.each.value: value}
            label = f"{name} {series.label}".strip()
            metric = self._metric(series, dimensions, label, period)
            yield self._gigabytes(metric, name, number) if series.per_gigabyte else metric

    def _metric(
        self, series: Series, dimensions: dict[str, str], label: str, period: Duration
    ) -> cloudwatch.Metric:
        return cloudwatch.Metric(
            namespace=Stack.of(self).stack_name if series.namespace == OWN else series.namespace,
            metric_name=series.metric,
            dimensions_map=dimensions,
            statistic=series.statistic,
            label=label,
            period=period,
        )

    def _gigabytes(
        self, milliseconds: cloudwatch.Metric, name: str, number: int
    ) -> cloudwatch.IMetric:
        """GB-seconds of a function, by its memory."""
        functions = list(self._watched.functions.values())
        resource = functions[number].node.default_child
        memory = getattr(resource, "memory_size", None) or 128
        return cloudwatch.MathExpression(
            expression=f"ms{number} * {memory / 1024 / 1000:.7f}",
            using_metrics={f"ms{number}": milliseconds},
            label=name,
            period=milliseconds.period,
        )


def _heading(text: str) -> cloudwatch.TextWidget:
    return cloudwatch.TextWidget(markdown=f"## {text}", width=24, height=1)
