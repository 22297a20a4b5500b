"""Alarms on the product, whom they notify, the dashboard, saved queries and the budget."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace
from typing import Any, Final

import pytest

from infra.figures import ANSWERED_AT_ONCE, COST, HEALTH
from infra.monitoring_settings import MonitoringSettings
from infra.saved_queries import QUERIES
from infra.settings import Settings
from infra.watched import Watched
from mcp_tasks import metrics
from tests.infra.assembly import Assembly
from tests.infra.conftest import EMAIL, IAM, TOPIC
from tests.paths import ROOT

ALARM, QUERY = "AWS::CloudWatch::Alarm", "AWS::Logs::QueryDefinition"
OPERATIONS: Final = (ROOT / "docs" / "operations.md").read_text()
LOST_OR_LATE: Final = {
    "Deliver/AgeOfOldestMessage",
    "Deliver/DeadLetterMessages",
    "Deliver/DeliveryDelay",
    "Finish/DeadLetterMessages",
    "Publish/DeadLetterMessages",
    "Publish/IteratorAge",
    "Sweep/DeadLetterMessages",
    "Sweep/NotInvoked",
    "Sweep/ReconcileDelay",
    "Tools/NonDeterminism",
    "Tools/NotUndone",
}
PRODUCT: Final = {
    f"Monitoring/Alarms/{name}"
    for name in (
        "AccountConcurrency",
        "AnswerTime",
        "Concurrency",
        "FunctionErrors",
        "FunctionThrottles",
        "ServerErrors",
        "TableErrors",
        "TablesThrottled",
        "TasksFailed",
        "WorkflowsThrottled",
    )
}
MAX_METRICS_OF_AN_ALARM: Final = 10
"""CloudWatch user guide, "Alarm data queries"."""
MAX_EXPRESSION: Final = 2048
"""Characters (CloudWatch API reference, "MetricDataQuery")."""
LONGEST_NAME: Final = "x" * 64
"""Of a function or a table, as CloudFormation makes them."""


def _alarm(assembly: Assembly, name: str) -> dict[str, Any]:
    return assembly.resources(ALARM)[f"Monitoring/Alarms/{name}"]


def _expression(alarm: dict[str, Any]) -> str:
    (found,) = [m["Expression"] for m in alarm["Metrics"] if m["ReturnData"]]
    return str(found)


def _metrics(alarm: dict[str, Any]) -> dict[str, tuple[str, str, str]]:
    """By their ids: the metric, its statistic, and the value of its dimension if it has one."""
    found = {}
    for each in alarm["Metrics"]:
        if "MetricStat" in each:
            metric = each["MetricStat"]["Metric"]
            values = [d["Value"] for d in metric.get("Dimensions", [])]
            name = f"{metric['Namespace']} {metric['MetricName']}"
            found[each["Id"]] = (name, each["MetricStat"]["Stat"], "/".join(values))
    return found


def test_these_are_the_alarms(
    on_aws: Assembly, with_own_key: Assembly, with_given_key: Assembly, traced: Assembly
) -> None:
    """A key of the stack's brings one more; `reserved=off` leaves one out; `alarms=off` keeps those
    of work that is lost or late."""
    events = {"Events/DeadLetterMessages"}
    assert set(on_aws.resources(ALARM)) == LOST_OR_LATE | PRODUCT
    assert set(with_own_key.resources(ALARM)) == LOST_OR_LATE | PRODUCT | events
    without = {"Monitoring/Alarms/Concurrency"}
    assert set(with_given_key.resources(ALARM)) == (LOST_OR_LATE | PRODUCT | events) - without
    assert set(traced.resources(ALARM)) == LOST_OR_LATE | events


def test_an_alarm_rings_for_no_data_only_when_data_is_certain(on_aws: Assembly) -> None:
    for path, alarm in on_aws.resources(ALARM).items():
        # No data is good news, except from a function that is called every minute.
        silence = "breaching" if path == "Sweep/NotInvoked" else "notBreaching"
        assert alarm["TreatMissingData"] == silence, path
        assert alarm["AlarmDescription"], path


def test_the_page_on_operations_has_a_line_for_every_alarm(
    with_own_key: Assembly, assemblies: dict[str, Assembly]
) -> None:
    """What happened, what one would notice, where to look and what to do; and no line too many."""
    rows = re.findall(r"^\| `(\w+/[\w/]+)` \| (.+) \|$", OPERATIONS, re.MULTILINE)
    names = [name for name, _ in rows]
    assert len(names) == len(set(names))
    alarms = {*with_own_key.resources(ALARM), *assemblies["rollout"].resources(ALARM)}
    assert set(names) == alarms
    for name, row in rows:
        cells = [cell.strip() for cell in row.split(" | ")]
        assert len(cells) == 4, name
        assert all(cells), name


def test_every_query_that_the_page_names_is_saved(open_server: Assembly) -> None:
    saved = {query["Name"] for query in open_server.resources(QUERY).values()}
    assert saved == {f"Open2/{query.name}" for query in QUERIES}
    named = set(re.findall(r"query `([a-z ]+)`", OPERATIONS))
    assert named
    assert named <= {query.name for query in QUERIES}
    unexplained = {query.name for query in QUERIES if f"`{query.name}`" not in OPERATIONS}
    assert unexplained == set()


def test_every_alarm_notifies_the_topic_when_it_rings_and_when_it_ends(
    on_aws: Assembly, with_given_key: Assembly, traced: Assembly
) -> None:
    for assembly, topic in (
        (on_aws, ["<Monitoring/Topic>"]),
        (with_given_key, [TOPIC]),
        (traced, None),
    ):
        for path, alarm in assembly.resources(ALARM).items():
            actions = ("AlarmActions", "OKActions", "InsufficientDataActions")
            assert [alarm.get(a) for a in actions] == [topic, topic, None], path


def test_a_topic_that_exists_takes_the_place_of_the_stack_s_own(
    with_given_key: Assembly, traced: Assembly
) -> None:
    for assembly in (with_given_key, traced):
        assert not assembly.resources("AWS::SNS::Topic")
        assert not assembly.resources("AWS::SNS::TopicPolicy")
    outputs = with_given_key.template["Outputs"]
    assert outputs["AlarmTopic"]["Value"] == TOPIC
    assert "AlarmTopic" not in traced.template["Outputs"]


def test_alarms_and_budgets_of_the_account_may_publish_and_nobody_else(on_aws: Assembly) -> None:
    ((_, policy),) = on_aws.resources("AWS::SNS::TopicPolicy").items()
    tls, alarms, budgets = policy["PolicyDocument"]["Statement"]
    assert (tls["Effect"], tls["Condition"]) == ("Deny", {"Bool": {"aws:SecureTransport": "false"}})
    for statement, service, source in (
        (alarms, "cloudwatch", "cloudwatch:<AWS::Region>:<AWS::AccountId>:alarm:*"),
        (budgets, "budgets", "budgets::<AWS::AccountId>:*"),
    ):
        assert statement == {
            "Sid": statement["Sid"],
            "Effect": "Allow",
            "Principal": {"Service": f"{service}.amazonaws.com"},
            "Action": "sns:Publish",
            "Resource": "<Monitoring/Topic>",
            "Condition": {
                "StringEquals": {"aws:SourceAccount": "<AWS::AccountId>"},
                "ArnLike": {"aws:SourceArn": f"arn:<AWS::Partition>:{source}"},
            },
        }


def test_without_a_key_of_the_stack_the_topic_has_none(on_aws: Assembly) -> None:
    """CloudWatch may not use `alias/aws/sns`: alarms would ring, and nobody would hear."""
    ((_, topic),) = on_aws.resources("AWS::SNS::Topic").items()
    assert "KmsMasterKeyId" not in topic


def test_an_e_mail_address_is_subscribed(with_own_key: Assembly, on_aws: Assembly) -> None:
    ((_, subscription),) = with_own_key.resources("AWS::SNS::Subscription").items()
    assert subscription == {
        "Protocol": "email",
        "Endpoint": EMAIL,
        "TopicArn": "<Monitoring/Topic>",
    }
    assert not on_aws.resources("AWS::SNS::Subscription")


def test_an_alarm_computes_with_what_it_has_and_with_no_more_than_it_may(
    with_own_key: Assembly,
) -> None:
    """In the stack with the most functions. An expression that names a metric which is not there
    would be refused by CloudFormation."""
    for path, alarm in with_own_key.resources(ALARM).items():
        if "Metrics" not in alarm:
            continue
        found, expression = _metrics(alarm), _expression(alarm)
        assert len(found) <= MAX_METRICS_OF_AN_ALARM, path
        if expression.startswith("SELECT "):
            assert found == {}
        else:
            words = set(re.findall(r"\b[a-z][a-z0-9_]*\b", expression))
            assert words == set(found), path
        assert len(re.sub(r"<[^>]*>", LONGEST_NAME, expression)) <= MAX_EXPRESSION, path


def test_server_errors_ring_when_they_are_many_and_more_than_a_few(
    on_aws: Assembly, with_own_key: Assembly
) -> None:
    """One of the three requests of a quiet hour is no alarm, and neither are five of a thousand."""
    alarm = _alarm(on_aws, "ServerErrors")
    assert _metrics(alarm) == {
        "f0": ("AWS/ApiGateway 5XXError", "Sum", "mcp-tasks"),
        "r0": ("AWS/ApiGateway Count", "SampleCount", "mcp-tasks"),
    }
    assert _expression(alarm) == ("IF((FILL(f0, 0)) >= 5, 100 * (FILL(f0, 0)) / (FILL(r0, 0)), 0)")
    assert (alarm["Threshold"], alarm["EvaluationPeriods"]) == (1, 1)
    both = {value[2] for value in _metrics(_alarm(with_own_key, "ServerErrors")).values()}
    assert both == {"mcp-tasks", "mcp-tasks-subscriptions"}


def test_a_refused_token_is_no_error_of_a_function(with_own_key: Assembly) -> None:
    """The authorizer has to raise for a 401. API Gateway counts it as 4XX, and what the authorizer
    really fails at as 5XX."""
    errors = {value[2] for value in _metrics(_alarm(with_own_key, "FunctionErrors")).values()}
    throttles = {v[2] for v in _metrics(_alarm(with_own_key, "FunctionThrottles")).values()}
    assert throttles - errors == {"<Authorizer/Function>"}
    assert not {name for name in throttles if "Worker" in name}
    own = {
        f"<{path}>"
        for path in with_own_key.resources("AWS::Lambda::Function")
        if not path.startswith("Tools/")
    }
    assert throttles == own


def test_functions_are_compared_with_what_is_reserved_for_them(on_aws: Assembly) -> None:
    alarm = _alarm(on_aws, "Concurrency")
    functions = on_aws.resources("AWS::Lambda::Function")
    reserved = {
        f"<{path}>": function["ReservedConcurrentExecutions"]
        for path, function in functions.items()
        if "ReservedConcurrentExecutions" in function
    }
    found = {}
    for name, share in re.findall(r"100 \* FILL\((m\d+), 0\) / (\d+)", _expression(alarm)):
        found[_metrics(alarm)[name][2]] = int(share)
    assert found == reserved
    assert alarm["EvaluationPeriods"] == 5


def test_tasks_that_fail_are_compared_with_those_that_end(on_aws: Assembly) -> None:
    alarm = _alarm(on_aws, "TasksFailed")
    assert _metrics(alarm) == {
        "failed": ("mcp-tasks TasksFailed", "Sum", metrics.SERVICE),
        "completed": ("mcp-tasks TasksCompleted", "Sum", metrics.SERVICE),
    }
    variables = on_aws.resources("AWS::Lambda::Function")["Publish/Function"]["Environment"]
    assert variables["Variables"]["POWERTOOLS_METRICS_NAMESPACE"] == "mcp-tasks"


def test_metrics_insights_is_asked_in_words_that_it_documents(on_aws: Assembly) -> None:
    """Its WHERE has no IN, and CloudFormation would fail in the middle of a deployment."""
    for name, metric in (("TablesThrottled", "ThrottledRequests"), ("TableErrors", "SystemErrors")):
        expression = _expression(_alarm(on_aws, name))
        schema = 'SCHEMA("AWS/DynamoDB", Operation, TableName)'
        assert expression == f"SELECT SUM({metric}) FROM {schema}"


@pytest.mark.parametrize("name", ["aws", "streaming", "domain", "own key"])
def test_no_alarm_has_more_metrics_than_cloudwatch_takes(
    assemblies: dict[str, Assembly], name: str
) -> None:
    """CloudWatch user guide, "CloudWatch service quotas": ten in a math expression."""
    for path, alarm in assemblies[name].resources("AWS::CloudWatch::Alarm").items():
        queries = alarm.get("Metrics", [])
        assert len([query for query in queries if "MetricStat" in query]) <= 10, path


def test_the_answer_time_is_read_off_the_lines_of_requests(on_aws: Assembly) -> None:
    """The line's members are those that `api` logs (tests/unit/handlers/test_streaming.py), and the
    methods are the server's (tests/unit/server/revisions/test_revisions.py)."""
    ((_, metric_filter),) = on_aws.resources("AWS::Logs::MetricFilter").items()
    assert metric_filter["LogGroupName"] == "<Api/Logs>"
    pattern = metric_filter["FilterPattern"]
    assert re.findall(r'\$\.method = "([^"]*)"', pattern) == list(ANSWERED_AT_ONCE)
    (transformation,) = metric_filter["MetricTransformations"]
    assert transformation["MetricValue"] == "$.duration_ms"
    alarm = _alarm(on_aws, "AnswerTime")
    assert alarm["MetricName"] == transformation["MetricName"] == metrics.ANSWER_TIME
    assert alarm["Namespace"] == transformation["MetricNamespace"] == "mcp-tasks"
    assert alarm["ExtendedStatistic"] == "p95"
    assert alarm["EvaluateLowSampleCountPercentile"] == "ignore"


