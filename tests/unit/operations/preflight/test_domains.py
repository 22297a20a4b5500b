"""Is there a domain that takes the stack's rules, and can clients find the issuer?"""

from __future__ import annotations

from typing import Any

import pytest

from operations.preflight import discovery, domain
from tests.unit.operations.preflight.domains import (
    CERTIFICATE,
    NAME,
    OWN,
    RULES_ONLY,
    deployment,
    issued,
    rules,
    template,
    the_domain,
)


def test_a_domain_with_rules_is_deployed_to() -> None:
    found = domain.find(deployment(template(), the_domain(RULES_ONLY), rules(7, 900_007)))
    assert not found.refused
    assert found.text == f"the domain {NAME} takes the stack's routing rules"


@pytest.mark.parametrize("mode", [{}, {"routingMode": "BASE_PATH_MAPPING_ONLY"}], ids=str)
def test_a_domain_without_rules_is_refused_with_the_command(mode: dict[str, Any]) -> None:
    """The default of every domain. The mappings that it has go on to work."""
    found = domain.find(deployment(template(), the_domain(mode)))
    assert found.refused
    assert "aws apigatewayv2 update-domain-name --region eu-west-1" in found.text
    assert f"--domain-name {NAME} --routing-mode ROUTING_RULE_THEN_API_MAPPING" in found.text


def test_a_domain_that_is_not_there_is_refused_with_both_ways_out() -> None:
    found = domain.find(deployment(template(), the_domain("NotFoundException")))
    assert found.refused
    assert f"domain={NAME} hosted_zone=ID" in found.text
    assert f"domain={NAME} certificate=ARN" in found.text


def test_a_priority_of_another_stack_is_refused() -> None:
    """A rule whose priority is taken fails the deployment."""
    found = domain.find(deployment(template(), the_domain(RULES_ONLY), rules(*OWN, 7, 900_007)))
    assert found.refused
    assert "a routing rule of the priority 100 already" in found.text
    assert found.text.endswith("    7, 100")


def test_the_stack_s_own_rules_are_no_other_s() -> None:
    """A second deployment. Rules of another domain do not count for this one."""
    answers = the_domain(RULES_ONLY), rules(*OWN)
    again = deployment(template(), *answers, deployed=template())
    assert not domain.find(again).refused
    elsewhere = template()
    for rule in elsewhere["Resources"].values():
        rule["Properties"]["DomainNameArn"] = "arn:aws:apigateway:::/domainnames/a.example"
    assert domain.find(deployment(template(), *answers, deployed=elsewhere)).refused


def test_old_tls_is_warned_of_with_the_command() -> None:
    answer = {**RULES_ONLY, "securityPolicy": "TLS_1_0"}
    found = domain.find(deployment(template(), the_domain(answer), rules()))
    assert not found.refused
    assert "WARNING: the domain mcp.example.com takes TLS 1.0" in found.text
    assert "path=/securityPolicy,value=TLS_1_2" in found.text


@pytest.mark.parametrize(("others", "warned"), [(48, False), (49, True)])
def test_more_rules_than_a_domain_has_are_warned_of(others: int, warned: bool) -> None:
    found = domain.find(
        deployment(template(), the_domain(RULES_ONLY), rules(*range(200_000, 200_000 + others)))
    )
    assert (f"WARNING: the domain {NAME} would have 51 routing rules" in found.text) is warned


@pytest.mark.parametrize("wanted", [{"Resources": {}}, issued()], ids=["none", "created"])
def test_nobody_is_asked_about_a_domain_that_is_not_there(wanted: dict[str, Any]) -> None:
    assert domain.find(deployment(wanted)).text == ""


def test_the_stack_that_created_a_domain_may_not_take_another_s_priority() -> None:
    """Others share the domain meanwhile."""
    moved = template({"RegionalCertificateArn": CERTIFICATE}, priorities=(7, 900_007))
    found = domain.find(deployment(moved, rules(*OWN, 7, 900_007), deployed=issued()))
    assert found.refused
    assert "a routing rule of the priority 7 already" in found.text
    free = deployment(moved, rules(*OWN, 8, 900_008), deployed=issued())
    assert not domain.find(free).refused


def test_the_rules_of_a_domain_that_the_stack_created_are_counted() -> None:
    answer = rules(*OWN, *range(200_000, 200_049))
    found = domain.find(deployment(issued(), answer, deployed=issued()))
    assert not found.refused
    assert "would have 51 routing rules" in found.text


@pytest.mark.parametrize(
    ("endpoint", "authorizer", "warned"),
    [
        ({"Fn::Join": ["", ["https://", {"Ref": "A"}, ".execute-api.", "/v1/mcp"]]}, True, True),
        ({"Fn::Join": ["", ["https://", {"Ref": "A"}, ".execute-api.", "/v1/mcp"]]}, False, False),
        ("https://mcp.example.com/mcp", True, False),
    ],
)
def test_an_issuer_that_some_clients_do_not_find_is_warned_of(
    endpoint: Any, authorizer: bool, warned: bool
) -> None:
    kind = "AWS::ApiGateway::Authorizer" if authorizer else "AWS::ApiGateway::Method"
    wanted = {"Resources": {"A": {"Type": kind}}, "Outputs": {"Endpoint": {"Value": endpoint}}}
    found = discovery.find(deployment(wanted))
    assert not found.refused
    assert found.text.startswith("WARNING: not every client") is warned
    assert ("domain=mcp.example.com hosted_zone=ID" in found.text) is warned
