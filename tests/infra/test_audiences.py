"""A warning when tokens will not name the server (RFC 8707, section 2)."""

from __future__ import annotations

import pytest
from aws_cdk import Aws, Stack

from infra.audiences import warn_of_other_audiences
from infra.auth_options import OAuth

URL = "https://mcp.example.com/mcp"
UNKNOWN = f"https://{Aws.STACK_ID}.execute-api.{Aws.REGION}.{Aws.URL_SUFFIX}/v1/mcp"
"""A URL with parts that are known at deployment only."""
ISSUER = "https://login.example.com"
ENTRA = "https://login.microsoftonline.com/aaaabbbb-0000-cccc-1111-dddd2222eeee/v2.0"
COGNITO = "https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_EXAMPLE"


def warnings(issuer: str, resource: str, *audiences: str) -> int:
    """How often a stack with these audiences is warned about."""
    stack = Stack()
    warn_of_other_audiences(stack, OAuth(issuer, audiences, ()), resource)
    return warned(stack)


def warned(stack: Stack) -> int:
    """How many warnings there are."""
    return len([entry for entry in stack.node.metadata if entry.type == "aws:cdk:warning"])


@pytest.mark.parametrize(
    ("resource", "audiences"),
    [
        (URL, ["api://mcp"]),
        (URL, ["https://mcp.example.com"]),
        (URL, [f"{URL}/"]),
        (UNKNOWN, ["api://mcp"]),
        (UNKNOWN, ["https://abc123.execute-api.eu-west-1.amazonaws.com/v2/mcp"]),
    ],
    # The CDK's tokens have other numbers in each process.
    ids=["other scheme", "without path", "slash", "unknown, other scheme", "unknown, other stage"],
)
def test_an_audience_that_clients_do_not_ask_for_is_warned_about(
    resource: str, audiences: list[str]
) -> None:
    assert warnings(ISSUER, resource, *audiences) == 1


@pytest.mark.parametrize(
    ("issuer", "resource", "audiences"),
    [
        (ISSUER, URL, []),
        (ISSUER, URL, ["api://mcp", URL]),
        (ISSUER, UNKNOWN, ["https://abc123.execute-api.eu-west-1.amazonaws.com/v1/mcp"]),
        (ENTRA, URL, ["00001111-aaaa-2222-bbbb-3333cccc4444"]),
        (COGNITO, URL, ["1example23456789"]),
    ],
    ids=["default", "several", "unknown, its stage", "Entra", "Cognito"],
)
def test_no_other_is(issuer: str, resource: str, audiences: list[str]) -> None:
    assert warnings(issuer, resource, *audiences) == 0


def test_without_tokens_there_is_nothing_to_warn_about() -> None:
    stack = Stack()
    warn_of_other_audiences(stack, None, URL)
    assert warned(stack) == 0
