"""A figure of the dashboard with its data, from whichever source has it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from infra.figures import COST, HEALTH, OWN, Each, Figure, Series

from ..deployed_stack import DeployedStack, part_of
from ..running_executions import STATE_MACHINE
from .points import Line, Window

TYPES: Final[Mapping[Each, tuple[str, str]]] = {
    Each.API: ("AWS::ApiGateway::RestApi", "GatewayRestApi"),
    Each.FUNCTION: ("AWS::Lambda::Function", "Function"),
    Each.TABLE: ("AWS::DynamoDB::Table", "Table"),
    Each.DEAD_LETTER_QUEUE: ("AWS::SQS::Queue", "DeadLetterQueue"),
    Each.LOG_GROUP: ("AWS::Logs::LogGroup", "Logs"),
}
"""The type of each kind of resource, and how a logical id ends before its hash."""


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource that a line is about."""

    name: str
    """Its part of the stack: `Finish`, `ToolsreportWorker`."""
    physical_id: str


class Source(Protocol):
    """Where the data come from."""

    def lines(
        self, series: Series, resources: Sequence[Resource], window: Window
    ) -> list[Line] | None:
        """The lines of one series; None when this source does not have the metric."""


@dataclass(frozen=True, slots=True)
class Graph:
    """A figure, with its data."""

    title: str
    lines: Sequence[Line]
    missing: bool
    """Whether the source has nothing of it."""


def graphs(
    stack: DeployedStack, source: Source, window: Window, tool_metrics: bool
) -> dict[str, list[Graph]]:
    """Both parts of the dashboard, by their headings."""
    parts = {"Is it healthy?": HEALTH, "What does it cost?": COST}
    return {
        heading: [
            _graph(figure, stack, source, window)
            for figure in figures
            if tool_metrics or not figure.only_by_tool
        ]
        for heading, figures in parts.items()
    }


def _graph(figure: Figure, stack: DeployedStack, source: Source, window: Window) -> Graph:
    found = [source.lines(series, resources_of(stack, series), window) for series in figure.series]
    there = [lines for lines in found if lines is not None]
    return Graph(figure.title, [line for lines in there for line in lines], not there)


def resources_of(stack: DeployedStack, series: Series) -> list[Resource]:
    """The resources of which a series has a line each; empty for one of the whole stack."""
    if series.each is None:
        return []
    machines = [Resource(_tool(stack, arn), arn) for arn in stack.physical_ids(STATE_MACHINE)]
    if series.each is Each.STATE_MACHINE:
        return machines
    if series.each is Each.TOOL:
        return [Resource(machine.name, machine.name) for machine in machines]
    kind, end = TYPES[series.each]
    return list(_resources(stack.resources, kind, end))


def _tool(stack: DeployedStack, arn: str) -> str:
    """The tool of a state machine, whose name is the stack's and the tool's."""
    return arn.rsplit(":", 1)[1].removeprefix(f"{stack.name}-")


def _resources(found: Sequence[Mapping[str, Any]], kind: str, end: str) -> Iterator[Resource]:
    for resource in found:
        name = part_of(resource["LogicalResourceId"])
        if resource["ResourceType"] == kind and name.endswith(end):
            yield Resource(name.removesuffix(end), resource["PhysicalResourceId"])


def label(series: Series, resource: Resource | None) -> str:
    """A line's name in the legend."""
    return f"{resource.name if resource else ''} {series.label}".strip() or series.metric


def is_own(series: Series) -> bool:
    """Whether the stack's functions write the metric, and not a service."""
    return series.namespace == OWN
