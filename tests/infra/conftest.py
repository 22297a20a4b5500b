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
from tests.infra.fork import BAD_PERMISSIONS, write_fork
from tests.paths import PLATFORM_TOOLS, ROOT

CONTEXT = json.loads((ROOT / "cdk.json").read_text())["context"] | {
    "aws:cdk:enable-path-metadata": True,  # as the CDK's CLI sets it
    "stack": "mcp-tasks",
    "tools": str(PLATFORM_TOOLS),
}
IAM, OPEN = {"auth": "iam", "principal": "session"}, {"auth": "none"}
OAUTH = {"auth": "oauth", "issuer": "https://login.example/tenant/v2.0"}
ONE_ADDRESS = {"streaming": "true", "domain": "mcp.example.com"}
GIVEN_KEY = "arn:aws:kms:eu-west-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
EARLIER_KEY = GIVEN_KEY.replace("1234abcd", "4321dcba")
TOPIC = "arn:aws:sns:eu-west-1:111122223333:on-call"
EMAIL = "on-call@example.com"
TRACED = {"tracing": "on", "execution_log": "on"}
CERTIFICATE = "arn:aws:acm:eu-west-1:111122223333:certificate/1234abcd-12ab-34cd-56ef-1234567890ab"
ZONE = "Z0123456789ABCDEFGHIJ"
OTHER_LIMITS = {
    **{"max_creations": "9", "max_polls": "3", "max_calls": "4", "max_ttl_days": "20"},
    **{"max_subscriptions": "3", "max_new_subscriptions": "5"},
    **{"max_body": "200000", "max_arguments": "100000"},
}
JOBS: dict[str, dict[str, str]] = {
    "aws": IAM,
    "local": {"profile": "local"},
    "local again": {"profile": "local"},
    "open": {
        **OPEN,
        "access_log": "on",
        "log_messages": "on",
        "stack": "Open2",
        "cell": "eu",
        "origins": "https://one.example https://two.example",
        "hosts": "mcp.example *.mcp.example:8443",
    },
    "streaming": {**OAUTH, "streaming": "true", "access_log": "on"},
    "domain": {**OAUTH, **ONE_ADDRESS, "priority": "7", "scopes": "mcp tasks:read"},
    "local, domain": {"profile": "local", "domain": "mcp.example.com", "cell": "c2"},
    "fork": {
        **OAUTH,
        "tools": "fork",
        "stack": "fork",
        "url": "https://cdn.example.com/tools/mcp",
        "origins": "https://app.example.com",
        "audience": "https://cdn.example.com/tools/mcp api://mcp",
        "max_tasks": "7",
        "max_depth": "20",
        "max_workers": "7",
        "max_values": "2000",
        "rate": "50",
        "burst": "60",
    },
    "no tasks": {
        **IAM,
        "tools": "no tasks",
        "dashboard": "off",
        "domain": "a.example.com",
        "certificate": CERTIFICATE,
    },
    "wrapped": {**IAM, "tools": "wrapped", "stack": "x" * 28},
    "own key": {
        **OAUTH,
        **ONE_ADDRESS,
        "hosted_zone": ZONE,
        "access_log": "on",
        "alarms": EMAIL,
        "budget": "200",
        "tool_metrics": "on",
        "encryption": "customer",
    },
    "earlier key": {**IAM, "earlier_keys": EARLIER_KEY},
    "given key": {**IAM, "encryption": GIVEN_KEY, "reserved": "off", "alarms": TOPIC},
    "traced": {**OAUTH, **ONE_ADDRESS, **TRACED, "encryption": "customer", "alarms": "off"},
    "rollout": {**OAUTH, "rollout": "Canary10Percent5Minutes", "provisioned": "2"},
    "snapstart": {
        **OAUTH,
        **ONE_ADDRESS,
        "snapstart": "on",
        "scopes": "mcp tasks:read",
        "scope_prefix": "api://mcp/",
    },
    "all at once": {
        **OAUTH,
        **ONE_ADDRESS,
        **TRACED,
        "hosted_zone": ZONE,
        "access_log": "on",
        "log_messages": "on",
        "encryption": "customer",
        "earlier_keys": EARLIER_KEY,
        "alarms": EMAIL,
        "budget": "1000000",
        "tool_metrics": "on",
        "rollout": "Linear10PercentEvery1Minute",
        "snapstart": "on",
        "origins": "https://app.example.com https://*.example.org",
        "token_typ": "at+jwt",
        **OTHER_LIMITS,
    },
    "thrown away": {
        "auth": "iam",
        "principal": "role",
        "quota_per": "role",
        "companion_tools": "off",
        "provisioned": "1",
        "tracing": "on",
        "log_messages": "on",
        "encryption": GIVEN_KEY,
        "data": "destroy",
    },
    "nothing accepted": {**IAM, "tools": "fork"},
    "nothing accepted, open": {
        **OPEN,
        "access_log": "on",
        "rollout": "Linear10PercentEvery1Minute",
    },
    "nothing accepted, domain": {**OAUTH, **ONE_ADDRESS, **TRACED},
    "refused: no auth": {},
    "refused: path": {**OAUTH, "tools": "no tasks", "url": "https://cdn.example.com/~a/mcp"},
    "refused: scopes": {**IAM, "tools": "scopes"},
    **{f"refused: {kind}": {**IAM, "tools": f"bad {kind}"} for kind in BAD_PERMISSIONS},
    "refused: all actions": {**IAM, "tools": "all actions"},
}
VARIANTS = {
    name: chosen
    for name, chosen in JOBS.items()
    if not name.startswith(("nothing accepted", "refused")) and "profile" not in chosen
}
"""What may be deployed to AWS: cdk-nag and cfn-lint read each (`test_variants.py`)."""


