"""The alarms on the product: what callers meet, and what the stack runs into.

They are few: each is about the whole stack, computed from the metrics of its parts by metric math,
which may use ten of them (CloudWatch user guide, "Alarm data queries"). `docs/operations.md` says
for each what happened, what to look at and what to do.
"""

from __future__ import annotations

from typing import Any, Final

from aws_cdk import Duration, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from mcp_tasks import metrics

from .alarm_rule import FIVE_MINUTES, MINUTE, Metrics, Rule, total
from .alarms import MORE_THAN, create_alarm
from .figures import ANSWERED_AT_ONCE, THROTTLED_WORKFLOWS
from .watched import AUTHORIZER, Watched

MAX_METRICS: Final = 10
"""Of an alarm on a math expression (CloudWatch user guide, "CloudWatch service quotas")."""
FEW: Final = 5
"""Below it, a failed request or call is no alarm: it was repeated, or a client repeats it."""
MANY: Final = 10
"""Of throttled calls, which are repeated as well."""
MAX_FAILED_REQUESTS_PERCENT: Final = 1
MIN_FAILED_TASKS: Final = 3
MAX_FAILED_TASKS_PERCENT: Final = 5
"""A task that a caller spoils does not fail: it completes with an error of its tool. So a failed
one is a crash, a timeout, or a client that cannot answer what its tool asks."""
MAX_ANSWER_MS: Final = 2_000
MAX_CONCURRENCY_PERCENT: Final = 80
IS_ANSWERED_AT_ONCE: Final = (
    '{ $.message = "request answered" && ('
    + " || ".join(f'$.method = "{method}"' for method in ANSWERED_AT_ONCE)
    + ") }"
)
"""Of the line that `functions/api/handler.py` logs for each request."""


