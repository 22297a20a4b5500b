"""`-c data=`: what is protected from deletion, and what outlives a stack."""

from __future__ import annotations

import json
from typing import Any

from tests.infra.assembly import Assembly

TABLES, LOGS = "AWS::DynamoDB::Table", "AWS::Logs::LogGroup"
RECOVERABLE = {"Tasks/Table", "Callers/Table", "Journal/Table"}
"""Tables with something to recover; the others hold what lives for minutes."""


def _policies(assembly: Assembly, kind: str) -> dict[str, tuple[Any, Any, Any]]:
    """Construct path -> deletion policy, update policy, deletion protection."""
    resources = assembly.template["Resources"].values()
    found = [resource for resource in resources if resource["Type"] == kind]
    return {
        path: (
            resource.get("DeletionPolicy"),
            resource.get("UpdateReplacePolicy"),
            resource["Properties"].get("DeletionProtectionEnabled"),
        )
        for path, resource in zip(assembly.resources(kind), found, strict=True)
    }


def _protected(assembly: Assembly) -> bool:
    """Whether the CDK's CLI turns termination protection on."""
    artifacts = json.loads((assembly.folder / "manifest.json").read_text())["artifacts"]
    protected: bool = artifacts[assembly.stack]["properties"].get("terminationProtection", False)
    return protected


def test_on_aws_tables_and_the_audit_log_are_protected_and_outlive_the_stack(
    on_aws: Assembly, with_own_key: Assembly
) -> None:
    """`Retain`: a rollback of a first deployment must not try to delete what is protected."""
    for assembly in (on_aws, with_own_key):
        kept = {path: p for path, p in _policies(assembly, TABLES).items() if path in RECOVERABLE}
        assert kept.keys() == RECOVERABLE
        logs = _policies(assembly, LOGS)
        functions = assembly.resources("AWS::Lambda::Function")
        assert len(logs) >= len(functions)
        assert {*kept.values(), *logs.values()} == {("Retain", "Retain", True)}
        assert _protected(assembly)


def test_logs_of_errors_alone_go_with_their_option(traced: Assembly, open_server: Assembly) -> None:
    """The log of executions has a fixed name: left behind, it would fail the deployment that makes
    it again. The tracebacks' key goes with the option, and without it they are unreadable."""
    gone = ("Delete", "Delete", False)
    assert _policies(traced, LOGS)["Executions/Logs"] == gone
    assert _policies(open_server, LOGS)["Tracebacks/Logs"] == gone
    (key,) = [r for r in open_server.template["Resources"].values() if r["Type"] == "AWS::KMS::Key"]
    assert key["DeletionPolicy"] == "Delete"


def test_every_table_that_can_be_recovered_is_kept_and_no_other(on_aws: Assembly) -> None:
    tables = on_aws.resources(TABLES)
    assert {path for path, t in tables.items() if "PointInTimeRecoverySpecification" in t} == (
        RECOVERABLE
    )
    others = {p for path, p in _policies(on_aws, TABLES).items() if path not in RECOVERABLE}
    assert others == {("Delete", "Delete", None)}


def _kept_types(assembly: Assembly) -> set[str]:
    resources = assembly.template["Resources"].values()
    return {r["Type"] for r in resources if "Retain" in r.get("DeletionPolicy", "")}


def test_nothing_else_outlives_its_stack(on_aws: Assembly, with_own_key: Assembly) -> None:
    """What is left over and holds nothing costs something every month."""
    assert _kept_types(on_aws) == {"AWS::S3::Bucket", TABLES, LOGS}
    shared = {  # with other cells; they cost nothing (test_custom_domain.py)
        "AWS::ApiGateway::DomainName",
        "AWS::CertificateManager::Certificate",
        "AWS::Route53::RecordSet",
    }
    assert _kept_types(with_own_key) == {"AWS::S3::Bucket", "AWS::KMS::Key", TABLES, LOGS, *shared}


def test_a_stack_to_throw_away_leaves_only_its_bucket(
    thrown_away: Assembly, on_this_machine: Assembly
) -> None:
    """The bucket, because S3 removes only empty ones."""
    for assembly in (thrown_away, on_this_machine):
        policies = {**_policies(assembly, TABLES), **_policies(assembly, LOGS)}
        for path, policy in policies.items():
            live_for_minutes = path in ("Mailboxes/Table", "Sessions/Table")
            assert policy == ("Delete", "Delete", None if live_for_minutes else False), path
        assert not _protected(assembly)
        assert _kept_types(assembly) == {"AWS::S3::Bucket"}
