"""Templates with domains and routing rules, and an account that answers about them. botocore checks
the calls and the shapes of the answers.
"""

from __future__ import annotations

from typing import Any, Final

from botocore.session import get_session
from botocore.stub import Stubber

from operations.preflight.deployment import Deployment

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


FREE: Final = the_domain("NotFoundException")