def _widgets(assembly: Assembly) -> list[dict[str, Any]]:
    ((_, dashboard),) = assembly.resources("AWS::CloudWatch::Dashboard").items()
    body = re.sub(r"<([^>]*)>", r"{\1}", dashboard["DashboardBody"])
    widgets: list[dict[str, Any]] = json.loads(body)["widgets"]
    return widgets


def test_the_dashboard_draws_every_figure(with_own_key: Assembly, on_aws: Assembly) -> None:
    titles = {figure.title for figure in (*HEALTH, *COST)}
    drawn = {w["properties"].get("title") for w in _widgets(with_own_key)} - {None, "Alarms"}
    assert drawn == titles
    by_tool = {figure.title for figure in HEALTH if figure.only_by_tool}
    assert by_tool
    drawn = {w["properties"].get("title") for w in _widgets(on_aws)} - {None, "Alarms"}
    assert drawn == titles - by_tool


def test_the_dashboard_shows_every_alarm(on_aws: Assembly) -> None:
    (alarms,) = [w for w in _widgets(on_aws) if w["type"] == "alarm"]
    shown = {arn.strip("{}").removesuffix(".Arn") for arn in alarms["properties"]["alarms"]}
    assert shown == set(on_aws.resources(ALARM))


def test_a_function_s_seconds_are_weighed_with_its_own_memory(on_aws: Assembly) -> None:
    (widget,) = [
        w for w in _widgets(on_aws) if w["properties"].get("title") == "GB-seconds of functions"
    ]
    lines = widget["properties"]["metrics"]
    weights = {
        line[0]["label"]: float(line[0]["expression"].split(" * ")[1])
        for line in lines
        if isinstance(line[0], dict)
    }
    functions = on_aws.resources("AWS::Lambda::Function")
    assert weights.keys() == {
        re.sub("^Tools/|/Worker$", "", path.removesuffix("/Function")) for path in functions
    }
    memory = functions["Finish/Function"]["MemorySize"]
    assert weights["Finish"] == pytest.approx(memory / 1024 / 1000, rel=0.01)


