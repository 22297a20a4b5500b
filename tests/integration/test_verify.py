"""`make verify` against deployed stacks: what the emulator can tell passes, the rest is marked."""

from __future__ import annotations

from typing import Any

import pytest

from local.deployment import LocalStack
from operations.verify.credentials import AccessToken, NoCredentials
from operations.verify.deployed import ToolCall, ToolCalls
from tests.integration.support.issuer import Issuer
from tests.integration.support.stacks import SCOPE
from tests.integration.support.verification import verified


def test_a_server_with_tools_of_its_own_is_verified(stack: LocalStack, aws: Any) -> None:
    calls = ToolCalls(
        task=ToolCall("fill", {"size": 1_000}),
        question=ToolCall("gather", {"pages": 1}),
        answer={"text": "x"},
        large=ToolCall("fill", {"size": 300_000}),
    )
    outcomes = verified(stack, aws, NoCredentials(), calls)
    assert outcomes["Store a large result"].verdict == "passed"


@pytest.mark.usefixtures("all_deployed")
def test_a_guarded_server_is_verified(guarded: LocalStack, aws: Any, issuer: Issuer) -> None:
    outcomes = verified(guarded, aws, AccessToken(issuer.mint(scope=SCOPE)))
    assert outcomes["Refuse strangers"].verdict == "passed"