@pytest.fixture(scope="session", autouse=True)
def _uv_on_path(uv_on_path: None) -> None:
    """Every synthesis asks uv what the functions need."""


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
        name: Assembly(Path(job["out"]), job["context"]["stack"], **outcome)
        for name, job, outcome in zip(JOBS, jobs, outcomes, strict=True)
    }


def _good(assembly: Assembly) -> Assembly:
    assert assembly.error is None, assembly.error
    return assembly


@pytest.fixture(scope="session")
def on_aws(assemblies: dict[str, Assembly]) -> Assembly:
    """`-c auth=iam`, and all else by default."""
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
    """`-c auth=oauth -c streaming=true -c access_log=on`: one gateway, which streams."""
    return _good(assemblies["streaming"])


@pytest.fixture(scope="session")
def behind_a_domain(assemblies: dict[str, Assembly]) -> Assembly:
    """`-c auth=oauth -c scopes="mcp tasks:read" -c streaming=true -c domain=mcp.example.com
    -c priority=7`: two gateways, and rules.
    """
    return _good(assemblies["domain"])


@pytest.fixture(scope="session")
def second_cell(assemblies: dict[str, Assembly]) -> Assembly:
    """`-c profile=local -c cell=c2`, behind the same domain, with no priority and no streaming."""
    return _good(assemblies["local, domain"])


@pytest.fixture(scope="session")
def fork(assemblies: dict[str, Assembly]) -> Assembly:
    """A tools folder with a tool of every kind, resources, and a prompt; behind a CDN, with
    `-c auth=oauth` and limits of its own.
    """
    return _good(assemblies["fork"])


@pytest.fixture(scope="session")
def with_own_key(assemblies: dict[str, Assembly]) -> Assembly:
    """`-c encryption=customer -c alarms=on-call@example.com -c budget=200 -c tool_metrics=on
    -c hosted_zone=...`, with all that the other options add.
    """
    return _good(assemblies["own key"])


@pytest.fixture(scope="session")
def with_given_key(assemblies: dict[str, Assembly]) -> Assembly:
    """`-c auth=iam -c encryption=arn:aws:kms:... -c alarms=arn:aws:sns:...`."""
    return _good(assemblies["given key"])


@pytest.fixture(scope="session")
def many_wrapped(assemblies: dict[str, Assembly]) -> Assembly:
    """A tools folder that wraps 36 state machines, two of which have a KMS key."""
    return _good(assemblies["wrapped"])


@pytest.fixture(scope="session")
def thrown_away(assemblies: dict[str, Assembly]) -> Assembly:
    """`-c auth=iam -c data=destroy -c encryption=arn:aws:kms:... -c provisioned=1`, with traces and
    messages.
    """
    return _good(assemblies["thrown away"])


@pytest.fixture(scope="session")
def with_earlier_key(assemblies: dict[str, Assembly]) -> Assembly:
    """`-c auth=iam -c earlier_keys=arn:aws:kms:...`: keys that AWS manages, after another key."""
    return _good(assemblies["earlier key"])


@pytest.fixture(scope="session")
def traced(assemblies: dict[str, Assembly]) -> Assembly:
    """`-c tracing=on -c execution_log=on -c encryption=customer -c alarms=off`, behind a domain."""
    return _good(assemblies["traced"])


@pytest.fixture(scope="session")
def no_tasks(assemblies: dict[str, Assembly]) -> Assembly:
    """A tools folder whose tools all run within the request, behind a domain that the stack creates
    with a given certificate.
    """
    return _good(assemblies["no tasks"])


@pytest.fixture
def no_tools_left() -> Iterator[None]:
    """Tools that a test imports are not there for the next."""
    yield
    for name in [n for n in sys.modules if n == PACKAGE or n.startswith(f"{PACKAGE}.")]:
        del sys.modules[name]