def test_there_is_no_dashboard_where_none_is_wanted(no_tasks: Assembly) -> None:
    assert not no_tasks.resources("AWS::CloudWatch::Dashboard")
    assert no_tasks.resources(QUERY)


def test_a_query_reads_the_logs_that_it_is_about(open_server: Assembly, on_aws: Assembly) -> None:
    queries = {q["Name"].split("/")[1]: q for q in open_server.resources(QUERY).values()}
    groups = set(open_server.resources("AWS::Logs::LogGroup"))
    read = {name: {g.strip("<>") for g in q["LogGroupNames"]} for name, q in queries.items()}
    # No function logs into these: the one has no task, and the other has messages.
    assert read["one task"] == groups - {"Api/Gateway/AccessLog", "Tracebacks/Logs"}
    assert read["slow calls"] == {"Api/Logs"}
    assert read["tasks by tool and state"] == {"Publish/Logs"}
    assert read["integration errors"] == {"Api/Gateway/AccessLog"}
    assert "mcp-tasks/integration errors" not in {
        q["Name"] for q in on_aws.resources(QUERY).values()
    }, "it has no log without access_log=on"


def test_a_query_names_no_more_log_groups_than_one_may_read() -> None:
    """CloudWatch Logs API reference, "StartQuery": fifty. The stack's own are among them."""
    names = [*(f"Tools/t{number}/Worker" for number in range(60)), "Api", "Finish"]
    groups: Any = {name: SimpleNamespace(log_group_name=name) for name in names}
    read = Watched({}, groups, {}, {}, {}, groups).logs_of()
    assert len(read) == 50
    assert read[:3] == ["Api", "Finish", "Tools/t0/Worker"]


