"""What is read of an account, and what is found wrong in it."""

from __future__ import annotations

from typing import Any

import pytest

from operations.verify import account_checks, monitoring_checks, permission_checks
from operations.verify.check import Check, outcome_of
from operations.verify.deployed import Deployed
from operations.verify.endpoint import Endpoint
from tests.unit.operations.verify.account import Account

CHECKS = {
    check.title: check
    for check in (
        *account_checks.CHECKS,
        *monitoring_checks.CHECKS,
        *permission_checks.CHECKS,
    )
}


@pytest.mark.parametrize("check", CHECKS.values(), ids=lambda check: check.title)
def test_an_account_as_the_template_asks_for_passes(check: Check) -> None:
    outcome = outcome_of(check, Account().deployed())
    assert (outcome.verdict, outcome.seen != "") == ("passed", True), outcome


def _alarm(**changes: Any) -> dict[str, Any]:
    alarm, other = Account().answers["describe_alarms"]["MetricAlarms"]
    return {"MetricAlarms": [alarm | changes, other]}


def _group(**group: Any) -> dict[str, Any]:
    return {"logGroups": [{"logGroupName": "physical-ApiLogs", **group}]}


@pytest.mark.parametrize(
    ("title", "wrong", "seen"),
    [
        ("Alarms", {"describe_alarms": {"MetricAlarms": []}}, "does not know physical-FinishAlarm"),
        ("Alarms", {"describe_alarms": _alarm(StateValue="ALARM")}, "ringing: physical-Finish"),
        ("The sweeper's schedule", {"get_schedule": {"State": "DISABLED"}}, "is DISABLED"),
        (
            "The sweeper's schedule",
            {"get_metric_statistics": {"Datapoints": []}},
            "was not called in the last 5 minutes",
        ),
        (
            "Event sources",
            {"get_event_source_mapping": {"State": "Disabled", "EventSourceArn": "arn:s"}},
            "arn:s is Disabled",
        ),
        (
            "State machines",
            {"describe_state_machine": {"name": "m", "type": "EXPRESS", "status": "ACTIVE"}},
            "m is EXPRESS",
        ),
        (
            "State machines",
            {"describe_state_machine": {"name": "m", "type": "STANDARD", "status": "DELETING"}},
            "m is STANDARD, DELETING",
        ),
        (
            "Tables",
            {"describe_time_to_live": {"TimeToLiveDescription": {"TimeToLiveStatus": "DISABLED"}}},
            "expiry of physical-TasksTable is DISABLED",
        ),
        (
            "Payloads bucket",
            {
                "get_public_access_block": {
                    "PublicAccessBlockConfiguration": {"BlockPublicAcls": False}
                }
            },
            "notes-payloads may be public",
        ),
        (
            "Payloads bucket",
            {"get_bucket_lifecycle_configuration": {"Rules": []}},
            "expires nothing",
        ),
        ("Log groups", {"describe_log_groups": _group()}, "is kept for ever"),
        (
            "Log groups",
            {"describe_log_groups": {"logGroups": []}},
            "log group of the stack is missi",
        ),
        (
            "Alarms' expressions",
            {"get_metric_data": {"MetricDataResults": [{"Values": []}]}},
            "without a value in the last hour: physical-MathAlarm",
        ),
        (
            "Metrics of the functions",
            {"list_metrics": {"Metrics": [{"MetricName": "TasksCreated"}]}},
            "the namespace lacks DeliveryDelay, TasksCompleted",
        ),
        (
            "Metric filters",
            {"test_metric_filter": {"matches": []}},
            "AnswerTime does not take a line of `api`",
        ),
        ("Saved queries", {"get_query_results": {"status": "Failed"}}, "notes/one task is Failed"),
        ("Huge integers", {"put_events": {"Entries": [{"EventId": "1"}]}}, "that it took it"),
        ("Huge integers", {"put_events": "InternalException"}, "put_events: InternalException"),
        (
            "Denied calls (IAM)",
            {
                "simulate_principal_policy": lambda asked: {
                    "EvaluationResults": [
                        {"EvalActionName": action, "EvalDecision": "allowed"}
                        for action in asked["ActionNames"]
                        if action == "iam:PassRole"
                    ]
                }
            },
            "allowed: physical-ApiRole1A: iam:PassRole, physical-ToolsRole1A: iam:PassRole",
        ),
    ],
)
def test_what_is_wrong_is_found(title: str, wrong: dict[str, Any], seen: str) -> None:
    outcome = outcome_of(CHECKS[title], Account(**wrong).deployed())
    assert outcome.verdict == "FAILED", outcome
    assert seen in outcome.seen


def test_an_alarm_that_tells_nobody_is_counted() -> None:
    outcome = outcome_of(
        CHECKS["Alarms"], Account(describe_alarms=_alarm(AlarmActions=[])).deployed()
    )
    assert (outcome.verdict, outcome.seen) == (
        "passed",
        "2 alarms, none rings; 1 notify nobody (alarms=)",
    )


def test_a_metric_that_nobody_has_written_is_named() -> None:
    outcome = outcome_of(
        CHECKS["Alarms' metrics"], Account(list_metrics={"Metrics": []}).deployed()
    )
    assert outcome.seen == "without data so far: physical-FinishAlarm"


@pytest.mark.parametrize("check", CHECKS.values(), ids=lambda check: check.title)
def test_what_the_credentials_may_not_read_is_not_tried(check: Check) -> None:
    """Nothing is said about the deployment, and the report names the call that was denied."""
    account = Account()
    account.answers = {
        name: answer if name == "describe_stacks" else "AccessDeniedException"
        for name, answer in account.answers.items()
    }
    outcome = outcome_of(check, account.deployed())
    assert outcome.verdict == "not tried"
    assert outcome.seen.startswith("your credentials may not call ")


@pytest.mark.parametrize("check", CHECKS.values(), ids=lambda check: check.title)
def test_an_endpoint_alone_says_nothing_of_its_account(check: Check) -> None:
    outcome = outcome_of(check, Deployed(Endpoint("https://x.example/mcp"), False, None))
    assert outcome.verdict == "not tried"
    assert "stack=" in outcome.seen


def test_roles_are_asked_about_the_stacks_own_table() -> None:
    account = Account()
    outcome_of(CHECKS["Denied calls (IAM)"], account.deployed())
    asked = [words for name, words in account.asked if name == "simulate_principal_policy"]
    assert {
        "PolicySourceArn": "arn:aws:iam::111122223333:role/physical-AuthorizerRole1A",
        "ActionNames": ["dynamodb:GetItem", "dynamodb:Query"],
        "ResourceArns": ["arn:aws:dynamodb:eu-west-1:111122223333:table/notes-tasks"],
    } in asked
