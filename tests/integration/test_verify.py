"""`make verify` against deployed stacks: what the emulator can tell passes, the rest is marked."""

from __future__ import annotations

from typing import Any

import pytest

from local.deployment import LocalStack
from operations.deployed_stack import DeployedStack
from operations.verify.__main__ import CHECKS
from operations.verify.check import Outcome, outcome_of
from operations.verify.credentials import AccessToken, Credentials, NoCredentials
from operations.verify.deployed import Deployed, ToolCall, ToolCalls
from operations.verify.endpoint import Endpoint
from tests.integration.support.issuer import Issuer
from tests.integration.support.stacks import SCOPE

ONLY_AWS = {check.title for check in CHECKS if check.only_aws}


def _verified(
    stack: LocalStack, aws: Any, credentials: Credentials, calls: ToolCalls | None = None
) -> dict[str, Outcome]:
    endpoint = Endpoint(stack.url, credentials)
    deployed = Deployed(endpoint, True, DeployedStack(stack.name, aws), calls or ToolCalls())
    outcomes = {check.title: outcome_of(check, deployed) for check in CHECKS}
    failed = [outcome for outcome in outcomes.values() if outcome.verdict == "FAILED"]
    assert failed == []
    marked = {title for title, o in outcomes.items() if o.verdict == "only AWS can tell"}
    assert marked == ONLY_AWS
    return outcomes


def _not_tried(outcomes: dict[str, Outcome]) -> set[str]:
    return {title for title, outcome in outcomes.items() if outcome.verdict == "not tried"}


def test_the_samples_are_verified(tools_stack: LocalStack, aws: Any) -> None:
    """Its limits are those of the tests, which poll more often than anybody may."""
    outcomes = _verified(tools_stack, aws, NoCredentials())
    assert _not_tried(outcomes) == {"Refuse strangers", "Store a large result", "Throttle polls"}


def test_a_server_with_tools_of_its_own_is_verified(stack: LocalStack, aws: Any) -> None:
    calls = ToolCalls(
        task=ToolCall("fill", {"size": 1_000}),
        question=ToolCall("gather", {"pages": 1}),
        answer={"text": "x"},
        large=ToolCall("fill", {"size": 300_000}),
    )
    outcomes = _verified(stack, aws, NoCredentials(), calls)
    assert outcomes["Store a large result"].verdict == "passed"


@pytest.mark.usefixtures("all_deployed")
def test_a_guarded_server_is_verified(guarded: LocalStack, aws: Any, issuer: Issuer) -> None:
    outcomes = _verified(guarded, aws, AccessToken(issuer.mint(scope=SCOPE)))
    assert outcomes["Refuse strangers"].verdict == "passed"
