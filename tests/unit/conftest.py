"""What every unit test starts from: no AWS but moto's, and no tools left mounted by another test."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from moto import mock_aws

from mcp_tasks.registry.catalogue import PACKAGE, Catalogue
from mcp_tasks.tasks.rows import TaskTable
from tests.unit.aws import REGION, Calls, create_table
from tests.unit.stack import Stack

EXAMPLE_TOOLS = Path(__file__).with_name("example_tools")


@pytest.fixture(autouse=True)
def no_account(monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller's account, profile and endpoints must not leak into a test."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture(autouse=True)
def mounted_tools() -> Iterator[None]:
    """`Catalogue.discover` mounts a folder as the package `tools`; put back what was there."""
    before = _tools()
    yield
    for name in _tools():
        del sys.modules[name]
    sys.modules.update(before)


@pytest.fixture
def aws(no_account: None) -> Iterator[Calls]:
    """DynamoDB and Step Functions in moto, and the calls made to them."""
    with mock_aws():
        yield Calls()


@pytest.fixture
def rows(aws: Calls) -> TaskTable:
    """An empty tasks table."""
    return TaskTable(aws.client("dynamodb"), create_table())


@pytest.fixture(scope="session")
def example_modules() -> tuple[Catalogue, dict[str, object]]:
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
    mounted_tools: None, example_modules: tuple[Catalogue, dict[str, object]]
) -> Catalogue:
    """The example tools, mounted."""
    found, modules = example_modules
    for name in _tools():
        del sys.modules[name]
    sys.modules.update(modules)  # type: ignore[arg-type]
    return found


@pytest.fixture
def stack(aws: Calls, catalogue: Catalogue) -> Stack:
    """A server with the example tools, its table and its state machines."""
    return Stack(aws, catalogue)


def _tools() -> dict[str, object]:
    return {
        name: module
        for name, module in sys.modules.items()
        if name == PACKAGE or name.startswith(f"{PACKAGE}.")
    }
