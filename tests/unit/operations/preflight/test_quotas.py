"""Does the account carry what the stack lets its callers ask, and does one caller leave room?"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import pytest
from botocore.exceptions import ClientError

from operations.preflight import quotas, shared_concurrency
from operations.preflight.deployment import Deployment
from operations.preflight.quotas import DEMANDS
from operations.preflight.stack_load import StackLoad

REGION: Final = "eu-west-1"

DEFAULTS: Final[dict[str, dict[str, float]]] = {
    "states": {
        "StartExecution throttle token bucket size": 800,
        "StartExecution throttle token refill rate per second": 150,
        "StateTransition throttle token bucket size": 800,
        "StateTransition throttle token refill rate per second": 800,
        "DescribeExecution throttle token refill rate per second": 10,
    },
    "events": {
        "PutEvents throttle limit in transactions per second": 1_200,
        "Invocations throttle limit in transactions per second": 1_100,
    },
    "apigateway": {"Throttle rate": 10_000, "Throttle burst rate": 5_000},
    "dynamodb": {
        "Table-level write throughput limit (Provisioned mode and on-demand mode)": 40_000,
        "Account-level write throughput limit (Provisioned mode)": 80_000,
    },
}


class Account:
    """An account's answers. `applied` differs from the defaults; `denied` may not be called."""

    def __init__(
        self, applied: dict[str, float] | None = None, denied: tuple[str, ...] = ()
    ) -> None:
        self.applied, self.denied = applied or {}, denied
        self.unreserved = self.concurrency = 1_000
        self.throttle = {"rateLimit": 10_000.0, "burstLimit": 5_000}
        self.fixed: set[str] = set()
        self.asked: list[tuple[str, str]] = []

    def client(self, service: str) -> Account:
        return self

    def get_paginator(self, operation: str) -> Any:
        return _Pages(self, operation)

    def quotas(self, operation: str, service: str) -> list[dict[str, Any]]:
        self._call(operation)
        self.asked.append((operation, service))
        listed: Mapping[str, float] = DEFAULTS[service]
        if operation == "list_service_quotas":
            listed = {name: value for name, value in self.applied.items() if name in listed}
        return [
            {
                "QuotaName": name,
                "QuotaCode": "L-CODE",
                "Value": float(value),
                "Adjustable": name not in self.fixed,
            }
            for name, value in listed.items()
        ]

    def get_account(self) -> dict[str, Any]:
        self._call("get_account")
        return {"throttleSettings": self.throttle}

    def describe_limits(self) -> dict[str, Any]:
        self._call("describe_limits")
        return {"TableMaxWriteCapacityUnits": 40_000, "AccountMaxWriteCapacityUnits": 80_000}

    def get_account_settings(self) -> dict[str, Any]:
        return {
            "AccountLimit": {
                "ConcurrentExecutions": self.concurrency,
                "UnreservedConcurrentExecutions": self.unreserved,
            }
        }

    def get_template(self, StackName: str) -> dict[str, Any]:
        raise ClientError({"Error": {"Code": "ValidationError"}}, "GetTemplate")

    def _call(self, operation: str) -> None:
        if operation in self.denied:
            raise ClientError({"Error": {"Code": "AccessDeniedException"}}, operation)


class _Pages:
    """Each quota on a page of its own."""

    def __init__(self, account: Account, operation: str) -> None:
        self.account, self.operation = account, operation

    def paginate(self, ServiceCode: str) -> Any:
        found = self.account.quotas(self.operation, ServiceCode)
        return [{"Quotas": [each]} for each in found]


def template(
    rate: int = 500,
    burst: int = 1_000,
    *,
    limits: dict[str, int] | None = None,
    key: bool = False,
    reserved: int | None = None,
) -> dict[str, Any]:
    """A stack's template, as far as it is read."""
    function: dict[str, Any] = {
        "Description": "Answers",
        "Environment": {"Variables": {"LIMITS": json.dumps(limits or {})}},
    }
    if reserved:
        function["ReservedConcurrentExecutions"] = reserved
    settings = [{"ThrottlingRateLimit": rate, "ThrottlingBurstLimit": burst}]
    kind = "CUSTOMER_MANAGED_KMS_KEY" if key else "AWS_OWNED_KEY"
    machine = {"EncryptionConfiguration": {"Type": kind}}
    return {
        "Resources": {
            "Stage": {
                "Type": "AWS::ApiGateway::Stage",
                "Properties": {"MethodSettings": settings},
            },
            "Api": {"Type": "AWS::Lambda::Function", "Properties": function},
            "Machine": {"Type": "AWS::StepFunctions::StateMachine", "Properties": machine},
            "Queue": {"Type": "AWS::SQS::Queue"},
        }
    }


def said(account: Account, **stack: Any) -> list[str]:
    """What the check of quotas says, by line."""
    finding = quotas.find(Deployment("notes", template(**stack), account.client, REGION))
    assert not finding.refused, "a stack with small quotas works, for fewer callers"
    return finding.text.splitlines()


def test_each_quota_is_named_with_what_the_stack_asks_of_it() -> None:
    first, *lines = said(Account())
    assert "500 requests a second" in first
    assert "45 tasks a second" in first
    assert [line.split(":")[0].split("  ")[-1].strip() for line in lines] == [
        demand.what for demand in DEMANDS
    ]
    assert all(line.strip().startswith("fits ") for line in lines)
    assert "    fits          API Gateway, requests a second: 500 of 10,000" in lines
    assert "    fits          Step Functions, state transitions a second: 182 of 800" in lines


