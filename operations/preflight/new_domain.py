"""Can the stack create the domain of `hosted_zone=` and `certificate=`, or give it others?

A certificate that is validated in the wrong zone, or in a private one, is not refused: the
deployment waits for it for hours. A domain, or a DNS record, that exists already fails it in the
midst.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from botocore.exceptions import ClientError

from .check import Check, Finding
from .deployment import Deployment, properties_of
from .routing_rules import RoutingRules

RECORD: Final = "AWS::Route53::RecordSet"
LEADING: Final = ("A", "AAAA", "CNAME")
"""Records that lead a name to a server."""


def find(deployment: Deployment) -> Finding:
    """Look whether the domain is free, and whether its zone and its certificate fit it. Of a domain
    that the stack has created, only what differs from the deployed template.
    """
    wanted, deployed = map(RoutingRules.of, (deployment.template, deployment.deployed))
    if wanted.created is None:
        return Finding("")
    has_it = deployed.created is not None and deployed.domain == wanted.domain
    if not has_it and _exists(deployment, wanted.domain):
        return Finding(_existing(wanted.domain), refused=True)
    arn, zone = _certificate(wanted), _zone(deployment.template)
    if has_it:
        arn = "" if arn == _certificate(deployed) else arn
        zone = "" if zone == _zone(deployment.deployed) else zone
    reason = _of_certificate(deployment, arn, wanted.domain) if arn else ""
    if not reason and zone:
        reason = _of_zone(deployment, zone, wanted.domain)
    if reason:
        return Finding(reason, refused=True)
    if has_it:
        changed = [name for name, value in (("certificate", arn), ("hosted zone", zone)) if value]
        others = f"the domain {wanted.domain} can have the other {' and '.join(changed)}"
        return Finding(others if changed else "")
    by_hand = "" if zone else "; then make the DNS record that the output DomainTarget names"
    return Finding(f"the stack creates the domain {wanted.domain}{by_hand}")


def _certificate(rules: RoutingRules) -> str:
    """The ARN of the certificate that is given; empty where the stack has one issued."""
    arn = (rules.created or {}).get("RegionalCertificateArn")
    return arn if isinstance(arn, str) else ""


def _zone(template: Mapping[str, Any]) -> str:
    """The hosted zone that gets the domain's record; empty where the DNS is elsewhere."""
    record = next(properties_of(template, RECORD), None)
    return str(record["HostedZoneId"]) if record else ""


def _exists(deployment: Deployment, domain: str) -> bool:
    try:
        deployment.client("apigateway").get_domain_name(domainName=domain)
    except ClientError as error:
        if error.response["Error"]["Code"] != "NotFoundException":
            raise
        return False
    return True


def _existing(domain: str) -> str:
    return f"""\
API Gateway has the custom domain {domain} already: another stack's, or one that a removed
stack has left, as it should.

Use it as it is, without hosted_zone= and certificate=:
    make deploy ... domain={domain}"""


def _of_certificate(deployment: Deployment, arn: str, domain: str) -> str:
    """Why a certificate is not good for the domain; empty when it is."""
    region = arn.split(":")[3]
    if region != deployment.region:
        return (
            f"the certificate is of {region}, and a regional domain needs one of "
            f"{deployment.region}: aws acm list-certificates --region {deployment.region}"
        )
    try:
        found = deployment.client("acm").describe_certificate(CertificateArn=arn)["Certificate"]
    except ClientError as error:
        if error.response["Error"]["Code"] != "ResourceNotFoundException":
            raise
        return f"there is no certificate {arn}: aws acm list-certificates --region {region}"
    if found["Status"] != "ISSUED":
        return f"the certificate {arn} is {found['Status']}; it has to be ISSUED"
    names = [found["DomainName"], *found.get("SubjectAlternativeNames", ())]
    if not any(covers(name, domain) for name in names):
        return f"the certificate {arn} is for {', '.join(dict.fromkeys(names))}, not for {domain}"
    return ""


def covers(name: str, domain: str) -> bool:
    """Whether a certificate's name, which may begin with `*.`, is one for a domain."""
    name = name.lower()
    return name == domain or (name.startswith("*.") and domain.partition(".")[2] == name[2:])


def _of_zone(deployment: Deployment, zone_id: str, domain: str) -> str:
    """Why a hosted zone is not good for the domain; empty when it is."""
    route53 = deployment.client("route53")
    try:
        zone = route53.get_hosted_zone(Id=zone_id)["HostedZone"]
    except ClientError as error:
        if error.response["Error"]["Code"] != "NoSuchHostedZone":
            raise
        return f"there is no hosted zone {zone_id}: aws route53 list-hosted-zones shows those there"
    name = zone["Name"].rstrip(".")
    if zone.get("Config", {}).get("PrivateZone"):
        return f"the hosted zone {zone_id} ({name}) is private: a certificate needs a public one"
    if domain != name and not domain.endswith(f".{name}"):
        return f"the hosted zone {zone_id} is {name}, which {domain} is not a name of"
    records = route53.list_resource_record_sets(
        HostedZoneId=zone_id, StartRecordName=domain, StartRecordType="A", MaxItems="20"
    )["ResourceRecordSets"]
    if kinds := _leading(records, domain):
        return (
            f"the hosted zone {zone_id} has a record of {domain} already ({', '.join(kinds)}). "
            "Remove it, or deploy with certificate= alone and lead it to the output DomainTarget"
        )
    return ""


def _leading(records: Iterable[Mapping[str, Any]], domain: str) -> list[str]:
    """The types of the records that lead a name somewhere."""
    own = (record for record in records if record["Name"].rstrip(".") == domain)
    return sorted(record["Type"] for record in own if record["Type"] in LEADING)


CHECK: Final = Check("the domain can be created", find)
