"""Is there a domain that takes the stack's rules, or can the stack create one? botocore checks the
calls and the shapes of the answers.
"""

from __future__ import annotations

from typing import Any, Final

import pytest
from botocore.session import get_session
from botocore.stub import Stubber

from operations.preflight import discovery, domain, new_domain
from operations.preflight.deployment import Deployment
from operations.preflight.new_domain import covers

REGION: Final = "eu-west-1"
NAME: Final = "mcp.example.com"
CERTIFICATE: Final = f"arn:aws:acm:{REGION}:111122223333:certificate/1234abcd"
RULES_ONLY: Final = {"routingMode": "ROUTING_RULE_ONLY", "securityPolicy": "TLS_1_2"}
OWN: Final = (100, 900_100)
Answer = tuple[str, str, dict[str, Any] | str, dict[str, Any]]
"""Service, operation, response or code of an error, expected parameters."""


def template(
    own: dict[str, Any] | None = None, zone: str = "", priorities: tuple[int, ...] = OWN
) -> dict[str, Any]:
    """A stack with routing rules. `own` are the properties of a domain that it creates."""
    arn = {"Fn::Join": ["", ["arn:", {"Ref": "AWS::Partition"}, f"::/domainnames/{NAME}"]]}
    found: dict[str, Any] = {
        f"R{priority}": {
            "Type": "AWS::ApiGatewayV2::RoutingRule",
            "Properties": {"DomainNameArn": arn, "Priority": priority},
        }
        for priority in priorities
    }
    if own is not None:
        found["D"] = {"Type": "AWS::ApiGateway::DomainName", "Properties": own}
    if zone:
        record = {"HostedZoneId": zone, "Name": f"{NAME}."}
        found["Z"] = {"Type": "AWS::Route53::RecordSet", "Properties": record}
    return {"Resources": found}


def issued(arn: str = CERTIFICATE, zone: str = "") -> dict[str, Any]:
    """A stack that creates the domain with a certificate that exists."""
    return template({"RegionalCertificateArn": arn}, zone)


def deployment(
    wanted: dict[str, Any], *answers: Answer, deployed: dict[str, Any] | None = None
) -> Deployment:
    """A deployment to an account that answers just these calls, in this order for each service."""
    clients: dict[str, Any] = {}
    for service, operation, answer, expected in answers:
        if service not in clients:
            client = get_session().create_client(
                service, region_name=REGION, aws_access_key_id="x", aws_secret_access_key="x"
            )
            clients[service] = Stubber(client)
            clients[service].activate()
        if isinstance(answer, str):
            clients[service].add_client_error(operation, answer, expected_params=expected)
        else:
            clients[service].add_response(operation, answer, expected)
    found = Deployment("notes", wanted, lambda service: clients[service].client, REGION)
    found.__dict__["deployed"] = deployed or {}
    return found


def the_domain(answer: dict[str, Any] | str) -> Answer:
    return ("apigateway", "get_domain_name", answer, {"domainName": NAME})


def rules(*priorities: int) -> Answer:
    """The rules that the domain has."""
    listed = [{"Priority": priority} for priority in priorities]
    return ("apigatewayv2", "list_routing_rules", {"RoutingRules": listed}, {"DomainName": NAME})


# ---- A domain that exists ------------------------------------------------------------------------


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
    assert ("WARNING: the domain would have 51 routing rules" in found.text) is warned


@pytest.mark.parametrize("wanted", [{"Resources": {}}, issued()], ids=["none", "created"])
def test_no_other_stack_is_asked_about_a_domain(wanted: dict[str, Any]) -> None:
    assert domain.find(deployment(wanted)).text == ""


# ---- A domain that the stack creates -------------------------------------------------------------

FREE = the_domain("NotFoundException")


def certificate(**changed: Any) -> Answer:
    found = {"Status": "ISSUED", "DomainName": "*.example.com", **changed}
    return ("acm", "describe_certificate", {"Certificate": found}, {"CertificateArn": CERTIFICATE})


