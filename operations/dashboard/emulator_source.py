"""The figures of the stack of `make up`: from logs, executions and queues, without CloudWatch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from infra.figures import Series

from ..deployed_stack import DeployedStack
from ..read_logs import read
from .graph import Resource, is_own, label
from .log_samples import Key, samples
from .points import Line, Sample, Window, line

EXECUTIONS: Final = {
    "ExecutionsSucceeded": "SUCCEEDED",
    "ExecutionsFailed": "FAILED",
    "ExecutionsTimedOut": "TIMED_OUT",
    "ExecutionsAborted": "ABORTED",
}
FROM_LOGS: Final = frozenset(
    {
        *(("AWS/ApiGateway", name) for name in ("Count", "4XXError", "5XXError")),
        *(("AWS/Lambda", name) for name in ("Invocations", "Errors")),
        ("AWS/Logs", "IncomingBytes"),
    }
)


class EmulatorSource:
    """What can be known of the local stack, read anew for each page."""

    def __init__(self, stack: DeployedStack, window: Window) -> None:
        self._stack = stack
        self._samples: dict[Key, list[Sample]] = samples(read(stack, window.begin_ms, None))
        self._executions: dict[str, list[dict[str, Any]]] = {}

    def lines(
        self, series: Series, resources: Sequence[Resource], window: Window
    ) -> list[Line] | None:
        """The lines of one series; None for what the emulator does not tell."""
        found: list[tuple[Resource | None, list[Sample]]]
        if series.per_gigabyte:
            return None
        if is_own(series) or (series.namespace, series.metric) in FROM_LOGS:
            subjects: Sequence[Resource | None] = resources or [None]
            found = [(each, self._samples.get(self._key(series, each), [])) for each in subjects]
        elif series.namespace == "AWS/States" and resources:
            found = [(r, list(self._of_executions(series.metric, r))) for r in resources]
        elif series.namespace == "AWS/SQS":
            found = [(r, [(window.end_ms - 1, self._messages(r))]) for r in resources]
        else:
            return None
        return [
            line(label(series, resource), each, series.statistic, window)
            for resource, each in found
        ]

    def _key(self, series: Series, resource: Resource | None) -> Key:
        return series.namespace, series.metric, resource.name if resource else ""

    def _of_executions(self, metric: str, machine: Resource) -> Iterator[Sample]:
        """Started executions at their start, the others at their end."""
        arn = machine.physical_id
        if arn not in self._executions:
            listed = self._stack.client("stepfunctions").list_executions(
                stateMachineArn=arn, maxResults=1000
            )
            self._executions[arn] = listed["executions"]
        for execution in self._executions[arn]:
            if metric == "ExecutionsStarted":
                yield int(execution["startDate"].timestamp() * 1000), 1
            elif execution["status"] == EXECUTIONS.get(metric) and "stopDate" in execution:
                yield int(execution["stopDate"].timestamp() * 1000), 1

    def _messages(self, queue: Resource) -> float:
        """How many messages a queue holds now: nobody has kept how many there were."""
        name = "ApproximateNumberOfMessages"
        answer = self._stack.client("sqs").get_queue_attributes(
            QueueUrl=queue.physical_id, AttributeNames=[name]
        )
        return float(answer["Attributes"][name])
