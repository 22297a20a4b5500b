"""Every figure of the dashboard is drawn, from CloudWatch or from what the emulator has."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from infra.figures import COST, HEALTH, Each, Series
from operations.dashboard.cloudwatch_source import CloudWatchSource
from operations.dashboard.emulator_source import EmulatorSource
from operations.dashboard.graph import Resource, graphs, resources_of
from operations.dashboard.page import page
from operations.dashboard.points import Window
from operations.deployed_stack import DeployedStack

NOW = 1_795_500_000_000
WINDOW = Window.before(NOW, 60)
MACHINE = "arn:aws:states:eu-west-1:111122223333:stateMachine:notes-report"
QUEUE = "https://sqs.eu-west-1.amazonaws.com/111122223333/notes-finish-dlq"
RESOURCES = [
    ("AWS::ApiGateway::RestApi", "ApiGatewayRestApi1A2B3C4D", "a1b2c3"),
    ("AWS::Lambda::Function", "ApiFunction1A2B3C4D", "notes-api"),
    ("AWS::Lambda::Function", "ToolsreportWorkerFunction1A2B3C4D", "notes-worker"),
    ("AWS::StepFunctions::StateMachine", "ToolsreportStateMachine1A2B3C4D", MACHINE),
    ("AWS::DynamoDB::Table", "TasksTable1A2B3C4D", "notes-tasks"),
    ("AWS::SQS::Queue", "FinishDeadLetterQueue1A2B3C4D", QUEUE),
    ("AWS::SQS::Queue", "DeliverQueue1A2B3C4D", "https://other"),
    ("AWS::Logs::LogGroup", "ApiLogs1A2B3C4D", "notes-api-logs"),
]


class _Account:
    """The clients of one stack."""

    def __init__(self) -> None:
        self.queries: list[dict[str, Any]] = []

    def client(self, service: str) -> Any:
        """A client, with what the sources call."""
        return {
            "cloudformation": SimpleNamespace(
                describe_stacks=lambda **_: {"Stacks": [{"Outputs": []}]},
                get_paginator=lambda _: SimpleNamespace(paginate=self._resources),
            ),
            "cloudwatch": SimpleNamespace(get_metric_data=self._metric_data),
            "apigateway": SimpleNamespace(get_rest_api=lambda **_: {"name": "notes"}),
            "lambda": SimpleNamespace(get_function_configuration=lambda **_: {"MemorySize": 512}),
            "logs": SimpleNamespace(
                get_paginator=lambda _: SimpleNamespace(paginate=lambda **_: [{"events": []}])
            ),
            "stepfunctions": SimpleNamespace(
                list_executions=lambda **_: {
                    "executions": [
                        {
                            "status": "FAILED",
                            "startDate": datetime.fromtimestamp(NOW / 1000 - 70, UTC),
                            "stopDate": datetime.fromtimestamp(NOW / 1000 - 5, UTC),
                        }
                    ]
                }
            ),
            "sqs": SimpleNamespace(
                get_queue_attributes=lambda **_: {
                    "Attributes": {"ApproximateNumberOfMessages": "3"}
                }
            ),
        }[service]

    def _resources(self, **_: Any) -> list[dict[str, Any]]:
        names = ("ResourceType", "LogicalResourceId", "PhysicalResourceId")
        return [{"StackResourceSummaries": [dict(zip(names, r, strict=True)) for r in RESOURCES]}]

    def _metric_data(self, **asked: Any) -> dict[str, Any]:
        self.queries += asked["MetricDataQueries"]
        at = datetime.fromtimestamp(WINDOW.begin_ms / 1000, UTC)
        return {
            "MetricDataResults": [
                {"Id": query["Id"], "Timestamps": [at], "Values": [4_000.0]}
                for query in asked["MetricDataQueries"]
            ]
        }


def _stack() -> tuple[DeployedStack, _Account]:
    account = _Account()
    return DeployedStack("notes", account.client), account


def test_cloudwatch_is_asked_for_each_series_as_the_dashboard_asks() -> None:
    stack, account = _stack()
    found = graphs(stack, CloudWatchSource(stack), WINDOW, tool_metrics=True)
    assert [graph.title for graphs in found.values() for graph in graphs] == [
        figure.title for figure in (*HEALTH, *COST)
    ]
    assert not any(graph.missing for graphs in found.values() for graph in graphs)
    metrics = [query["MetricStat"]["Metric"] for query in account.queries]
    assert {
        "Namespace": "AWS/SQS",
        "MetricName": "ApproximateNumberOfMessagesVisible",
        "Dimensions": [{"Name": "QueueName", "Value": "notes-finish-dlq"}],
    } in metrics
    assert {
        "Namespace": "AWS/ApiGateway",
        "MetricName": "5XXError",
        "Dimensions": [{"Name": "ApiName", "Value": "notes"}],
    } in metrics
    own = next(metric for metric in metrics if metric["MetricName"] == "TasksCreated")
    assert own["Namespace"] == "notes"
    assert {"Name": "service", "Value": "mcp-tasks"} in own["Dimensions"]
    seconds = {query["MetricStat"]["Period"] for query in account.queries}
    assert seconds == {WINDOW.period_ms // 1000}


def test_milliseconds_of_a_function_become_gigabyte_seconds() -> None:
    stack, _ = _stack()
    found = graphs(stack, CloudWatchSource(stack), WINDOW, tool_metrics=False)
    (graph,) = (g for g in found["What does it cost?"] if g.title.startswith("GB-seconds"))
    assert [dict(line.points) for line in graph.lines] == [{WINDOW.begin_ms: 2.0}] * 2


def test_the_emulators_executions_and_queues_are_read() -> None:
    stack, _ = _stack()
    source = EmulatorSource(stack, WINDOW)
    machines = [Resource("report", MACHINE)]

    def points(metric: str) -> dict[int, float]:
        series = Series("AWS/States", metric, "Sum", "", Each.STATE_MACHINE)
        found = source.lines(series, machines, WINDOW)
        assert found is not None
        return dict(found[0].points)

    assert points("ExecutionsFailed") == {WINDOW.at(NOW - 5_000): 1}
    assert points("ExecutionsStarted") == {WINDOW.at(NOW - 70_000): 1}
    assert points("ExecutionsSucceeded") == {}
    found = graphs(stack, source, WINDOW, tool_metrics=True)["Is it healthy?"]
    (letters,) = (graph for graph in found if graph.title == "Dead letters")
    assert [list(line.points.values()) for line in letters.lines] == [[3.0]]
    missing = {graph.title for graph in found if graph.missing}
    assert "Throttled by DynamoDB" in missing
    assert "Tasks by state" not in missing


def test_each_kind_of_resource_is_found_by_its_logical_id() -> None:
    stack, _ = _stack()

    def names(each: Each) -> list[str]:
        return [r.name for r in resources_of(stack, Series("", "", "Sum", "", each))]

    assert {each: names(each) for each in Each} == {
        Each.API: ["Api"],
        Each.FUNCTION: ["Api", "ToolsreportWorker"],
        Each.STATE_MACHINE: ["report"],
        Each.TABLE: ["Tasks"],
        Each.DEAD_LETTER_QUEUE: ["Finish"],
        Each.LOG_GROUP: ["Api"],
        Each.TOOL: ["report"],
    }


def test_the_page_holds_every_figure_and_escapes_what_tools_said() -> None:
    stack, _ = _stack()
    parts = graphs(stack, EmulatorSource(stack, WINDOW), WINDOW, tool_metrics=False)
    rows = [("task", "message"), ("c1-a", "<script>alert(1)</script>")]
    text = page("notes", parts, rows, WINDOW)
    assert all(figure.title in text for figure in COST)
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert "no task runs" in page("notes", parts, rows[:1], WINDOW)
