"""Whether alarms are heard, and whether budgets count: what is found wrong in an account."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from operations.verify.alarm_checks import CHECKS, RING_SECONDS
from operations.verify.check import Outcome, outcome_of
from tests.unit.operations.verify.account import Account
from tests.unit.operations.verify.conftest import Waited

HEARD, RINGS, BUDGETS = CHECKS
TOPIC = "arn:aws:sns:eu-west-1:111122223333:notes-topic"
ALARM = "physical-FinishAlarm"
OUTPUTS = Account().answers["describe_stacks"]["Stacks"][0]["Outputs"]
WITH_TOPIC = [*OUTPUTS, {"OutputKey": "AlarmTopic", "OutputValue": TOPIC}]
FILTERS = {"TagKeyValue": ["user:mcp-cell$c1"]}
BUDGET = ("AWS::Budgets::Budget", "MonitoringBudgetMonth", "notes-budget-1")


def subscribed(*arns: str) -> dict[str, Any]:
    return {"Subscriptions": [{"SubscriptionArn": arn, "Protocol": "email"} for arn in arns]}


def budget(amount: str = "200.0", filters: Any = FILTERS) -> dict[str, Any]:
    limit = {"Amount": amount, "Unit": "USD"}
    found = {"BudgetName": BUDGET[2], "BudgetLimit": limit, "CostFilters": filters}
    return {"Budget": found | {"TimeUnit": "MONTHLY", "BudgetType": "COST"}}


def tags(*active: str) -> Any:
    """An account whose tags are active or not; both are listed where nobody asks for the active."""

    def listed(asked: dict[str, Any]) -> dict[str, Any]:
        statuses = [asked["Status"]] if "Status" in asked else ["Active", "Inactive"]
        found = {tag: "Active" if tag in active else "Inactive" for tag in asked["TagKeys"]}
        kept = {tag: status for tag, status in found.items() if status in statuses}
        return {
            "CostAllocationTags": [
                {"TagKey": tag, "Type": "UserDefined", "Status": status}
                for tag, status in kept.items()
            ]
        }

    return listed


def template() -> dict[str, Any]:
    wanted = {"BudgetLimit": {"Amount": 200, "Unit": "USD"}, "CostFilters": FILTERS}
    resource = {"Type": BUDGET[0], "Properties": {"Budget": wanted}}
    return {"TemplateBody": {"Resources": {BUDGET[1]: resource}}}


def acted(said: str) -> dict[str, Any]:
    """A history of actions, the newest first."""
    item = {"AlarmName": ALARM, "HistoryItemType": "Action", "HistorySummary": said}
    return {"AlarmHistoryItems": [item | {"Timestamp": datetime(2026, 11, 24, tzinfo=UTC)}]}


ASKED, _ = Account().answers["describe_alarms"]["MetricAlarms"]
GOOD: dict[str, Any] = {
    "describe_alarms": {"MetricAlarms": [ASKED]},
    "describe_stacks": {"Stacks": [{"Outputs": WITH_TOPIC}]},
    "list_subscriptions_by_topic": subscribed(f"{TOPIC}:1234", "PendingConfirmation"),
    "set_alarm_state": {},
    "describe_alarm_history": acted(f"Successfully executed action {TOPIC}"),
    "get_template": template(),
    "describe_budget": budget(),
    "list_cost_allocation_tags": tags("mcp-cell"),
}


def account(**wrong: Any) -> Account:
    return Account(BUDGET, **GOOD | wrong)


def seen(check: Any, *, ring: bool = True, **wrong: Any) -> Outcome:
    deployed = account(**wrong).deployed()
    deployed.ring = ring
    return outcome_of(check, deployed)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.title)
def test_what_is_as_it_should_be_passes(check: Any) -> None:
    outcome = seen(check)
    assert (outcome.verdict, outcome.seen != "") == ("passed", True), outcome


@pytest.mark.parametrize("arns", [(), ("PendingConfirmation",), ("Deleted",)])
def test_alarms_that_nobody_hears_are_found(arns: tuple[str, ...]) -> None:
    outcome = seen(HEARD, list_subscriptions_by_topic=subscribed(*arns))
    assert outcome.verdict == "FAILED"
    assert outcome.seen.startswith(f"nobody hears the alarms: of {len(arns)} subscriptions")
    assert f"aws sns subscribe --topic-arn {TOPIC}" in outcome.seen


@pytest.mark.parametrize("check", [HEARD, RINGS])
def test_without_a_topic_nobody_could_hear(check: Any) -> None:
    outcome = seen(check, describe_stacks={"Stacks": [{"Outputs": OUTPUTS}]})
    assert outcome.verdict == "not tried"
    assert "alarms=off" in outcome.seen


def states(made: Account) -> list[str]:
    """Which states the alarm was set to."""
    return [words["StateValue"] for name, words in made.asked if name == "set_alarm_state"]


def test_nobody_is_woken_without_being_asked() -> None:
    made = account()
    outcome = outcome_of(RINGS, made.deployed())
    assert (outcome.verdict, states(made)) == ("not tried", [])
    assert "ring=yes" in outcome.seen


def test_an_alarm_rings_and_is_set_back() -> None:
    made = account()
    deployed = made.deployed()
    deployed.ring = True
    assert outcome_of(RINGS, deployed).verdict == "passed"
    assert states(made) == ["ALARM", "OK"]
    (asked,) = [words for name, words in made.asked if name == "describe_alarm_history"]
    assert (asked["AlarmName"], asked["HistoryItemType"]) == (ALARM, "Action")


@pytest.mark.parametrize(
    ("history", "said"),
    [
        (acted(f"Failed to execute action {TOPIC}. Received error: KMS"), "Received error: KMS"),
        (acted("Successfully executed action arn:aws:sns:other"), "notified nothing within 60 s"),
        ({"AlarmHistoryItems": []}, "notified nothing within 60 s"),
        ("InternalServiceFault", "describe_alarm_history: InternalServiceFault"),
    ],
)
def test_an_alarm_that_notifies_nobody_is_found_and_set_back(
    waited: Waited, history: Any, said: str
) -> None:
    made = account(describe_alarm_history=history)
    deployed = made.deployed()
    deployed.ring = True
    outcome = outcome_of(RINGS, deployed)
    assert outcome.verdict == "FAILED"
    assert said in outcome.seen
    assert states(made) == ["ALARM", "OK"]
    assert waited.seconds <= RING_SECONDS


def test_an_alarm_that_rings_already_is_left_alone() -> None:
    ringing = {"MetricAlarms": [ASKED | {"StateValue": "ALARM"}]}
    made = account(describe_alarms=ringing)
    deployed = made.deployed()
    deployed.ring = True
    assert outcome_of(RINGS, deployed).verdict == "not tried"
    assert states(made) == []


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"describe_budget": budget("100.0")}, "is of $100.0, and budget= asks $200"),
        ({"describe_budget": budget(filters={})}, "filters by {}"),
        ({"describe_budget": "NotFoundException"}, "describe_budget: NotFoundException"),
        (
            {"list_cost_allocation_tags": tags()},
            "the tag mcp-cell is no active cost allocation tag",
        ),
        ({"list_cost_allocation_tags": tags()}, "TagKey=mcp-cell,Status=Active"),
    ],
)
def test_a_budget_that_counts_nothing_is_found(wrong: dict[str, Any], said: str) -> None:
    outcome = seen(BUDGETS, **wrong)
    assert outcome.verdict == "FAILED"
    assert said in outcome.seen


def test_an_account_that_does_not_pay_cannot_say_what_is_active() -> None:
    """ "Linked account doesn't have access to cost allocation tags": AccessDeniedException."""
    outcome = seen(BUDGETS, list_cost_allocation_tags="AccessDeniedException")
    assert outcome.verdict == "not tried"
    assert "the account that pays may" in outcome.seen


def test_a_stack_without_a_budget_has_none_to_see() -> None:
    outcome = outcome_of(BUDGETS, Account(**GOOD).deployed())
    assert (outcome.verdict, outcome.seen) == ("not tried", "the stack has no budget (budget=)")
