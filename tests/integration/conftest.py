"""What the tests of the deployed stack share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from local.deployment import LocalStack
from local.gateway import DeployedApi, Gateway
from tests.integration.support.client import Client
from tests.integration.support.foreign_clients import ForeignClient, node_client, python_client
from tests.integration.support.stacks import Stacks
from tests.integration.support.traces import Traces


@pytest.fixture
def client(stack: LocalStack) -> Client:
    """A client that declares the tasks extension and elicitation."""
    return Client(stack.url)


@pytest.fixture
def plain_client(stack: LocalStack) -> Client:
    """A client without capabilities."""
    return Client(stack.url, {})


@pytest.fixture
def traces(stack: LocalStack, aws: Any) -> Traces:
    """The stack's rows and executions, read directly from AWS."""
    return Traces(stack, aws)


@pytest.fixture(scope="session")
def guarded(stacks: Stacks) -> LocalStack:
    """A stack with `auth=oauth`, `max_tasks=25` and the other limits by default."""
    found: LocalStack = stacks["guarded"]
    return found


@pytest.fixture(scope="session")
def guarded_gateway(guarded: LocalStack, aws: Any) -> Iterator[Gateway]:
    """The gateway that streams, in front of `guarded`."""
    with Gateway(DeployedApi.read(guarded, aws)) as running:
        yield running


@pytest.fixture(scope="session")
def gateway(stack: LocalStack, aws: Any) -> Iterator[Gateway]:
    """The gateway that streams, in front of `stack`."""
    with Gateway(DeployedApi.read(stack, aws)) as running:
        yield running


@pytest.fixture(params=["buffered", "streamed"])
def endpoint(request: pytest.FixtureRequest, stack: LocalStack, gateway: Gateway) -> str:
    """The URL of `stack` in either carrier."""
    return stack.url if request.param == "buffered" else gateway.url


@pytest.fixture(scope="session")
def python_sdk_1() -> ForeignClient:
    """The official Python SDK 1.x."""
    return python_client("python_sdk_1.py")


@pytest.fixture(scope="session")
def fastmcp_2() -> ForeignClient:
    """FastMCP 2.14."""
    return python_client("fastmcp_2.py")


@pytest.fixture(scope="session")
def typescript_sdk_1() -> ForeignClient:
    """The official TypeScript SDK 1.x."""
    return node_client("typescript_sdk_1.cjs")
