"""`make verify` against deployed stacks: what the emulator can tell passes, the rest is marked."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from local.deployment import LocalStack
from local.gateway import Gateway
from operations.verify.credentials import AccessToken, NoCredentials
from operations.verify.deployed import Deployed, ToolCall, ToolCalls
from operations.verify.endpoint import Endpoint
from operations.verify.endpoint_checks import list_tools
from operations.verify.quiet_call_checks import keep_a_quiet_call
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
    guarding = ("Refuse strangers", "Let pages read the challenge", "Let pages read the metadata")
    assert [outcomes[title].verdict for title in guarding] == ["passed"] * 3


def test_a_quiet_call_is_verified_on_the_gateway_that_streams(gateway: Gateway) -> None:
    """The emulator itself buffers. With six minutes it is what `make verify slow=yes` does."""
    streaming: Any = SimpleNamespace(variables={"AWS_LAMBDA_EXEC_WRAPPER": "/opt/stream"})
    calls = ToolCalls(question=ToolCall("gather", {"pages": 1}), answer={"text": "x"})
    deployed = Deployed(Endpoint(gateway.url), True, streaming, calls)
    list_tools(deployed)
    seen = keep_a_quiet_call(deployed, unanswered_seconds=2.0)
    assert ", with the result; longest silence" in seen
