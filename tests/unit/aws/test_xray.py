"""The trace of a call: which one a task keeps, and that botocore hands it on by itself."""

from __future__ import annotations

from typing import Any, Final

import pytest
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.config import Config

from mcp_tasks.aws.clients import aws_client
from mcp_tasks.aws.xray import MEMBER, VARIABLE, trace_header, trace_to_keep

ROOT: Final = "1-5759e988-bd862e3fe1be46a994272793"
TRACE: Final = f"Root={ROOT};Parent=53995c3f42cd8ad8;Sampled=1"


def test_a_recorded_trace_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, f"{TRACE};Lineage=1:a87bd80c:0")
    assert trace_to_keep() == {MEMBER: TRACE}
    assert trace_header(trace_to_keep()) == TRACE


@pytest.mark.parametrize(
    "header", ["", f"Root={ROOT};Parent=53995c3f42cd8ad8;Sampled=0", "Sampled=1", "Sampled", ROOT]
)
def test_no_other_trace_is_kept(header: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, header)
    assert trace_to_keep() == {}
    assert trace_header({}) is None


def test_a_call_to_step_functions_carries_the_trace_of_its_invocation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As botocore does it in Lambda: `StartExecution` needs no parameter for it."""
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "api")
    monkeypatch.setenv(VARIABLE, TRACE)
    client = aws_client("stepfunctions", Config())
    sent: list[dict[str, Any]] = []

    def answer(params: dict[str, Any], **_: Any) -> tuple[AWSResponse, dict[str, Any]]:
        sent.append(params["headers"])
        return AWSResponse("", 200, HTTPHeaders(), None), {}

    client.meta.events.register_last("before-call", answer)
    client.start_execution(stateMachineArn="arn:x", name="n", input="{}")
    (headers,) = sent
    assert headers["X-Amzn-Trace-Id"] == TRACE
