"""The stacks that tests use. Each is deployed once per run, in the background."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, Final

from local.deployment import LocalStack, deploy
from local.emulator import Emulator
from local.environment import ROOT, STATE
from tests.integration.support.aws import client_of
from tests.integration.support.issuer import AUDIENCE, Issuer
from tests.integration.support.legacy import create_legacy_report
from tests.integration.support.redeploy import Redeployed, redeployed
from tests.limits import RAISED
from tests.paths import PLATFORM_TOOLS

INTEGRATION: Final = Path(__file__).parents[1]
CONCURRENT_DEPLOYMENTS: Final = 2
"""Synthesis takes most of the time, and a core."""
SCOPE: Final = "mcp"
"""The scope that every token for `guarded` needs."""
GUARDED_MAX_TASKS: Final = 25
"""Of a caller of `guarded`."""
DEPLOY_SECONDS: Final = 240
"""How long a test waits for a deployment."""


def _conformance(emulator: Emulator, issuer: Issuer) -> LocalStack:
    tools = ROOT / "tests" / "conformance" / "tools"
    return deploy(emulator, tools, "mcp-conformance", {"cell": "c2", **RAISED})


def _platform(emulator: Emulator, issuer: Issuer) -> LocalStack:
    aws = client_of(emulator)
    create_legacy_report(aws("stepfunctions"), aws("iam"))
    tools = _merged("tools", PLATFORM_TOOLS, INTEGRATION / "tools")
    return deploy(emulator, tools, "mcp-test", RAISED)


def _chaotic(emulator: Emulator, issuer: Issuer) -> LocalStack:
    tools = ROOT / "tests" / "campaigns" / "chaos" / "tools"
    return deploy(emulator, tools, "mcp-chaos", {"cell": "c4", **RAISED})


def _guarded(emulator: Emulator, issuer: Issuer) -> LocalStack:
    tools = _merged("guarded_tools", INTEGRATION / "guarded_tools")
    shutil.copytree(INTEGRATION / "tools" / "walk", tools / "walk")
    access = {"auth": "oauth", "issuer": issuer.url, "audience": AUDIENCE, "scopes": SCOPE}
    limits = {"max_tasks": str(GUARDED_MAX_TASKS)}
    # A call with a spoiled capability would be answered with the result of a task.
    refusing = {"companion_tools": "off"}
    return deploy(emulator, tools, "mcp-guarded", {"cell": "c3", **access, **limits, **refusing})


def _sample_tools(emulator: Emulator, issuer: Issuer) -> LocalStack:
    return deploy(emulator, ROOT / "functions" / "tools", "mcp-tools", {"cell": "c6", **RAISED})


def _redeployed(emulator: Emulator, issuer: Issuer) -> Redeployed:
    return redeployed(emulator)


def _merged(name: str, *folders: Path) -> Path:
    tools = STATE / "test" / name
    shutil.rmtree(tools, ignore_errors=True)
    for folder in folders:
        shutil.copytree(folder, tools, dirs_exist_ok=True)
    return tools


DEPLOYED: Final[dict[str, Callable[[Emulator, Issuer], LocalStack | Redeployed]]] = {
    "stack": _platform,
    "guarded": _guarded,
    "redeployed": _redeployed,
    "conformance_stack": _conformance,
    "chaotic": _chaotic,
    "tools_stack": _sample_tools,
}
"""How each stack is deployed, by its fixture, in the order in which tests need them."""


class Stacks:
    """Stacks that are deployed in the background, until the context ends."""

    def __init__(self, emulator: Emulator, issuer: Issuer, wanted: Collection[str]) -> None:
        self._pool = ThreadPoolExecutor(CONCURRENT_DEPLOYMENTS)
        self._deployed: dict[str, Future[Any]] = {
            name: self._pool.submit(deploying, emulator, issuer)
            for name, deploying in DEPLOYED.items()
            if name in wanted
        }

    def __enter__(self) -> Stacks:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def __getitem__(self, fixture: str) -> Any:
        """Wait for the stack of a fixture. Raises CommandError or TimeoutError."""
        return self._deployed[fixture].result(DEPLOY_SECONDS)

    def wait(self) -> None:
        """Wait until no stack is being deployed."""
        wait(self._deployed.values(), DEPLOY_SECONDS)
