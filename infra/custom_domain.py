"""A custom domain of API Gateway, created by the stack: `-c hosted_zone=` or `-c certificate=`.

The domain, its certificate and its DNS record stay when the stack is removed, or is deployed
without these options: other stacks, each a cell, may share the domain, and clients know it. Such a
domain costs nothing. A later deployment names it with `-c domain=` alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, cast

from aws_cdk import CfnOutput, RemovalPolicy, Resource
from aws_cdk import aws_apigateway as apigateway
from aws_cdk import aws_certificatemanager as acm
from aws_cdk import aws_route53 as route53
from aws_cdk import aws_route53_targets as targets
from constructs import Construct

from .cdk_context import Context, refusal
from .tls import SECURITY_POLICY

ROUTING_MODE: Final = "ROUTING_RULE_ONLY"
"""By default it is BASE_PATH_MAPPING_ONLY, in which rules are refused (API Gateway developer guide,
"Set the routing mode for your custom domain name")."""
RETAINED: Final = RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE
"""Not kept when the very deployment fails that created it: the next one creates it again."""


@dataclass(frozen=True, slots=True)
class DomainProps:
    """What a domain is created from."""

    name: str
    certificate_arn: str | None
    """A certificate of ACM in the stack's region; without it, one is issued."""
    hosted_zone_id: str | None
    """The public zone of Route 53 that gets the records for the certificate and the domain."""

    @classmethod
    def from_context(cls, context: Context, name: str) -> DomainProps | None:
        """Read the options. None where the domain is somebody else's. Raises ValueError for options
        that need `-c domain=`.
        """
        certificate, zone = context.text("certificate"), context.text("hosted_zone")
        for key, value in (("certificate", certificate), ("hosted_zone", zone)):
            if value and not name:
                raise refusal(key, value, "-c domain= is missing: the name that it is for")
        if not certificate and not zone:
            return None
        return cls(name, certificate or None, zone or None)


class CustomDomain(Construct):
    """A regional custom domain whose requests routing rules lead to APIs."""

    def __init__(self, scope: Construct, construct_id: str, props: DomainProps) -> None:
        super().__init__(scope, construct_id)
        zone = None
        if props.hosted_zone_id:
            zone = route53.HostedZone.from_hosted_zone_id(self, "HostedZone", props.hosted_zone_id)
        domain = apigateway.DomainName(
            self,
            "Name",
            domain_name=props.name,
            certificate=self._certificate(props, zone),
            endpoint_type=apigateway.EndpointType.REGIONAL,
            security_policy=SECURITY_POLICY,
            endpoint_access_mode=apigateway.EndpointAccessMode.STRICT,
        )
        created = cast(apigateway.CfnDomainName, domain.node.default_child)
        created.routing_mode = ROUTING_MODE  # the CDK's construct has no parameter for it
        _retain(domain)
        if zone:
            target = route53.RecordTarget.from_alias(targets.ApiGatewayDomain(domain))
            # With a dot at its end it is the whole name: the zone's is not known here.
            _retain(
                route53.ARecord(
                    self, "Record", zone=zone, record_name=f"{props.name}.", target=target
                )
            )
        CfnOutput(
            scope,
            "DomainTarget",
            value=domain.domain_name_alias_domain_name,
            description=f"What the DNS name {props.name} has to lead to, by CNAME or alias",
        )

    def _certificate(
        self, props: DomainProps, zone: route53.IHostedZone | None
    ) -> acm.ICertificate:
        if props.certificate_arn:
            return acm.Certificate.from_certificate_arn(self, "Given", props.certificate_arn)
        issued = acm.Certificate(
            self,
            "Certificate",
            domain_name=props.name,
            validation=acm.CertificateValidation.from_dns(zone),
        )
        _retain(issued)
        return issued


def _retain(resource: Resource) -> None:
    resource.apply_removal_policy(RETAINED)
