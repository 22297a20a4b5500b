"""`make verify` finds in a deployed template what it looks for: logical ids, policies, budgets."""

from __future__ import annotations

import json
from typing import Any

import pytest

from operations.verify import alarm_checks, encryption_checks, log_checks
from operations.verify.check import Check, Outcome, outcome_of
from tests.infra.assembly import Assembly
from tests.unit.operations.verify.account import Account

KEY = "arn:aws:kms:eu-west-1:111122223333:key/1"
POLICY, _ = encryption_checks.CHECKS
_, _, BUDGETS = alarm_checks.CHECKS


def seen(check: Check, assembly: Assembly, **answers: Any) -> Outcome:
    """How a check ends in an account with the resources of a template."""
    account = Account(get_template={"TemplateBody": assembly.template}, **answers)
    account.resources = [
        (resource["Type"], logical_id, f"physical-{logical_id}")
        for logical_id, resource in assembly.template["Resources"].items()
    ]
    return outcome_of(check, account.deployed())


def test_the_keys_policy_is_what_verify_looks_for(with_own_key: Assembly) -> None:
    policy = with_own_key.resources("AWS::KMS::Key")["Encryption/Key"]["KeyPolicy"]
    text = json.dumps(policy).replace("<AWS::Region>", "eu-west-1")
    answers: dict[str, Any] = {
        "describe_key": {"KeyMetadata": {"KeyId": "1", "Arn": KEY}},
        "get_key_rotation_status": {"KeyRotationEnabled": True},
    }
    outcome = seen(POLICY, with_own_key, get_key_policy={"Policy": text}, **answers)
    assert (outcome.verdict, outcome.seen) == ("passed", "4 services may use it; it rotates")


def test_the_budgets_are_what_verify_looks_for(with_own_key: Assembly) -> None:
    def described(asked: dict[str, Any]) -> dict[str, Any]:
        name = asked["BudgetName"].removeprefix("physical-")
        budget = with_own_key.template["Resources"][name]["Properties"]["Budget"]
        limit = {"Amount": str(float(budget["BudgetLimit"]["Amount"])), "Unit": "USD"}
        return {"Budget": {"BudgetLimit": limit, "CostFilters": budget["CostFilters"]}}

    active = [{"TagKey": "mcp-cell", "Status": "Active"}]
    answers = {"list_cost_allocation_tags": {"CostAllocationTags": active}}
    outcome = seen(BUDGETS, with_own_key, describe_budget=described, **answers)
    assert (outcome.verdict, outcome.seen) == (
        "passed",
        "2 budgets count by the active tag mcp-cell",
    )


def ids(assembly: Assembly, kind: str, beginning: str) -> list[str]:
    """Logical ids, as `make verify` looks for them."""
    found = assembly.template["Resources"].items()
    return [n for n, each in found if each["Type"] == kind and n.startswith(beginning)]


@pytest.mark.parametrize(
    ("template", "kind", "beginning", "count"),
    [
        ("on_aws", alarm_checks.ALARM, alarm_checks.RUNG, 1),
        ("on_aws", log_checks.GROUP, "FinishLogs", 1),
        ("on_aws", log_checks.GROUP, log_checks.TRACEBACKS, 0),
        ("on_aws", "AWS::Lambda::Function", "ApiFunction", 1),
        ("traced", log_checks.GROUP, log_checks.EXECUTIONS, 1),
        ("traced", "AWS::KMS::Key", encryption_checks.OWN, 1),
        ("open_server", log_checks.GROUP, log_checks.TRACEBACKS, 1),
        ("open_server", "AWS::KMS::Key", log_checks.TRACEBACKS, 1),
        ("open_server", "AWS::KMS::Key", encryption_checks.OWN, 0),
    ],
)
def test_parts_of_the_stack_are_where_verify_looks_for_them(
    request: pytest.FixtureRequest, template: str, kind: str, beginning: str, count: int
) -> None:
    assembly: Assembly = request.getfixturevalue(template)
    assert len(ids(assembly, kind, beginning)) == count


def test_workers_are_where_verify_looks_for_them(on_aws: Assembly) -> None:
    assert ids(on_aws, "AWS::Lambda::Function", "Tools")
