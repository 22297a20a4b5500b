"""What the tests of the deployed stack share."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from infra.local.deployment import LocalStack, deploy
from infra.local.emulator import Emulator
from infra.local.environment import ROOT
from infra.local.gateway import Gateway, deployed
from tests.integration.client import Client
from tests.integration.issuer import AUDIENCE, Issuer
from tests.integration.traces import Traces

HERE = Path(__file__).parent
SCOPE: Final = "mcp"
"""What every token of `guarded` has to be good for."""


@pytest.fixture
def client(stack: LocalStack) -> Client:
    """A client that declares the tasks extension, and that it can be asked."""
    return Client(stack.url)


@pytest.fixture
def plain_client(stack: LocalStack) -> Client:
    """A client that declares nothing."""
    return Client(stack.url, {})


@pytest.fixture
def traces(stack: LocalStack, aws: Any) -> Traces:
    """The stack's rows and executions, read behind the server's back."""
    return Traces(stack, aws)


@pytest.fixture(scope="session")
def issuer() -> Iterator[Issuer]:
    """Who issues the tokens that `guarded` takes."""
    with Issuer() as running:
        yield running


@pytest.fixture(scope="session")
def guarded(emulator: Emulator, issuer: Issuer) -> LocalStack:
    """A stack that takes only tokens (`-c auth=oauth`), with the limits that are the default."""
    tools = ROOT / ".local" / "test" / "guarded_tools"
    shutil.rmtree(tools, ignore_errors=True)
    shutil.copytree(HERE / "guarded_tools", tools)
    shutil.copytree(HERE / "tools" / "walk", tools / "walk")
    access = {"auth": "oauth", "issuer": issuer.url, "audience": AUDIENCE, "scopes": SCOPE}
    return deploy(emulator, tools, "mcp-guarded", {"cell": "c3", **access})


@pytest.fixture(scope="session")
def guarded_gateway(guarded: LocalStack, aws: Any) -> Iterator[Gateway]:
    """The same stack, streaming."""
    with Gateway(deployed(guarded, aws)) as running:
        yield running


@pytest.fixture(scope="session")
def gateway(stack: LocalStack, aws: Any) -> Iterator[Gateway]:
    """The same stack, streaming."""
    with Gateway(deployed(stack, aws)) as running:
        yield running