class ProductAlarms(Construct):
    """The alarms, without anybody whom they notify."""

    def __init__(self, scope: Construct, construct_id: str, watched: Watched) -> None:
        super().__init__(scope, construct_id)
        self._watched = watched
        self._server_errors()
        self._answer_time()
        self._functions()
        self._reserved_concurrency()
        self._account_concurrency()
        self._tasks()
        self._workflows()
        self._tables()

    def _server_errors(self) -> None:
        """API Gateway counts what the authorizer fails at as 5XX, and a token that it refuses as
        4XX; Lambda counts either as an error of the function.
        """
        apis = list(self._watched.apis.values())
        failed = {f"f{n}": api.metric_server_error() for n, api in enumerate(apis)}
        requests = {f"r{n}": api.metric_count() for n, api in enumerate(apis)}
        share = f"100 * ({total(failed)}) / ({total(requests)})"
        self._alarm(
            "ServerErrors",
            f"More than {MAX_FAILED_REQUESTS_PERCENT} % of the requests were answered with an "
            "error of the server (5XX)",
            Rule(
                f"IF(({total(failed)}) >= {FEW}, {share}, 0)",
                {**failed, **requests},
                above=MAX_FAILED_REQUESTS_PERCENT,
            ),
        )

    def _answer_time(self) -> None:
        """How long it takes to answer. API Gateway's own latency is of no use here: calls of tools
        and subscriptions wait. So it is read off the log, which costs the request nothing.
        """
        namespace = Stack.of(self).stack_name
        logs.MetricFilter(
            self,
            "AnswerTimeFilter",
            log_group=self._watched.log_groups["Api"],
            filter_pattern=logs.FilterPattern.literal(IS_ANSWERED_AT_ONCE),
            metric_namespace=namespace,
            metric_name=metrics.ANSWER_TIME,
            metric_value="$.duration_ms",
            unit=cloudwatch.Unit.MILLISECONDS,
        )
        create_alarm(
            self,
            "AnswerTime",
            cloudwatch.Metric(
                namespace=namespace,
                metric_name=metrics.ANSWER_TIME,
                statistic="p95",
                period=FIVE_MINUTES,
            ),
            f"One in 20 requests that wait for nothing took more than {MAX_ANSWER_MS} ms, for 15 "
            "minutes",
            comparison=MORE_THAN,
            threshold=MAX_ANSWER_MS,
            evaluation_periods=3,
            # Of ten requests, one that is slow is the p95.
            evaluate_low_sample_count_percentile="ignore",
        )

    def _functions(self) -> None:
        """Errors and throttled calls of the functions that are no workers.

        A worker fails when its tool crashes, which fails the task. A worker that has all the
        instances it may have is throttled, and its tasks wait. The authorizer fails whenever it
        refuses a token.
        """
        functions = self._watched.own_functions
        errors = _numbered({n: f.metric_errors() for n, f in functions.items() if n != AUTHORIZER})
        self._alarm(
            "FunctionErrors",
            "Functions of the stack failed, or ran longer than they may",
            Rule(total(errors), errors, above=FEW - 1),
        )
        throttles = _numbered({n: f.metric_throttles() for n, f in functions.items()})
        self._alarm(
            "FunctionThrottles",
            "Lambda refused calls of the stack's functions: no instance was free",
            Rule(total(throttles), throttles, above=MANY - 1),
        )

    def _reserved_concurrency(self) -> None:
        """Instances of the functions that have a number of their own."""
        shares, used = [], {}
        for number, function in enumerate(self._watched.own_functions.values()):
            if reserved := _reserved(function):
                used[f"m{number}"] = function.metric(
                    "ConcurrentExecutions", statistic="Maximum", period=MINUTE
                )
                shares.append(f"100 * FILL(m{number}, 0) / {reserved}")
        if used:
            self._alarm(
                "Concurrency",
                f"A function of the stack uses more than {MAX_CONCURRENCY_PERCENT} % of its "
                "reserved concurrency, for five minutes",
                Rule(
                    f"MAX([{', '.join(shares)}])", used, MAX_CONCURRENCY_PERCENT, MINUTE, periods=5
                ),
            )

    def _account_concurrency(self) -> None:
        """Instances of all functions of the account and region (CloudWatch user guide, "Visualizing
        your service quotas and setting alarms").
        """
        usage = cloudwatch.Metric(
            namespace="AWS/Usage",
            metric_name="ResourceCount",
            dimensions_map={
                "Service": "Lambda",
                "Resource": "ConcurrentExecutions",
                "Type": "Resource",
                "Class": "None",
            },
            statistic="Maximum",
            period=MINUTE,
        )
        self._alarm(
            "AccountConcurrency",
            f"The functions of the account and region use more than {MAX_CONCURRENCY_PERCENT} % of "
            "its concurrent executions, for five minutes",
            Rule(
                "100 * usage / SERVICE_QUOTA(usage)",
                {"usage": usage},
                MAX_CONCURRENCY_PERCENT,
                MINUTE,
                periods=5,
            ),
        )

    def _tasks(self) -> None:
        """Tasks that failed, among those that ended by themselves."""
        ends = {"failed": metrics.TASKS_FAILED, "completed": metrics.TASKS_COMPLETED}
        used = {
            name: cloudwatch.Metric(
                namespace=Stack.of(self).stack_name,
                metric_name=metric,
                dimensions_map={"service": metrics.SERVICE},
                statistic="Sum",
            )
            for name, metric in ends.items()
        }
        share = f"100 * FILL(failed, 0) / ({total(used)})"
        self._alarm(
            "TasksFailed",
            f"{MIN_FAILED_TASKS} tasks or more failed in 15 minutes, and more than "
            f"{MAX_FAILED_TASKS_PERCENT} % of those that ended: their tools crashed, or ran longer "
            "than they may",
            Rule(
                f"IF(FILL(failed, 0) >= {MIN_FAILED_TASKS}, {share}, 0)",
                used,
                MAX_FAILED_TASKS_PERCENT,
                Duration.minutes(15),
            ),
        )

    def _workflows(self) -> None:
        """The quotas of Step Functions, which are the account's in a region."""
        throttled = {
            f"m{number}": cloudwatch.Metric(
                namespace=series.namespace,
                metric_name=series.metric,
                dimensions_map=dict(series.dimensions),
                statistic=series.statistic,
            )
            for number, series in enumerate(THROTTLED_WORKFLOWS)
        }
        self._alarm(
            "WorkflowsThrottled",
            "Step Functions throttled transitions of executions, or calls of its API, in this "
            "account and region",
            Rule(total(throttled), throttled, above=MANY - 1),
        )

    def _tables(self) -> None:
        """DynamoDB: of the account's tables in the region. A table has these metrics for each
        operation, and only once one was throttled or failed; Metrics Insights adds them up, but
        cannot name several tables (CloudWatch user guide, "Query components and syntax in
        CloudWatch Metrics Insights": WHERE takes = and AND).
        """
        kinds = {
            "TablesThrottled": ("ThrottledRequests", MANY, "DynamoDB throttled requests"),
            "TableErrors": ("SystemErrors", FEW, "DynamoDB failed at requests (HTTP 500)"),
        }
        for name, (metric, at_least, what) in kinds.items():
            # No database reads it: CloudWatch does.
            query = f'SELECT SUM({metric}) FROM SCHEMA("AWS/DynamoDB", Operation, TableName)'  # noqa: S608
            self._alarm(
                name,
                f"{what} to tables of this account and region",
                Rule(query, {}, above=at_least - 1),
            )

    def _alarm(self, construct_id: str, description: str, rule: Rule) -> None:
        if len(rule.metrics) > MAX_METRICS:
            raise ValueError(f"{construct_id}: {len(rule.metrics)} metrics; {MAX_METRICS} at most")
        computed = cloudwatch.MathExpression(
            expression=rule.expression,
            using_metrics=dict(rule.metrics),
            period=rule.period,
            label=construct_id,
        )
        create_alarm(
            self,
            construct_id,
            computed,
            description,
            comparison=MORE_THAN,
            threshold=rule.above,
            evaluation_periods=rule.periods,
        )


def _numbered(found: Metrics) -> dict[str, cloudwatch.IMetric]:
    """Metrics by names that metric math takes."""
    return {f"m{number}": metric for number, metric in enumerate(found.values())}


def _reserved(function: lambda_.Function) -> int | None:
    """A function's reserved concurrency."""
    resource: Any = function.node.default_child
    reserved: float | None = resource.reserved_concurrent_executions
    return None if reserved is None else round(reserved)
