"""State machines that tools wrap: where they are, how many there are, what their keys need."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from aws_cdk import App, CfnResource, Stack

from infra.stack_size import MAX_RESOURCES, check_size
from infra.tool_discovery import discover
from infra.wrapped_state_machines import METADATA, Wrapped, WrappedStateMachines
from tests.infra.assembly import Assembly, state_machine
from tests.infra.fork import LEGACY_ARN, MANY_WRAPPED, WRAPPED_ARNS, WRAPPED_KEY

MAX_PATTERN: Final = 2_048
"""EventBridge user guide, "Amazon EventBridge quotas"."""
LONGEST: Final = {"AWS::Partition": "aws-us-gov", "AWS::Region": "ap-southeast-1"}
CONTEXT: Final = "kms:EncryptionContext:aws:states:stateMachineArn"
ACCOUNT, REGION = "111122223333", "eu-central-1"


def _rules(assembly: Assembly) -> list[dict[str, Any]]:
    rules = assembly.resources("AWS::Events::Rule")
    return [rule for path, rule in rules.items() if path.startswith("Finish/ExecutionEnded")]


def test_the_end_of_each_of_many_state_machines_is_heard_once(many_wrapped: Assembly) -> None:
    matchers = [each["EventPattern"]["detail"]["stateMachineArn"] for each in _rules(many_wrapped)]
    assert len(matchers) > 1
    assert [arn for rule in matchers for arn in rule] == [
        {"prefix": state_machine(f"{many_wrapped.stack}-")},
        *WRAPPED_ARNS,
    ]


def test_no_rule_has_a_longer_pattern_than_eventbridge_takes(many_wrapped: Assembly) -> None:
    for rule in _rules(many_wrapped):
        text = json.dumps(rule["EventPattern"], separators=(",", ":"))
        for name, value in LONGEST.items():
            text = text.replace(f"<{name}>", value)
        assert len(many_wrapped.stack) == 28, "the longest name that stack= takes"
        assert len(text) <= MAX_PATTERN


def test_each_rule_may_call_the_function_and_keeps_what_it_cannot_deliver(
    many_wrapped: Assembly,
) -> None:
    rules = _rules(many_wrapped)
    for rule in rules:
        (target,) = rule["Targets"]
        assert target["Arn"] == "<Finish/Function.Arn>"
        assert target["DeadLetterConfig"] == {"Arn": "<Finish/DeadLetterQueue.Arn>"}
    permissions = many_wrapped.resources("AWS::Lambda::Permission").values()
    allowed = [each["SourceArn"] for each in permissions if "SourceArn" in each]
    assert len([arn for arn in allowed if "Finish/ExecutionEnded" in arn]) == len(rules)
    (policy,) = [
        each
        for path, each in many_wrapped.resources("AWS::SQS::QueuePolicy").items()
        if path.startswith("Finish/")
    ]
    assert json.dumps(policy).count("Finish/ExecutionEnded") == len(rules)


def test_one_rule_is_enough_for_few(fork: Assembly) -> None:
    """And it keeps its logical id: a rule that is replaced loses events meanwhile."""
    assert list(fork.resources("AWS::Events::Rule")).count("Finish/ExecutionEnded") == 1
    assert len(_rules(fork)) == 1


def test_what_reads_ends_may_decrypt_them_with_the_key_of_their_state_machines(
    many_wrapped: Assembly,
) -> None:
    """Step Functions developer guide, "Data at rest encryption"."""
    roles = {
        role
        for _, policy in _policies(many_wrapped)
        for statement in policy["PolicyDocument"]["Statement"]
        if statement["Action"] == "kms:Decrypt" and statement["Resource"] == WRAPPED_KEY
        if statement["Condition"] == {"StringEquals": {CONTEXT: WRAPPED_ARNS[:2]}}
        for role in policy["Roles"]
    }
    assert roles == {"<Api/Role>", "<Finish/Role>", "<Sweep/Role>"}


def _policies(assembly: Assembly) -> Iterator[tuple[str, dict[str, Any]]]:
    """Inline and managed policies: the CDK puts into the second what the first cannot hold."""
    yield from assembly.resources("AWS::IAM::Policy").items()
    yield from assembly.resources("AWS::IAM::ManagedPolicy").items()


def test_no_policy_is_longer_than_iam_takes(many_wrapped: Assembly) -> None:
    """IAM user guide, "IAM and AWS STS quotas": 10,240 characters of a role's inline policies, and
    6,144 of a managed policy, without white space."""
    managed = many_wrapped.resources("AWS::IAM::ManagedPolicy")
    for path, policy in _policies(many_wrapped):
        length = len(json.dumps(policy["PolicyDocument"], separators=(",", ":")))
        assert length < (6_144 if path in managed else 10_240), path


def test_more_state_machines_than_a_policy_can_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "legacy.py").write_text(
        MANY_WRAPPED.replace(repr(WRAPPED_ARNS), repr([*WRAPPED_ARNS, LEGACY_ARN, LEGACY_ARN]))
    )
    with pytest.raises(ValueError, match="38 tools wrap state machines, whose ARNs are too long"):
        WrappedStateMachines.of(discover(tmp_path / "tools"))


def test_preflight_can_read_which_they_are(many_wrapped: Assembly, on_aws: Assembly) -> None:
    described = many_wrapped.template["Metadata"][METADATA]
    assert [each["Arn"] for each in described] == WRAPPED_ARNS
    assert described[0] == {"Tool": "legacy_00", "Arn": WRAPPED_ARNS[0], "KmsKeyArn": WRAPPED_KEY}
    assert described[-1] == {"Tool": "legacy_35", "Arn": WRAPPED_ARNS[-1]}
    assert METADATA not in on_aws.template["Metadata"]


@pytest.mark.parametrize(
    ("account", "region", "says"),
    [
        (
            ACCOUNT,
            "eu-west-1",
            "in eu-central-1 of the account 111122223333, and the deployment is",
        ),
        ("444455556666", REGION, "in eu-central-1 of 444455556666"),
    ],
)
def test_one_that_is_elsewhere_is_refused(account: str, region: str, says: str) -> None:
    wrapped = WrappedStateMachines((Wrapped("legacy", LEGACY_ARN, None),))
    with pytest.raises(ValueError, match=f"legacy wraps a state machine .*{says}"):
        wrapped.check_place(account, region)


@pytest.mark.parametrize(
    ("account", "region"), [(ACCOUNT, REGION), (None, "us-east-1"), (ACCOUNT, None)]
)
def test_one_that_is_here_or_may_be_is_not(account: str | None, region: str | None) -> None:
    """The CDK names a region also where there are no credentials."""
    WrappedStateMachines((Wrapped("legacy", LEGACY_ARN, None),)).check_place(account, region)


@pytest.mark.parametrize(("count", "refused"), [(MAX_RESOURCES, False), (MAX_RESOURCES + 1, True)])
def test_a_stack_with_too_many_resources_is_refused(count: int, refused: bool) -> None:
    stack = Stack(App(), "large")
    for number in range(count):
        CfnResource(stack, f"R{number}", type="AWS::SNS::Topic")
    if not refused:
        check_size(stack)
        return
    with pytest.raises(ValueError, match=r"the stack large has 501 resources, .* takes 500"):
        check_size(stack)
