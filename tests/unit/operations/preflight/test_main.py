"""`make preflight` runs every check, and deploys nothing when one of them refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from operations.preflight.__main__ import CHECKS, preflight
from operations.preflight.check import Check, Finding
from operations.preflight.deployment import Deployment, account
from tests.paths import ROOT

REGION = "eu-west-1"


def no_client(service: str) -> Any:
    raise AssertionError(service)


DEPLOYMENT = Deployment("notes", {}, no_client, REGION)


def denied(deployment: Deployment) -> Finding:
    """A check that may not read."""
    raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "GetTemplate")


def test_every_check_is_run_although_one_refuses(capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever deploys mends all of it at once."""
    checks = (
        Check("a", lambda _: Finding("the first says no", refused=True)),
        Check("b", lambda _: Finding("the second is content")),
        Check("c", lambda _: Finding("the third says no", refused=True)),
    )
    assert preflight(DEPLOYMENT, checks) == 1
    out, err = capsys.readouterr()
    assert out == "the second is content\n"
    assert "error: nothing was deployed, because the first says no" in err
    assert "error: nothing was deployed, because the third says no" in err


def test_whoever_may_not_read_is_told_and_may_deploy(capsys: pytest.CaptureFixture[str]) -> None:
    """The CDK deploys with roles of its own, and CloudFormation decides."""
    assert preflight(DEPLOYMENT, (Check("it fits", denied),)) == 0
    assert "WARNING: not checked whether it fits: An error occurred (AccessDenied)" in (
        capsys.readouterr().out
    )


def test_every_check_s_module_is_run() -> None:
    parts = {"__main__", "account_quotas", "check", "deployment", "routing_rules", "stack_load"}
    modules = {file.stem for file in (ROOT / "operations" / "preflight").glob("*.py")} - parts
    assert {check.run.__module__.rpartition(".")[2] for check in CHECKS} == modules


def test_it_asks_where_the_cdk_deploys(monkeypatch: pytest.MonkeyPatch) -> None:
    """The CDK's CLI prefers AWS_REGION, which boto3 does not read."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-west-2")
    assert account()[1] == "us-west-2"
    monkeypatch.setenv("AWS_REGION", REGION)
    assert account()[1] == REGION


def test_the_assembly_names_the_stack(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(
        '{"artifacts": {"A": {"type": "aws:cloudformation:stack",'
        ' "properties": {"templateFile": "a.json", "stackName": "notes"}}}}'
    )
    (tmp_path / "a.json").write_text('{"Resources": {}}')
    deployment = Deployment.read(tmp_path, no_client, REGION)
    assert (deployment.stack, deployment.template) == ("notes", {"Resources": {}})
