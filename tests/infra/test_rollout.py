"""`rollout=`, `provisioned=` and `snapstart=`: published versions of what a request waits for."""

from __future__ import annotations

import re
from typing import Any

import pytest

from infra.operation_options import DEPLOYMENT_CONFIGS
from infra.settings import Settings
from mcp_tasks.registry.catalogue import Catalogue
from tests.infra.assembly import Assembly
from tests.infra.conftest import OAUTH, ONE_ADDRESS
from tests.paths import ROOT

ALIAS = "AWS::Lambda::Alias"
VERSION = "AWS::Lambda::Version"


@pytest.fixture(scope="session")
def rollout(assemblies: dict[str, Assembly]) -> Assembly:
    """`-c auth=oauth -c rollout=Canary10Percent5Minutes -c provisioned=2`."""
    assert assemblies["rollout"].error is None, assemblies["rollout"].error
    return assemblies["rollout"]


@pytest.fixture(scope="session")
def snapstart(assemblies: dict[str, Assembly]) -> Assembly:
    """`-c auth=oauth -c streaming=true -c domain=mcp.example.com -c snapstart=on`."""
    assert assemblies["snapstart"].error is None, assemblies["snapstart"].error
    return assemblies["snapstart"]


def _uris(assembly: Assembly) -> set[str]:
    """What API Gateway calls: of its methods and of its authorizers."""
    methods = assembly.resources("AWS::ApiGateway::Method").values()
    uris = [m["Integration"]["Uri"] for m in methods if m["Integration"]["Type"] == "AWS_PROXY"]
    authorizers = assembly.resources("AWS::ApiGateway::Authorizer").values()
    return {
        uri.split("functions/")[1] for uri in [*uris, *(a["AuthorizerUri"] for a in authorizers)]
    }


def _resource(assembly: Assembly, kind: str, path: str) -> dict[str, Any]:
    """A resource with what stands beside its properties."""
    (found,) = (
        resource
        for resource in assembly.template["Resources"].values()
        if resource["Type"] == kind
        and resource["Metadata"]["aws:cdk:path"].removeprefix(f"{assembly.stack}/") == path
    )
    return dict(found)


def test_nothing_is_published_unless_an_option_needs_it(on_aws: Assembly) -> None:
    assert on_aws.resources(ALIAS) == on_aws.resources(VERSION) == {}


def test_api_gateway_calls_the_aliases(rollout: Assembly) -> None:
    assert _uris(rollout) == {
        "<Api/Function/Alias>/invocations",
        "<Authorizer/Function/Alias>/invocations",
    }
    permitted = {
        permission["FunctionName"]
        for permission in rollout.resources("AWS::Lambda::Permission").values()
        if permission["Principal"] == "apigateway.amazonaws.com"
    }
    assert permitted == {"<Api/Function/Alias>", "<Authorizer/Function/Alias>"}


@pytest.mark.parametrize("job", ["rollout", "snapstart", "streaming", "domain", "open"])
def test_api_gateway_may_call_before_its_stage_does(
    assemblies: dict[str, Assembly], job: str
) -> None:
    """A permission that refers to the stage comes after it. When a deployment replaces permissions,
    because another function or alias is called, all requests would get 500 until then.
    """
    assembly = assemblies[job]
    resources = assembly.template["Resources"]
    permissions = {
        name
        for name, each in resources.items()
        if each["Type"] == "AWS::Lambda::Permission"
        if each["Properties"]["Principal"] == "apigateway.amazonaws.com"
    }
    waits: set[str] = set()
    for resource in resources.values():
        if resource["Type"] == "AWS::ApiGateway::Deployment":
            waits.update(resource["DependsOn"])
    assert permissions
    assert permissions <= waits
    for name in permissions:
        source = assembly.readable(resources[name]["Properties"]["SourceArn"])
        assert re.search("RestApi>/(v1/(POST|GET|DELETE|OPTIONS)/mcp|authorizers/<.*>)$", source)


