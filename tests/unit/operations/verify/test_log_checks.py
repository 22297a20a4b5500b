"""What an account logs of executions and of exceptions' messages, and what is found wrong."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_tasks.environment import TRACEBACK_LOG_GROUP
from operations.verify.check import Outcome, outcome_of
from operations.verify.log_checks import CHECKS
from tests.unit.operations.verify.account import MACHINE, Account

EXECUTIONS, MESSAGES = CHECKS
LOG = "/aws/vendedlogs/states/notes"
ARN = f"arn:aws:logs:eu-west-1:111122223333:log-group:{LOG}:*"
TRACEBACKS = "notes-TracebacksLogs1A-x"
KEY = "1234abcd-12ab-34cd-56ef-1234567890ab"
KEY_ARN = f"arn:aws:kms:eu-west-1:111122223333:key/{KEY}"
EXECUTION_GROUP = ("AWS::Logs::LogGroup", "ExecutionsLogs1A", LOG)
MESSAGE_GROUP = ("AWS::Logs::LogGroup", "TracebacksLogs1A", TRACEBACKS)
MESSAGE_KEY = ("AWS::KMS::Key", "TracebacksKey1A", KEY)


def logging(level: str = "ERROR", *, data: bool = False, to: str = ARN) -> dict[str, Any]:
    """A state machine that logs so."""
    place = {"cloudWatchLogsLogGroup": {"logGroupArn": to}}
    chosen = {"level": level, "includeExecutionData": data, "destinations": [place]}
    return {"name": "notes-fill", "stateMachineArn": MACHINE, "loggingConfiguration": chosen}


def groups(*named: str, days: int | None = 7, key: str | None = KEY_ARN) -> dict[str, Any]:
    group: dict[str, Any] = {} if days is None else {"retentionInDays": days}
    group |= {} if key is None else {"kmsKeyId": key}
    return {"logGroups": [{"logGroupName": name} | group for name in named]}


def writing(group: str | None) -> dict[str, Any]:
    """The configuration of `api`, which writes tracebacks to a group."""
    variables = {"AUTH": "iam"} | ({TRACEBACK_LOG_GROUP: group} if group else {})
    return {"Environment": {"Variables": variables}}


GROUP_RESOURCE = {"Type": MESSAGE_GROUP[0], "Properties": {"RetentionInDays": 7}}
GOOD: dict[str, Any] = {
    "describe_state_machine": logging(),
    "get_template": {"TemplateBody": {"Resources": {MESSAGE_GROUP[1]: GROUP_RESOURCE}}},
    "get_function_configuration": writing(TRACEBACKS),
    "describe_log_groups": groups(TRACEBACKS),
}


def seen(check: Any, **wrong: Any) -> Outcome:
    account = Account(EXECUTION_GROUP, MESSAGE_GROUP, MESSAGE_KEY, **GOOD | wrong)
    return outcome_of(check, account.deployed())


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({}, ""),
        ({"describe_state_machine": logging("ALL")}, "notes-fill logs at ALL, not ERROR"),
        ({"describe_state_machine": {"name": "notes-fill"}}, "notes-fill logs at OFF, not ERROR"),
        (
            {"describe_state_machine": logging(data=True)},
            "notes-fill logs what executions take and give",
        ),
        (
            {"describe_state_machine": logging(to=ARN.replace("notes", "notes-2"))},
            f"logs to {ARN.replace('notes', 'notes-2')}, not to {LOG}",
        ),
    ],
)
def test_executions_are_logged_at_error_without_data(wrong: dict[str, Any], said: str) -> None:
    outcome = seen(EXECUTIONS, **wrong)
    assert outcome.verdict == ("FAILED" if said else "passed"), outcome
    assert said in outcome.seen


def test_a_log_of_executions_has_the_name_that_costs_no_policy() -> None:
    elsewhere = Account(("AWS::Logs::LogGroup", "ExecutionsLogs1A", "notes-Executions"), **GOOD)
    outcome = outcome_of(EXECUTIONS, elsewhere.deployed())
    assert (outcome.verdict, outcome.seen) == (
        "FAILED",
        "notes-Executions is not under /aws/vendedlogs/states/",
    )


def test_a_stack_that_logs_no_executions_says_so() -> None:
    outcome = outcome_of(EXECUTIONS, Account(**GOOD).deployed())
    assert (outcome.verdict, "execution_log=off" in outcome.seen) == ("not tried", True)


def test_definitions_are_not_read_which_would_need_the_key() -> None:
    account = Account(EXECUTION_GROUP, **GOOD)
    outcome_of(EXECUTIONS, account.deployed())
    (asked,) = [words for name, words in account.asked if name == "describe_state_machine"]
    assert asked == {"stateMachineArn": MACHINE, "includedData": "METADATA_ONLY"}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({}, ""),
        ({"describe_log_groups": groups(TRACEBACKS, days=30)}, "for 30 of 7 days"),
        ({"describe_log_groups": groups(TRACEBACKS, days=None)}, "for ever, not of 7 days"),
        ({"describe_log_groups": groups(TRACEBACKS, key=None)}, "with no key, not with its own"),
        (
            {"describe_log_groups": groups(TRACEBACKS, key=f"{KEY_ARN[:-1]}c")},
            f"with {KEY_ARN[:-1]}c, not with its own",
        ),
        ({"describe_log_groups": groups()}, "for ever, not of 7 days"),
        ({"get_function_configuration": writing("other")}, "tracebacks to other, not to notes"),
    ],
)
def test_messages_are_kept_for_their_time_with_their_key(wrong: dict[str, Any], said: str) -> None:
    outcome = seen(MESSAGES, **wrong)
    assert outcome.verdict == ("FAILED" if said else "passed"), outcome
    assert said in outcome.seen


@pytest.mark.parametrize(
    ("found", "variable", "said"),
    [
        (groups(), None, ""),
        (groups(TRACEBACKS), None, f"{TRACEBACKS} of an earlier deployment holds messages"),
        (groups(), "gone", "the functions write tracebacks to gone"),
    ],
)
def test_without_the_option_no_message_is_kept(found: Any, variable: Any, said: str) -> None:
    answers = GOOD | {
        "describe_log_groups": found,
        "get_function_configuration": writing(variable),
    }
    outcome = outcome_of(MESSAGES, Account(**answers).deployed())
    assert outcome.verdict == ("FAILED" if said else "passed"), outcome
    assert said in outcome.seen
