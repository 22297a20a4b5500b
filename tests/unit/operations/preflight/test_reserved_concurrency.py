"""Has the account the concurrency that the stack reserves?"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from botocore.session import get_session
from botocore.stub import Stubber

from operations.preflight.__main__ import preflight
from operations.preflight.deployment import Deployment
from operations.preflight.reserved_concurrency import CHECK
from tests.unit.operations.preflight.conftest import Written

REGION: Final = "eu-west-1"
WANTED: Final = {"Ends tasks": 20, "Checks access tokens": 50}

Clients = dict[str, Any]


def template(reserved: dict[str, int]) -> dict[str, Any]:
    """A stack's template, with a function that reserves nothing."""
    functions = {
        f"F{n}": {
            "Type": "AWS::Lambda::Function",
            "Properties": {"Description": name, "ReservedConcurrentExecutions": count},
        }
        for n, (name, count) in enumerate(reserved.items())
    }
    other = {"Type": "AWS::Lambda::Function", "Properties": {"Description": "Answers"}}
    return {"Resources": {**functions, "Api": other, "Queue": {"Type": "AWS::SQS::Queue"}}}


@pytest.fixture
def assembly(written: Written) -> Path:
    """The template of a stack whose functions reserve concurrency."""
    return written(template(WANTED))


Account = Callable[..., Callable[[str], Any]]


@pytest.fixture
def account() -> Account:
    """An account, as botocore's stubs answer for it."""

    def stubbed(
        quota: int, unreserved: int, deployed: dict[str, Any] | None = None, denied: str = ""
    ) -> Callable[[str], Any]:
        stubbers: Clients = {}
        for service in ("lambda", "cloudformation"):
            client = get_session().create_client(
                service, region_name=REGION, aws_access_key_id="x", aws_secret_access_key="x"
            )
            stubbers[service] = Stubber(client)
            stubbers[service].activate()
        if denied == "lambda":
            stubbers["lambda"].add_client_error("get_account_settings", "AccessDeniedException")
        limits = {
            "ConcurrentExecutions": quota,
            "UnreservedConcurrentExecutions": unreserved,
        }
        stubbers["lambda"].add_response("get_account_settings", {"AccountLimit": limits}, {})
        if denied == "cloudformation":
            stubbers["cloudformation"].add_client_error("get_template", "AccessDenied")
        elif deployed is None:
            stubbers["cloudformation"].add_client_error("get_template", "ValidationError")
        else:
            body = {"TemplateBody": json.dumps(deployed)}
            stubbers["cloudformation"].add_response("get_template", body, {"StackName": "notes"})
        return lambda service: stubbers[service].client

    return stubbed


def check(assembly: Path, client: Callable[[str], Any]) -> int:
    return preflight(Deployment.read(assembly, client, REGION), [CHECK])


def test_an_account_with_enough_is_deployed_to(
    assembly: Path, account: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check(assembly, account(1000, 1000)) == 0
    said = capsys.readouterr().out
    assert "reserve 70 of 1000 concurrent executions in eu-west-1" in said
    assert "leave 930 to all others" in said


@pytest.mark.parametrize(("unreserved", "code"), [(170, 0), (169, 1)])
def test_a_hundred_stay_unreserved(
    assembly: Path, account: Account, unreserved: int, code: int
) -> None:
    """Lambda developer guide, "Configuring reserved concurrency"; other stacks reserve, too."""
    assert check(assembly, account(1000, unreserved)) == code


def test_a_new_account_is_refused_with_both_ways_out(
    assembly: Path, account: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    """It has 10 in all. Nothing is deployed, and no half of it."""
    assert check(assembly, account(10, 10)) == 1
    said = capsys.readouterr().err
    assert "nothing was deployed" in said
    assert "The account has 10." in said
    assert "   20  Ends tasks" in said
    assert "aws service-quotas request-service-quota-increase --region eu-west-1" in said
    assert "--service-code lambda --quota-code L-B99A9384 --desired-value 1000" in said
    assert "reserved=off" in said


def test_the_quota_to_ask_for_is_enough(
    assembly: Path, account: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check(assembly, account(3000, 120)) == 1
    assert f"--desired-value {3000 + 50}" in capsys.readouterr().err


def test_what_the_stack_holds_already_is_its_own(assembly: Path, account: Account) -> None:
    """A second deployment, into an account where there is nothing left."""
    assert check(assembly, account(170, 100, template(WANTED))) == 0
    less = {"Ends tasks": 20, "Checks access tokens": 49}
    assert check(assembly, account(170, 100, template(less))) == 1


def test_a_stack_that_reserves_nothing_needs_no_permission(
    written: Written, capsys: pytest.CaptureFixture[str]
) -> None:
    def none(service: str) -> Any:
        raise AssertionError(service)

    assert check(written(template({})), none) == 0
    assert "may take it all" in capsys.readouterr().out


@pytest.mark.parametrize("service", ["lambda", "cloudformation"])
def test_whoever_may_not_read_is_told_and_may_deploy(
    assembly: Path, account: Account, service: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The CDK deploys with roles of its own; CloudFormation refuses what cannot be reserved."""
    assert check(assembly, account(1000, 1000, denied=service)) == 0
    assert "WARNING: not checked" in capsys.readouterr().out