def zone(name: str = "example.com.", private: bool = False) -> Answer:
    found = {"Id": "Z1", "Name": name, "CallerReference": "x", "Config": {"PrivateZone": private}}
    return ("route53", "get_hosted_zone", {"HostedZone": found}, {"Id": "Z1"})


def records(*named: tuple[str, str]) -> Answer:
    sets = [{"Name": name, "Type": kind} for name, kind in named]
    answer = {"ResourceRecordSets": sets, "IsTruncated": False, "MaxItems": "20"}
    start = {"StartRecordName": NAME, "StartRecordType": "A", "MaxItems": "20"}
    return ("route53", "list_resource_record_sets", answer, {"HostedZoneId": "Z1", **start})


def in_zone() -> dict[str, Any]:
    """A stack that creates the domain and its certificate."""
    return template({"RegionalCertificateArn": {"Ref": "Certificate"}}, "Z1")


def test_a_zone_and_a_certificate_that_fit_are_good() -> None:
    other = records(("mcp.example.com.", "TXT"), ("n.example.com.", "A"))
    found = new_domain.find(deployment(in_zone(), FREE, zone(), other))
    assert (found.refused, found.text) == (False, f"the stack creates the domain {NAME}")
    found = new_domain.find(deployment(issued(), FREE, certificate()))
    assert not found.refused
    assert "then make the DNS record that the output DomainTarget names" in found.text
    both = deployment(issued(zone="Z1"), FREE, certificate(), zone("mcp.example.com."), records())
    assert not new_domain.find(both).refused


@pytest.mark.parametrize(
    ("wanted", "answers", "said"),
    [
        (in_zone(), [the_domain(RULES_ONLY)], f"make deploy ... domain={NAME}"),
        (in_zone(), [FREE, zone("example.org.")], "is example.org, which mcp.example.com is not a"),
        (in_zone(), [FREE, zone("p.example.com.")], "is p.example.com, which"),
        (in_zone(), [FREE, zone("cp.example.com.")], "is cp.example.com, which"),
        (in_zone(), [FREE, zone(private=True)], "private: a certificate needs a public one"),
        (
            in_zone(),
            [FREE, ("route53", "get_hosted_zone", "NoSuchHostedZone", {"Id": "Z1"})],
            "there is no hosted zone Z1: aws route53 list-hosted-zones",
        ),
        (
            in_zone(),
            [FREE, zone(), records(("mcp.example.com.", "CNAME"))],
            "has a record of mcp.example.com already (CNAME)",
        ),
        (issued(), [FREE, certificate(Status="PENDING_VALIDATION")], "has to be ISSUED"),
        (issued(), [FREE, certificate(DomainName="a.example.com")], "is for a.example.com, not"),
        (
            issued(),
            [
                FREE,
                (
                    "acm",
                    "describe_certificate",
                    "ResourceNotFoundException",
                    {"CertificateArn": CERTIFICATE},
                ),
            ],
            f"there is no certificate {CERTIFICATE}",
        ),
        (issued(CERTIFICATE.replace(REGION, "us-east-1")), [FREE], "needs one of eu-west-1"),
    ],
)
def test_what_would_fail_or_wait_for_hours_is_refused(
    wanted: dict[str, Any], answers: list[Answer], said: str
) -> None:
    found = new_domain.find(deployment(wanted, *answers))
    assert found.refused
    assert said in found.text


def test_a_domain_that_the_stack_has_is_not_looked_at_again() -> None:
    assert new_domain.find(deployment(in_zone(), deployed=in_zone())).text == ""
    assert new_domain.find(deployment(template())).text == ""


@pytest.mark.parametrize(
    ("name", "covered"),
    [
        ("mcp.example.com", True),
        ("*.example.com", True),
        ("*.EXAMPLE.com", True),
        ("example.com", False),
        ("*.com", False),
        ("*.mcp.example.com", False),
    ],
)
def test_a_wildcard_stands_for_one_label(name: str, covered: bool) -> None:
    """RFC 6125, section 6.4.3."""
    assert covers(name, NAME) is covered


# ---- The issuer ----------------------------------------------------------------------------------


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