def test_codedeploy_shifts_requests_to_the_new_version_of_api_alone(rollout: Assembly) -> None:
    """CloudFormation user guide, "UpdatePolicy attribute": CodeDeployLambdaAliasUpdate."""
    (group,) = rollout.resources("AWS::CodeDeploy::DeploymentGroup").values()
    config = "CodeDeployDefault.LambdaCanary10Percent5Minutes"
    assert group["DeploymentConfigName"] == config
    # `operations/preflight/alias_routing.py` finds it by this reference.
    assert group["ApplicationName"] == "<Api/Rollout/Group/Application>"
    policy = _resource(rollout, ALIAS, "Api/Function/Alias/Resource")["UpdatePolicy"]
    assert set(policy) == {"CodeDeployLambdaAliasUpdate"}
    assert "UpdatePolicy" not in _resource(rollout, ALIAS, "Authorizer/Function/Alias/Resource")


def test_an_alarm_on_the_servers_errors_rolls_back(rollout: Assembly) -> None:
    (group,) = rollout.resources("AWS::CodeDeploy::DeploymentGroup").values()
    assert group["AutoRollbackConfiguration"] == {
        "Enabled": True,
        "Events": [
            "DEPLOYMENT_FAILURE",
            "DEPLOYMENT_STOP_ON_REQUEST",
            "DEPLOYMENT_STOP_ON_ALARM",
        ],
    }
    alarms = group["AlarmConfiguration"]
    assert alarms == {"Alarms": [{"Name": "<Api/RolloutServerErrors>"}], "Enabled": True}
    alarm = rollout.resources("AWS::CloudWatch::Alarm")["Api/RolloutServerErrors"]
    assert (alarm["Namespace"], alarm["MetricName"]) == ("AWS/ApiGateway", "5XXError")
    assert (alarm["Statistic"], alarm["Threshold"], alarm["Period"]) == ("Average", 0.02, 60)
    assert alarm["EvaluationPeriods"] == 2


def test_instances_are_provisioned_for_what_a_request_waits_for(rollout: Assembly) -> None:
    aliases = rollout.resources(ALIAS)
    assert aliases.keys() == {"Api/Function/Alias", "Authorizer/Function/Alias"}
    for alias in aliases.values():
        provisioned = alias["ProvisionedConcurrencyConfig"]
        assert provisioned == {"ProvisionedConcurrentExecutions": 2}
        assert alias["Name"] == "live"


def test_snapshots_are_of_the_functions_that_do_not_stream(snapstart: Assembly) -> None:
    functions = snapstart.resources("AWS::Lambda::Function")
    snapped = {path: f["SnapStart"]["ApplyOn"] for path, f in functions.items() if "SnapStart" in f}
    assert snapped == {
        "Api/Function": "PublishedVersions",
        "Authorizer/Function": "PublishedVersions",
    }
    assert _uris(snapstart) == {
        "<Api/Function/Alias>/invocations",
        "<SubscriptionsApi/Function.Arn>/response-streaming-invocations",
        "<Authorizer/Function/Alias>/invocations",
    }


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (
            {"snapstart": "on", "provisioned": "1"},
            r"^-c snapstart=on: Lambda has it without provisioned= only; choose one",
        ),
        (
            {"snapstart": "on", "streaming": "true"},
            r"^-c snapstart=on: the runtime that streams cannot be restored from a snapshot",
        ),
        (
            {"provisioned": "51"},
            r"^-c provisioned=51: more than the 50 instances that `authorize` reserves",
        ),
        ({"rollout": "Canary"}, r"^-c rollout=Canary: one of Canary10Percent5Minutes, "),
    ],
)
def test_what_lambda_cannot_do_is_refused(given: dict[str, str], error: str) -> None:
    with pytest.raises(ValueError, match=error):
        Settings.from_context((OAUTH | given).get, ROOT).check(Catalogue([]))


def test_with_a_domain_only_subscriptions_stream_and_api_may_start_from_a_snapshot() -> None:
    settings = Settings.from_context((OAUTH | ONE_ADDRESS | {"snapstart": "on"}).get, ROOT)
    assert settings.rollout.snapstart


@pytest.mark.parametrize("name", DEPLOYMENT_CONFIGS)
def test_every_predefined_configuration_can_be_chosen(name: str) -> None:
    settings = Settings.from_context((OAUTH | {"rollout": name}).get, ROOT)
    assert settings.rollout.deployment_config == name
