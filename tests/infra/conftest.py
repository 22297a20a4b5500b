"""The stack, synthesized once per run in every way that the tests look at."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcp_tasks.registry.catalogue import PACKAGE
from tests.infra.assembly import Assembly
from tests.infra.fork import write_fork

ROOT = Path(__file__).resolve().parent.parent.parent
CONTEXT = json.loads((ROOT / "cdk.json").read_text())["context"] | {
    "aws:cdk:enable-path-metadata": True,  # as the CDK's CLI sets it
}
JOBS: dict[str, dict[str, str]] = {
    "aws": {},
    "local": {"profile": "local"},
    "local again": {"profile": "local"},
    "open": {
        "auth": "none",
        "access_log": "on",
        "stack": "Open2",
        "cell": "eu",
        "origins": "https://one.example https://two.example",
        "hosts": "mcp.example *.mcp.example:8443",
    },
    "streaming": {"streaming": "true"},
    "domain": {"streaming": "true", "domain": "mcp.example.com", "priority": "7"},
    "local, domain": {"profile": "local", "domain": "mcp.example.com", "cell": "c2"},
    "fork": {"tools": "fork", "stack": "fork"},
    "no tasks": {"tools": "no tasks"},
    "nothing accepted": {"tools": "fork"},
    "nothing accepted, open": {"auth": "none", "access_log": "on"},
    "nothing accepted, domain": {"streaming": "true", "domain": "mcp.example.com"},
}


@pytest.fixture(scope="session")
def assemblies(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Assembly]:
    """Every job's assembly, good or not."""
    folder = tmp_path_factory.mktemp("synth")
    tools = write_fork(folder / "tools")
    jobs = []
    for name, chosen in JOBS.items():
        context = CONTEXT | chosen
        if "tools" in chosen:
            context["tools"] = str(tools / chosen["tools"])
        accept = not name.startswith("nothing accepted")
        jobs.append({"out": str(folder / name), "context": context, "accept": accept})
    (folder / "jobs.json").write_text(json.dumps(jobs))
    run = subprocess.run(
        [
            *(sys.executable, "-m", "tests.infra.synthesize"),
            *(folder / "jobs.json", folder / "outcomes.json"),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    outcomes = json.loads((folder / "outcomes.json").read_text())
    return {
        name: Assembly(Path(job["out"]), job["context"].get("stack", "mcp-tasks"), **outcome)
        for name, job, outcome in zip(JOBS, jobs, outcomes, strict=True)
    }


def _good(assembly: Assembly) -> Assembly:
    assert assembly.error is None, assembly.error
    return assembly


@pytest.fixture(scope="session")
def on_aws(assemblies: dict[str, Assembly]) -> Assembly:
    """What `cdk deploy` deploys."""
    return _good(assemblies["aws"])


@pytest.fixture(scope="session")
def on_this_machine(assemblies: dict[str, Assembly]) -> Assembly:
    """What the emulator gets."""
    return _good(assemblies["local"])


@pytest.fixture(scope="session")
def open_server(assemblies: dict[str, Assembly]) -> Assembly:
    """`-c auth=none -c access_log=on`, with a name, a cell, origins and hosts of its own."""
    return _good(assemblies["open"])


@pytest.fixture(scope="session")
def streaming(assemblies: dict[str, Assembly]) -> Assembly:
    """`-c streaming=true`: one gateway, which streams."""
    return _good(assemblies["streaming"])


@pytest.fixture(scope="session")
def behind_a_domain(assemblies: dict[str, Assembly]) -> Assembly:
    """`-c streaming=true -c domain=mcp.example.com -c priority=7`: two gateways, and rules."""
    return _good(assemblies["domain"])


@pytest.fixture(scope="session")
def second_cell(assemblies: dict[str, Assembly]) -> Assembly:
    """`-c profile=local -c cell=c2`, behind the same domain, with no priority and no streaming."""
    return _good(assemblies["local, domain"])


@pytest.fixture(scope="session")
def fork(assemblies: dict[str, Assembly]) -> Assembly:
    """A tools folder with a tool of every kind, resources, and a prompt."""
    return _good(assemblies["fork"])


@pytest.fixture(scope="session")
def no_tasks(assemblies: dict[str, Assembly]) -> Assembly:
    """A tools folder whose tools all run within the request."""
    return _good(assemblies["no tasks"])


@pytest.fixture
def no_tools_left() -> Iterator[None]:
    """Tools that a test imports are not there for the next."""
    yield
    for name in [n for n in sys.modules if n == PACKAGE or n.startswith(f"{PACKAGE}.")]:
        del sys.modules[name]
