"""The custom domain that the stack creates, and the host of API Gateway's own that it replaces.

Sources: API Gateway developer guide, "Set the routing mode for your custom domain name", "Disable
the default endpoint for REST APIs" and "Security policies for REST APIs in API Gateway".
"""

from __future__ import annotations

from typing import Any

import pytest

from infra.custom_domain import DomainProps
from infra.settings import Settings
from tests.infra.assembly import Assembly
from tests.infra.conftest import CERTIFICATE, IAM, ZONE
from tests.paths import ROOT

DOMAIN, CERTIFICATES = "AWS::ApiGateway::DomainName", "AWS::CertificateManager::Certificate"
RECORD = "AWS::Route53::RecordSet"
POLICY = "SecurityPolicy_TLS13_1_2_PQ_2025_09"


def _of(assembly: Assembly, kind: str) -> list[dict[str, Any]]:
    """Resources of a type, with their attributes."""
    return [r for r in assembly.template["Resources"].values() if r["Type"] == kind]


def test_a_hosted_zone_gets_the_certificate_s_record_and_the_domain_s(
    with_own_key: Assembly,
) -> None:
    (certificate,) = with_own_key.resources(CERTIFICATES).values()
    assert certificate["DomainName"] == "mcp.example.com"
    assert certificate["ValidationMethod"] == "DNS"
    assert certificate["DomainValidationOptions"] == [
        {"DomainName": "mcp.example.com", "HostedZoneId": ZONE}
    ]
    (record,) = with_own_key.resources(RECORD).values()
    assert (record["Name"], record["Type"]) == ("mcp.example.com.", "A")
    assert record["HostedZoneId"] == ZONE
    assert record["AliasTarget"] == {
        "DNSName": "<Domain/Name.RegionalDomainName>",
        "HostedZoneId": "<Domain/Name.RegionalHostedZoneId>",
    }
    (domain,) = with_own_key.resources(DOMAIN).values()
    assert domain["RegionalCertificateArn"] == "<Domain/Certificate>"


def test_a_given_certificate_needs_no_zone(no_tasks: Assembly) -> None:
    """Whoever keeps the DNS elsewhere makes the record that the output names."""
    (domain,) = no_tasks.resources(DOMAIN).values()
    assert (domain["DomainName"], domain["RegionalCertificateArn"]) == (
        "a.example.com",
        CERTIFICATE,
    )
    assert not no_tasks.resources(CERTIFICATES)
    assert not no_tasks.resources(RECORD)
    outputs = no_tasks.readable(no_tasks.template["Outputs"])
    assert outputs["DomainTarget"]["Value"] == "<Domain/Name.RegionalDomainName>"


@pytest.mark.parametrize("job", ["own key", "no tasks"])
def test_the_domain_takes_routing_rules_and_no_old_tls(
    assemblies: dict[str, Assembly], job: str
) -> None:
    (domain,) = assemblies[job].resources(DOMAIN).values()
    assert domain["RoutingMode"] == "ROUTING_RULE_ONLY"
    assert domain["EndpointConfiguration"] == {"Types": ["REGIONAL"]}
    assert (domain["SecurityPolicy"], domain["EndpointAccessMode"]) == (POLICY, "STRICT")


def test_the_rules_come_after_the_domain_and_do_not_refer_to_it(with_own_key: Assembly) -> None:
    """A rule whose ARN changes is replaced, and the new one finds its priority taken: the ARN is
    the same text when the stack stops to create the domain.
    """
    rules = _of(with_own_key, "AWS::ApiGatewayV2::RoutingRule")
    assert len(rules) == 6
    for rule in rules:
        waits = {with_own_key._path(name) for name in rule["DependsOn"]}
        assert {"Domain/Name", "Domain/Record"} <= waits
        arn = with_own_key.readable(rule["Properties"]["DomainNameArn"])
        assert arn.endswith("::/domainnames/mcp.example.com")
        assert "<Domain" not in arn


@pytest.mark.parametrize(
    ("job", "apis"),
    [("own key", {"Api", "SubscriptionsApi"}), ("no tasks", {"Api"})],
)
def test_the_own_hosts_stay_open_until_the_domain_is_there(
    assemblies: dict[str, Assembly], job: str, apis: set[str]
) -> None:
    """A stage's update closes the host ("Disable the default endpoint for REST APIs"), and a
    certificate may take half an hour. The stage refers to the deployment.
    """
    assembly = assemblies[job]
    made = assembly.resources(DOMAIN) | assembly.resources(RECORD)
    waits = {
        deployment["Metadata"]["aws:cdk:path"].split("/")[1]: {
            assembly._path(name) for name in deployment["DependsOn"]
        }
        for deployment in _of(assembly, "AWS::ApiGateway::Deployment")
    }
    assert waits.keys() == apis
    assert all(made.keys() <= each for each in waits.values())


def test_what_other_cells_share_outlives_the_stack(with_own_key: Assembly) -> None:
    """And is not left behind by a first deployment that fails."""
    for kind in (DOMAIN, CERTIFICATES, RECORD):
        (resource,) = _of(with_own_key, kind)
        assert resource["DeletionPolicy"] == "RetainExceptOnCreate"
        assert resource["UpdateReplacePolicy"] == "Retain"


def test_a_domain_that_exists_already_is_not_created(
    behind_a_domain: Assembly, on_aws: Assembly
) -> None:
    for assembly in (behind_a_domain, on_aws):
        assert not assembly.resources(DOMAIN)
        assert "DomainTarget" not in assembly.template["Outputs"]


def test_both_options_use_the_given_certificate_and_the_zone_for_the_record() -> None:
    context = {**IAM, "domain": "MCP.example.com", "certificate": CERTIFICATE, "hosted_zone": ZONE}
    own = Settings.from_context(context.get, ROOT).own_domain
    assert own == DomainProps("mcp.example.com", CERTIFICATE, ZONE)


@pytest.mark.parametrize(
    ("job", "closed"),
    [("aws", False), ("streaming", False), ("fork", False), ("domain", True), ("no tasks", True)],
)
def test_with_a_domain_the_own_hosts_of_the_apis_are_closed(
    assemblies: dict[str, Assembly], job: str, closed: bool
) -> None:
    """And opened again by a deployment without a domain, which is why False is written."""
    for api in assemblies[job].resources("AWS::ApiGateway::RestApi").values():
        assert api.get("DisableExecuteApiEndpoint") is closed


@pytest.mark.parametrize("job", ["aws", "local", "open", "streaming", "domain", "own key"])
def test_every_api_needs_tls_1_2(assemblies: dict[str, Assembly], job: str) -> None:
    apis = assemblies[job].resources("AWS::ApiGateway::RestApi")
    assert apis
    for api in apis.values():
        assert (api["SecurityPolicy"], api["EndpointAccessMode"]) == (POLICY, "BASIC")