def test_an_access_log_s_query_asks_for_its_fields(open_server: Assembly) -> None:
    (stage,) = open_server.resources("AWS::ApiGateway::Stage").values()
    fields = set(json.loads(stage["AccessLogSetting"]["Format"]))
    (query,) = [query for query in QUERIES if query.logs == "access"]
    (asked,) = re.findall(r"fields (.*?)\n\|", query.text, re.DOTALL)
    assert set(re.split(r",\s*", asked)) - {"@timestamp"} <= fields


def test_a_budget_is_for_the_month_and_for_the_day(with_own_key: Assembly) -> None:
    budgets = {
        b["Budget"]["TimeUnit"]: b for b in with_own_key.resources("AWS::Budgets::Budget").values()
    }
    amounts = {unit: b["Budget"]["BudgetLimit"]["Amount"] for unit, b in budgets.items()}
    assert amounts == {"MONTHLY": 200, "DAILY": 20}
    for budget in budgets.values():
        assert budget["Budget"]["CostFilters"] == {"TagKeyValue": ["user:mcp-cell$c1"]}
        for each in budget["NotificationsWithSubscribers"]:
            (subscriber,) = each["Subscribers"]
            assert subscriber == {"Address": "<Monitoring/Topic>", "SubscriptionType": "SNS"}
    resources = with_own_key.template["Resources"]
    policies = {name for name, r in resources.items() if r["Type"] == "AWS::SNS::TopicPolicy"}
    for resource in resources.values():
        if resource["Type"] == "AWS::Budgets::Budget":
            assert policies & set(resource["DependsOn"]), "its first message is let in"
    kinds = {
        unit: [n["Notification"]["NotificationType"] for n in b["NotificationsWithSubscribers"]]
        for unit, b in budgets.items()
    }
    assert kinds == {"MONTHLY": ["FORECASTED", "ACTUAL"], "DAILY": ["ACTUAL"]}


def test_there_is_no_budget_unless_one_is_given(on_aws: Assembly) -> None:
    assert not on_aws.resources("AWS::Budgets::Budget")


def test_a_budget_that_nobody_would_hear_of_is_refused() -> None:
    context = {**IAM, "budget": "10", "alarms": "off"}
    with pytest.raises(ValueError, match=r"^-c budget=10: .* alarms=off has none"):
        Settings.from_context(context.get, ROOT)


def test_by_default_there_is_a_topic_and_a_dashboard_and_nothing_else() -> None:
    assert Settings.from_context(IAM.get, ROOT).monitoring == MonitoringSettings(
        alarms="topic",
        budget=None,
        dashboard=True,
        tool_metrics=False,
        tracing=False,
        execution_log=False,
    )