def test_what_does_not_fit_is_said_with_its_consequence_and_the_command() -> None:
    """Step Functions developer guide, "Service quotas": "New AWS accounts have reduced state
    transition quotas"."""
    name = "StateTransition throttle token refill rate per second"
    lines = said(Account({name: 100}))
    at = lines.index("    DOES NOT FIT  Step Functions, state transitions a second: 182 of 100")
    assert "states begin later" in lines[at + 1]
    assert lines[at + 2].strip() == (
        "aws service-quotas request-service-quota-increase --region eu-west-1 "
        "--service-code states --quota-code L-CODE --desired-value 182"
    )
    assert sum("DOES NOT FIT" in line for line in lines) == 1


def test_with_a_customer_key_each_end_is_read() -> None:
    """docs/cost-and-scale.md: DescribeExecution is the ceiling of ends then."""
    what = "Step Functions, DescribeExecution a second"
    assert f"    fits          {what}: 8 of 10" in said(Account())
    assert f"    DOES NOT FIT  {what}: 53 of 10" in said(Account(), key=True)


def test_the_gateway_and_the_tables_tell_their_own_numbers() -> None:
    account = Account({"Throttle rate": 7})
    account.throttle = {"rateLimit": 499.0, "burstLimit": 1_000}
    lines = said(account)
    assert "    DOES NOT FIT  API Gateway, requests a second: 500 of 499" in lines
    assert "    fits          API Gateway, requests at once: 1,000 of 1,000" in lines


def test_what_cannot_be_raised_is_said() -> None:
    account = Account()
    account.throttle = {"rateLimit": 10_000.0, "burstLimit": 10}
    account.fixed = {"Throttle burst rate"}
    lines = said(account)
    at = lines.index("    DOES NOT FIT  API Gateway, requests at once: 1,000 of 10")
    assert "lower rate= and burst=" in lines[at + 1]
    assert "AWS does not raise this quota" in lines[at + 2]


@pytest.mark.parametrize(
    ("denied", "unread"),
    [
        (("list_service_quotas",), 7),
        (("list_aws_default_service_quotas",), 7),
        (("get_account",), 0),
        (("describe_limits",), 0),
        (("list_service_quotas", "get_account", "describe_limits"), 11),
    ],
)
def test_what_may_not_be_read_is_said(denied: tuple[str, ...], unread: int) -> None:
    """API Gateway's and DynamoDB's quotas are in Service Quotas as well."""
    lines = [line for line in said(Account(denied=denied)) if "not read" in line]
    assert len(lines) == unread
    assert all("AccessDeniedException" in line for line in lines)


def test_a_quota_that_service_quotas_does_not_know_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """AWS may rename it."""
    monkeypatch.setitem(DEFAULTS, "events", {})
    unread = [line for line in said(Account()) if "not read" in line]
    assert len(unread) == 2
    assert 'Service Quotas has no "PutEvents throttle limit' in unread[0]


def test_each_service_is_read_once() -> None:
    account = Account()
    said(account)
    assert len(account.asked) == len(set(account.asked)) == 2 * len(DEFAULTS)


# what no function reserves


def shared(account: Account, **stack: Any) -> str:
    deployment = Deployment("notes", template(**stack), account.client, REGION)
    finding = shared_concurrency.find(deployment)
    assert not finding.refused
    return finding.text


def test_one_caller_of_a_usual_account_leaves_room() -> None:
    text = shared(Account())
    assert text.startswith("requests, subscriptions and running tasks share 1000 concurrent")
    assert "may hold 30 of them: 10 by subscriptions of up to 25 seconds each, 20 by calls" in text


@pytest.mark.parametrize(("unreserved", "warns"), [(31, False), (30, True), (10, True)])
def test_one_caller_of_a_new_account_may_stop_all_others(unreserved: int, warns: bool) -> None:
    account = Account()
    account.unreserved = unreserved
    assert shared(account).startswith("WARNING") is warns


def test_what_helps_is_said() -> None:
    account = Account()
    account.concurrency = account.unreserved = 10
    text = shared(account)
    assert "503 with Retry-After" in text
    assert "--service-code lambda --quota-code L-B99A9384 --desired-value 1000" in text
    assert shared_concurrency.SMALL_ACCOUNT in text


def test_what_is_said_to_help_in_a_new_account_helps() -> None:
    account = Account()
    account.concurrency = account.unreserved = 10
    chosen = dict(each.split("=") for each in shared_concurrency.SMALL_ACCOUNT.split())
    assert chosen.pop("reserved") == "off"
    limits = {
        "max_open_subscriptions": int(chosen["max_subscriptions"]),
        "max_open_calls": int(chosen["max_calls"]),
        "max_open_tasks": int(chosen["max_tasks"]),
    }
    assert not shared(account, limits=limits).startswith("WARNING")


def test_what_the_stack_reserves_is_not_shared() -> None:
    account = Account()
    account.unreserved = 130
    assert shared(account, reserved=100).startswith("WARNING")
    assert not shared(account, reserved=99).startswith("WARNING")


def test_a_limit_that_is_off_bounds_nothing() -> None:
    assert shared(Account(), limits={"max_open_calls": 0}).startswith("WARNING")


def test_a_template_without_an_api_asks_nothing() -> None:
    load = StackLoad.read({})
    assert (load.rate, load.tasks, load.describes, load.streams) == (0, 0, 8, False)
