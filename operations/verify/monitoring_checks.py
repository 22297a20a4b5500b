"""What watches the deployment: CloudWatch and EventBridge take what the template gives them."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from botocore.exceptions import ClientError

from mcp_tasks import metrics

from .account_checks import alarms_of
from .check import Check, NotTried, expect
from .deployed import Deployed

QUERY_SECONDS: Final = 60.0
ANSWERED: Final = json.dumps(
    {"message": "request answered", "method": "tasks/get", "status": 200, "duration_ms": 7}
)
"""A line that `api` logs for a request."""
BEYOND_64_BITS: Final = 10**30


def evaluate_alarms(deployed: Deployed) -> str:
    """The alarms that add several metrics up have a value, also when nothing happens. One without
    a value would stay silent in an outage.
    """
    stack = deployed.account()
    cloudwatch = stack.client("cloudwatch")
    alarms = [alarm for alarm in alarms_of(stack) if alarm.get("Metrics")]
    if not alarms:
        raise NotTried("no alarm has an expression")
    end = datetime.now(UTC)
    silent = []
    for alarm in alarms:
        answer = cloudwatch.get_metric_data(
            MetricDataQueries=alarm["Metrics"], StartTime=end - timedelta(hours=1), EndTime=end
        )
        if not any(result["Values"] for result in answer["MetricDataResults"]):
            silent.append(alarm["AlarmName"])
    expect(not silent, f"without a value in the last hour: {', '.join(silent)}")
    return f"{len(alarms)} expressions have values"


def read_own_metrics(deployed: Deployed) -> str:
    """The metrics that the functions write are in the stack's namespace.

    CloudWatch lists a new metric some minutes after its first value.
    """
    stack = deployed.account()
    listed = stack.client("cloudwatch").list_metrics(Namespace=stack.name)["Metrics"]
    names = {metric["MetricName"] for metric in listed}
    wanted = {metrics.TASKS_CREATED, metrics.TASKS_COMPLETED, metrics.DELIVERY_DELAY}
    if not names:
        raise NotTried("the namespace is empty; run it again in a quarter of an hour")
    expect(wanted <= names, f"the namespace lacks {', '.join(sorted(wanted - names))}")
    return f"{len(names)} metrics"


def match_metric_filters(deployed: Deployed) -> str:
    """The filter that reads the time of a request off its line takes such a line."""
    stack = deployed.account()
    logs = stack.client("logs")
    filters = []
    for group in stack.physical_ids("AWS::Logs::LogGroup", "ApiLogs"):
        filters += logs.describe_metric_filters(logGroupName=group)["metricFilters"]
    if not filters:
        raise NotTried("the log of `api` has no metric filter (alarms=off dashboard=off)")
    for found in filters:
        pattern = found["filterPattern"]
        matches = logs.test_metric_filter(filterPattern=pattern, logEventMessages=[ANSWERED])
        expect(matches["matches"], f"{found['filterName']} does not take a line of `api`")
    return f"{len(filters)} take a line"


def open_dashboard(deployed: Deployed) -> str:
    """The dashboard is there."""
    stack = deployed.account()
    names = stack.physical_ids("AWS::CloudWatch::Dashboard")
    if not names:
        raise NotTried("the stack has no dashboard (dashboard=off)")
    body = stack.client("cloudwatch").get_dashboard(DashboardName=names[0])["DashboardBody"]
    return f"{names[0]}: {len(json.loads(body)['widgets'])} widgets"


def run_saved_queries(deployed: Deployed) -> str:
    """CloudWatch Logs Insights takes each saved query, and runs it to its end."""
    stack = deployed.account()
    logs = stack.client("logs")
    definitions = logs.describe_query_definitions(queryDefinitionNamePrefix=f"{stack.name}/")
    queries = definitions["queryDefinitions"]
    if not queries:
        raise NotTried("the stack has no saved queries (dashboard=off)")
    now = int(time.time())
    for query in queries:
        begun = logs.start_query(
            logGroupNames=query["logGroupNames"],
            queryString=query["queryString"],
            startTime=now - 600,
            endTime=now,
        )
        status = _end_of(logs, begun["queryId"])
        expect(status == "Complete", f"{query['name']} is {status}")
    return f"{len(queries)} run"


def _end_of(logs: Any, query_id: str) -> str:
    deadline = time.monotonic() + QUERY_SECONDS
    while True:
        status = str(logs.get_query_results(queryId=query_id)["status"])
        if status not in ("Scheduled", "Running") or time.monotonic() > deadline:
            return status
        time.sleep(1)


def refuse_huge_integers(deployed: Deployed) -> str:
    """EventBridge refuses an integer beyond 64 bits, for good and in one of the two ways that
    `publish` knows. Nothing is put onto the bus.
    """
    stack = deployed.account()
    entry = {
        "EventBusName": stack.outputs["EventBus"],
        "Source": "verify",
        "DetailType": "verify",
        "Detail": json.dumps({"n": BEYOND_64_BITS}),
    }
    events = stack.client("events")
    try:
        (answer,) = events.put_events(Entries=[entry])["Entries"]
    except ClientError as error:
        code = error.response["Error"]["Code"]
        if code != "ValidationException":
            raise
    else:
        code = answer.get("ErrorCode", "")
    known = code in ("MalformedDetail", "ValidationException")
    expect(known, f"EventBridge answers {code or 'that it took it'}")
    return str(code)


CHECKS: Final = (
    Check("Alarms' expressions", evaluate_alarms, only_aws=True, of_stack=True),
    Check("Metrics of the functions", read_own_metrics, only_aws=True, of_stack=True),
    Check("Metric filters", match_metric_filters, only_aws=True, of_stack=True),
    Check("Dashboard", open_dashboard, only_aws=True, of_stack=True),
    Check("Saved queries", run_saved_queries, only_aws=True, of_stack=True),
    Check("Huge integers", refuse_huge_integers, only_aws=True, of_stack=True),
)
