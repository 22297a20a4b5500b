"""`make verify`, run on a stack of the emulator."""

from __future__ import annotations

from typing import Any, Final

from local.deployment import LocalStack
from operations.deployed_stack import DeployedStack
from operations.verify.__main__ import CHECKS
from operations.verify.check import Outcome, outcome_of
from operations.verify.credentials import Credentials
from operations.verify.deployed import Deployed, ToolCalls
from operations.verify.endpoint import Endpoint

ONLY_AWS: Final = {check.title for check in CHECKS if check.only_aws}


def verified(
    stack: LocalStack, aws: Any, credentials: Credentials, calls: ToolCalls | None = None
) -> dict[str, Outcome]:
    """Run all checks of `make verify` on a stack of the emulator. Returns their outcomes, of which
    none has failed, and all are marked that only AWS can tell.
    """
    endpoint = Endpoint(stack.url, credentials)
    deployed = Deployed(endpoint, True, DeployedStack(stack.name, aws), calls or ToolCalls())
    outcomes = {check.title: outcome_of(check, deployed) for check in CHECKS}
    failed = [outcome for outcome in outcomes.values() if outcome.verdict == "FAILED"]
    assert failed == []
    marked = {title for title, o in outcomes.items() if o.verdict == "only AWS can tell"}
    assert marked == ONLY_AWS
    return outcomes


def not_tried(outcomes: dict[str, Outcome]) -> set[str]:
    """The checks that could not be made."""
    return {title for title, outcome in outcomes.items() if outcome.verdict == "not tried"}
