"""Running executions keep their definition and role, and what these need."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from operations.preflight.check import Finding
from operations.preflight.deployment import Deployment
from operations.preflight.interrupted_executions import CHECK
from tests.unit.operations.preflight.conftest import Account

ARN = "arn:aws:states:eu-west-1:111122223333:stateMachine:notes-report"
INVOKE = {
    "Action": "lambda:InvokeFunction",
    "Effect": "Allow",
    "Resource": [{"Fn::GetAtt": ["Worker", "Arn"]}, {"Fn::GetAtt": ["Ask", "Arn"]}],
}
BEFORE: dict[str, Any] = {
    "Machine": {
        "Type": "AWS::StepFunctions::StateMachine",
        "Properties": {
            "StateMachineName": "notes-report",
            "RoleArn": {"Fn::GetAtt": ["Role", "Arn"]},
            "DefinitionSubstitutions": {
                "worker": {"Fn::GetAtt": ["Worker", "Arn"]},
                "ask": {"Fn::GetAtt": ["Ask", "Arn"]},
            },
        },
    },
    "Role": {"Type": "AWS::IAM::Role"},
    "Policy": {
        "Type": "AWS::IAM::Policy",
        "Properties": {
            "Roles": [{"Ref": "Role"}],
            "PolicyDocument": {"Statement": [INVOKE]},
        },
    },
    "Worker": {"Type": "AWS::Lambda::Function"},
    "Ask": {"Type": "AWS::Lambda::Function"},
}


def without(name: str) -> dict[str, Any]:
    """The template with another function in the place of one."""
    after = deepcopy(BEFORE)
    after[f"{name}2"] = after.pop(name)
    return after


def allowing(*statements: dict[str, Any]) -> dict[str, Any]:
    """The template whose role has other statements."""
    after = deepcopy(BEFORE)
    after["Policy"]["Properties"]["PolicyDocument"]["Statement"] = list(statements)
    return after


ONLY_WORKER = {**INVOKE, "Resource": {"Fn::GetAtt": ["Worker", "Arn"]}}
KMS = {"Action": ["kms:Decrypt"], "Effect": "Allow", "Resource": "arn:aws:kms:::key/1"}


def check(account: Account, after: dict[str, Any], *changes: str) -> Finding:
    """What the check says of an update to this template."""
    account.body = {"Resources": BEFORE}
    account.physical_ids = {"Machine": ARN}
    template = {"Resources": after}
    return CHECK.run(Deployment("notes", template, account.client, "eu-west-1", frozenset(changes)))


@pytest.mark.parametrize(
    ("after", "lost"),
    [
        (without("Worker"), "AWS::Lambda::Function Worker"),
        (without("Ask"), "AWS::Lambda::Function Ask"),
        (without("Role"), "AWS::IAM::Role Role"),
        (allowing(ONLY_WORKER), "lambda:InvokeFunction of the role Role"),
    ],
)
def test_what_a_running_execution_needs_is_not_taken_from_it(
    account: Account, after: dict[str, Any], lost: str
) -> None:
    account.running = {ARN: 1}
    finding = check(account, after)
    assert finding.refused
    assert f"    notes-report\n        {lost}\n" in finding.text
    assert "change=running" in finding.text
    assert check(account, after, "running").refused is False
    account.running = {ARN: 0}
    assert check(account, after) == Finding("")


@pytest.mark.parametrize(
    "after",
    [
        BEFORE,
        allowing(INVOKE, KMS),
        allowing(ONLY_WORKER, {**INVOKE, "Resource": {"Fn::GetAtt": ["Ask", "Arn"]}}),
        {name: each for name, each in BEFORE.items() if name != "Machine"},
    ],
    ids=["same", "more", "the same in two", "the tool is removed, which another check sees"],
)
def test_nobody_is_asked_when_nothing_is_lost(account: Account, after: dict[str, Any]) -> None:
    assert check(account, after) == Finding("")
    assert not account.asked


def test_permissions_on_keys_follow_another_choice(account: Account) -> None:
    before = allowing(INVOKE, KMS)
    account.body = {"Resources": before}
    deployment = Deployment("notes", {"Resources": BEFORE}, account.client, "eu-west-1")
    assert CHECK.run(deployment) == Finding("")


def test_a_first_deployment_interrupts_nothing(account: Account) -> None:
    deployment = Deployment("notes", {"Resources": BEFORE}, account.client, "eu-west-1")
    assert CHECK.run(deployment) == Finding("")
