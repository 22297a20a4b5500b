"""What all tests share: which process runs them, and the emulator with the deployed stacks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from local import emulator as emulators
from local import emulator_record, uv
from local.deployment import LocalStack
from local.emulator import Emulator
from tests.integration.support.aws import client_of
from tests.integration.support.issuer import Issuer
from tests.integration.support.stacks import Stacks
from tests.paths import EMULATOR_RECORD
from tests.workers import EMULATOR, Pieces, piece, rank


def pytest_configure(config: pytest.Config) -> None:
    """`-m "not emulator"` leaves out the tests of deployed stacks."""
    config.addinivalue_line("markers", "emulator: set on every test that uses the emulator")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest comes first; but last of its piece what waits for all deployments."""

    def place(item: pytest.Item) -> tuple[int, bool]:
        return rank(item.nodeid), "all_deployed" in getattr(item, "fixturenames", ())

    for item in items:
        if "emulator" in getattr(item, "fixturenames", ()):
            item.add_marker("emulator")
    items.sort(key=place)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Pieces:
    """Which process runs what."""
    return Pieces(config, log)


@pytest.fixture(scope="session")
def emulator(request: pytest.FixtureRequest) -> Iterator[Emulator]:
    """A running emulator, stopped at the end. Only one process may have it."""
    for item in request.session.items:
        if "emulator" in getattr(item, "fixturenames", ()) and piece(item.nodeid) != EMULATOR:
            pytest.fail(f"{item.nodeid} uses the emulator: it has to be in tests/integration")
    left_over = emulators.find("test")
    if left_over is not None:  # an earlier run was killed
        left_over.stop()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(emulator_record.FOLDER_VARIABLE, str(EMULATOR_RECORD))
        running = emulators.start("test")
    yield running
    running.stop()


@pytest.fixture(scope="session")
def uv_on_path() -> Iterator[None]:
    """The uv of the commands, also where pytest was started by hand."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", os.environ["PATH"])
        uv.put_on_path()
        yield


@pytest.fixture(scope="session")
def aws(emulator: Emulator) -> Any:
    """`boto3.client` for the emulator."""
    return client_of(emulator)


@pytest.fixture(scope="session")
def issuer() -> Iterator[Issuer]:
    """Who issues the tokens that `guarded` takes."""
    with Issuer() as running:
        yield running


@pytest.fixture(scope="session")
def stacks(request: pytest.FixtureRequest, emulator: Emulator, issuer: Issuer) -> Iterator[Stacks]:
    """The stacks that this run's tests need, deployed while the first of them run."""
    wanted = {name for item in request.session.items for name in getattr(item, "fixturenames", ())}
    with Stacks(emulator, issuer, wanted) as deploying:
        yield deploying


@pytest.fixture(scope="session")
def all_deployed(stacks: Stacks) -> None:
    """Nothing is deployed any more: for who kills the emulator's workers, or is in a hurry."""
    stacks.wait()


@pytest.fixture(scope="session")
def stack(stacks: Stacks) -> LocalStack:
    """The tools of tests/platform_tools and of tests/integration/tools."""
    found: LocalStack = stacks["stack"]
    return found


@pytest.fixture(scope="session")
def conformance_stack(stacks: Stacks) -> LocalStack:
    """The tools that the conformance suite expects; a second cell, next to `stack`, which is c1."""
    found: LocalStack = stacks["conformance_stack"]
    return found


@pytest.fixture(scope="session")
def tools_stack(stacks: Stacks) -> LocalStack:
    """The tools of functions/tools, deployed to the emulator: for tests/tools."""
    found: LocalStack = stacks["tools_stack"]
    return found
