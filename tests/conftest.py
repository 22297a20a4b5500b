"""The deployed stacks, shared by all tests that need them: one emulator per run."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from infra.local import emulator as emulators
from infra.local.deployment import LocalStack, deploy
from infra.local.emulator import Emulator
from tests.integration.aws import client_of
from tests.integration.legacy import create_legacy_report
from tests.limits import RAISED

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def emulator() -> Iterator[Emulator]:
    """A running emulator, stopped at the end."""
    left_over = emulators.find("test")
    if left_over is not None:  # an earlier run was killed
        left_over.stop()
    running = emulators.start("test")
    yield running
    running.stop()


@pytest.fixture(scope="session")
def aws(emulator: Emulator) -> Any:
    """`boto3.client` for the emulator."""
    return client_of(emulator)


@pytest.fixture(scope="session")
def _deployments(emulator: Emulator, aws: Any) -> Iterator[dict[str, Future[LocalStack]]]:
    """Both stacks, deployed at the same time; synthesis is most of it."""
    create_legacy_report(aws("stepfunctions"), aws("iam"))
    tools = ROOT / ".local" / "test" / "tools"
    shutil.rmtree(tools, ignore_errors=True)
    shutil.copytree(ROOT / "functions" / "tools", tools)
    shutil.copytree(ROOT / "tests" / "integration" / "tools", tools, dirs_exist_ok=True)
    conformance = ROOT / "tests" / "conformance" / "tools"
    with ThreadPoolExecutor(2) as pool:
        yield {
            "stack": pool.submit(deploy, emulator, tools, "mcp-test", RAISED),
            "conformance": pool.submit(
                deploy, emulator, conformance, "mcp-conformance", {"cell": "c2", **RAISED}
            ),
        }


@pytest.fixture(scope="session")
def stack(_deployments: dict[str, Future[LocalStack]]) -> LocalStack:
    """The sample tools and those of tests/integration/tools."""
    return _deployments["stack"].result()


@pytest.fixture(scope="session")
def conformance_stack(_deployments: dict[str, Future[LocalStack]]) -> LocalStack:
    """The tools that the conformance suite expects; a second cell, next to `stack`, which is c1."""
    return _deployments["conformance"].result()
