"""What every unit test starts from: no AWS but moto's, and no other test's tools mounted."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest
from botocore.session import get_session
from hypothesis import settings
from moto import mock_aws
from moto.dynamodb.models import dynamodb_backends
from moto.s3.models import s3_backends

from mcp_tasks.limits import Limits
from mcp_tasks.payloads.s3_store import PayloadStore
from mcp_tasks.registry.catalogue import PACKAGE, Catalogue
from mcp_tasks.tasks.task_table import TaskTable
from tests.unit.support.aws import REGION, Calls, create_payloads, create_table
from tests.unit.support.stack import Stack

EXAMPLE_TOOLS = Path(__file__).parent / "support" / "example_tools"

# The same examples in every run, and no failure because a machine is busy.
settings.register_profile("unit", derandomize=True, deadline=None)
settings.load_profile("unit")

shared_session = cache(get_session)
"""One botocore session for all tests: every other loads the services' models again."""


@pytest.fixture
def usual_depth() -> Iterator[None]:
    """Python's own limit of recursion, which other tests' libraries raise."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(1000)
    yield
    sys.setrecursionlimit(before)


@pytest.fixture(autouse=True)
def no_account(monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller's account, profile and endpoints must not leak into a test."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setattr("mcp_tasks.aws.clients.get_session", shared_session)


@pytest.fixture(autouse=True)
def mounted_tools() -> Iterator[None]:
    """`Catalogue.discover` mounts a folder as the package `tools`; put back what was there."""
    before = _tools()
    yield
    for name in _tools():
        del sys.modules[name]
    sys.modules.update(before)


@pytest.fixture(scope="module")
def moto() -> Iterator[None]:
    """AWS in moto. Per module, because starting it takes longer than most tests."""
    with mock_aws():
        yield


@pytest.fixture
def aws(moto: None, no_account: None) -> Calls:
    """An empty account in moto, and the calls made to it."""
    dynamodb_backends.reset()
    s3_backends.reset()
    return Calls()


@pytest.fixture
def rows(aws: Calls) -> TaskTable:
    """An empty tasks table."""
    return TaskTable(aws.client("dynamodb"), create_table())


@pytest.fixture
def payloads(aws: Calls) -> PayloadStore:
    """An empty bucket of payloads."""
    return PayloadStore(lambda: aws.client("s3"), create_payloads())


@pytest.fixture(scope="session")
def example_modules() -> tuple[Catalogue, dict[str, ModuleType]]:
    """The example tools, imported once."""
    before = _tools()
    catalogue = Catalogue.discover(EXAMPLE_TOOLS)
    modules = _tools()
    for name in modules:
        del sys.modules[name]
    sys.modules.update(before)
    return catalogue, dict(modules)


@pytest.fixture
def catalogue(
    mounted_tools: None, example_modules: tuple[Catalogue, dict[str, ModuleType]]
) -> Catalogue:
    """The example tools, mounted."""
    found, modules = example_modules
    for name in _tools():
        del sys.modules[name]
    sys.modules.update(modules)
    return found


@pytest.fixture
def stack(aws: Calls, catalogue: Catalogue) -> Stack:
    """A server with the example tools, and its table."""
    return Stack(aws, catalogue)


@pytest.fixture
def unlimited(stack: Stack) -> Stack:
    """The same, which takes no places: a create is a row and a start."""
    stack.environment["LIMITS"] = Limits(
        max_open_tasks=0,
        creations_per_minute=0,
        polls_per_second=0,
        max_open_subscriptions=0,
        new_subscriptions_per_minute=0,
        max_open_calls=0,
    ).to_json()
    stack.serve()
    return stack


def _tools() -> dict[str, ModuleType]:
    if PACKAGE not in sys.modules:  # looking through thousands of names costs more than most tests
        return {}
    names = [name for name in sys.modules if name.startswith(PACKAGE)]
    return {n: sys.modules[n] for n in names if n == PACKAGE or n.startswith(f"{PACKAGE}.")}
