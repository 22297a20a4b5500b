"""cdk-nag, cfn-lint and the CDK itself have nothing to say about the template."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.infra.assembly import Assembly
from tests.infra.conftest import VARIANTS

NOTHING_ACCEPTED = ["nothing accepted", "nothing accepted, open", "nothing accepted, domain"]
CFN_LINT = "import sys, cfnlint.runner; sys.exit(cfnlint.runner.main())"


def _cfn_lint(*templates: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", CFN_LINT, "--format", "parseable", *templates],
        capture_output=True,
        text=True,
        check=False,
    )


def test_cfn_lint_finds_nothing(assemblies: dict[str, Assembly]) -> None:
    templates = [assemblies[name].template_file for name in VARIANTS]
    run = _cfn_lint(*templates)
    assert (run.stdout, run.returncode) == ("", 0)


def test_cfn_lint_reads_the_state_machines(on_aws: Assembly, tmp_path: Path) -> None:
    template = json.loads(on_aws.template_file.read_text())
    for resource in template["Resources"].values():
        if resource["Type"] == "AWS::StepFunctions::StateMachine":
            definition = resource["Properties"]["DefinitionString"]
            resource["Properties"]["DefinitionString"] = definition.replace('"Task"', '"Tusk"')
    broken = tmp_path / "broken.template.json"
    broken.write_text(json.dumps(template))
    assert "E3601" in _cfn_lint(broken).stdout


def test_only_two_cfn_lint_rules_are_ignored(on_aws: Assembly, tmp_path: Path) -> None:
    """W3005: the CDK writes dependencies out that references imply. E3601, for function tools only,
    wants `arn:aws:`, and a number where Step Functions takes an expression. It finds nothing else.
    """
    config = on_aws.template["Metadata"]["cfn-lint"]["config"]
    assert config == {"ignore_checks": ["W3005"]}
    template = json.loads(on_aws.template_file.read_text())
    without = {n: r["Metadata"].pop("cfn-lint", None) for n, r in template["Resources"].items()}
    (name,) = (each for each, config in without.items() if config is not None)
    assert without[name] == {"config": {"ignore_checks": ["E3601"]}}
    assert name.startswith("Toolsestimatesavings")
    strict = tmp_path / "strict.template.json"
    strict.write_text(json.dumps(template))
    findings = [line for line in _cfn_lint(strict).stdout.splitlines() if line]
    assert len(findings) == 4
    for found in findings:
        assert "E3601" in found
        assert (
            "is not of type 'number' at 'States/Subtasks/MaxConcurrency'" in found
            or "'arn:${partition}:states:::lambda:invoke.waitForTaskToken' does not match" in found
        )


@pytest.mark.parametrize("name", [name for name in VARIANTS if name != "open"])
def test_cdk_nag_finds_nothing(assemblies: dict[str, Assembly], name: str) -> None:
    """Two are OAuth at API Gateway's own host, of which the CDK's CLI warns."""
    assert assemblies[name].error is None
    warned = [("mcp-tasks", "Annotation::mcp-tasks:discovery")]
    assert assemblies[name].violations == (warned if name in ("streaming", "rollout") else [])


def test_an_open_server_on_aws_is_warned_of_and_nothing_else_is_found(
    open_server: Assembly, on_this_machine: Assembly
) -> None:
    """The CDK's CLI prints its annotations before it deploys. The emulator is open by default."""
    assert open_server.violations == [("Open2", "Annotation::mcp-tasks:open")]
    assert on_this_machine.violations == []


@pytest.mark.parametrize("name", NOTHING_ACCEPTED)
def test_a_finding_of_cdk_nag_fails_the_synth(assemblies: dict[str, Assembly], name: str) -> None:
    assert "ValidationFailed" in str(assemblies[name].error)


@pytest.mark.parametrize("name", NOTHING_ACCEPTED)
def test_every_accepted_finding_is_there(assemblies: dict[str, Assembly], name: str) -> None:
    """An acceptance that matches nothing would hide tomorrow's finding."""
    violations = assemblies[name].violations
    unneeded = [
        (construct, finding)
        for construct, finding in assemblies[name].accepted
        if not any(
            rule == finding and f"{path}/".startswith(f"{construct}/") for path, rule in violations
        )
    ]
    assert unneeded == []


def test_wildcards_are_accepted_one_by_one(assemblies: dict[str, Assembly]) -> None:
    """Never AwsSolutions-IAM5 as a whole, and nothing for the whole stack."""
    accepted = assemblies["nothing accepted"].accepted
    wildcards = {finding for _, finding in accepted if "IAM5" in finding}
    assert wildcards
    assert all(finding.startswith("AwsSolutions-IAM5[Resource::arn:") for finding in wildcards)
    assert all("/" in construct for construct, _ in accepted)


def test_every_feature_flag_that_the_cdk_recommends_is_set(on_aws: Assembly) -> None:
    """As the CLI counts them for its "feature flags are not configured"."""
    unset = {
        name
        for name, flag in on_aws.flags.items()
        if "userValue" not in flag
        and flag.get("unconfiguredBehavesLike", {}).get("v2", False) != flag["recommendedValue"]
    }
    assert unset == set()
