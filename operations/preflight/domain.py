"""Does the domain of `domain=` take the stack's routing rules?

A domain whose routing mode is API_MAPPING_ONLY, the default, refuses every rule, and one that has a
rule of the same priority refuses that one (API Gateway developer guide, "Set the routing mode for
your custom domain name" and "Routing rules to connect API stages to a custom domain name for REST
APIs"). CloudFormation finds out when all else is deployed, and rolls back.

A domain that this deployment creates has no rules yet (`new_domain.py`). One that the stack has
created before has the right mode, but may have rules of other stacks.
"""

from __future__ import annotations

from typing import Any, Final

from botocore.exceptions import ClientError

from .check import Check, Finding
from .deployment import Deployment
from .routing_rules import RoutingRules

WITHOUT_RULES: Final = ("", "BASE_PATH_MAPPING_ONLY", "API_MAPPING_ONLY")
"""The routing mode's two names in the two APIs of API Gateway; a domain may have none."""
RULES_PER_DOMAIN: Final = 50
"""The default, as far as it is known here: more are warned of, and CloudFormation decides."""


def find(deployment: Deployment) -> Finding:
    """Read the domain's routing mode, its TLS and the priorities that are taken."""
    wanted, deployed = map(RoutingRules.of, (deployment.template, deployment.deployed))
    if wanted.created is None:
        return _of_a_domain_that_exists(deployment, wanted) if wanted.domain else Finding("")
    if deployed.created is None or deployed.domain != wanted.domain:
        return Finding("")
    return _of_the_rules(deployment, wanted)


def _of_a_domain_that_exists(deployment: Deployment, wanted: RoutingRules) -> Finding:
    try:
        found = deployment.client("apigateway").get_domain_name(domainName=wanted.domain)
    except ClientError as error:
        if error.response["Error"]["Code"] != "NotFoundException":
            raise
        return Finding(_missing(wanted.domain, deployment.region), refused=True)
    if found.get("routingMode", "") in WITHOUT_RULES:
        return Finding(_without_rules(wanted.domain, deployment.region), refused=True)
    rules = _of_the_rules(deployment, wanted)
    if rules.refused or found.get("securityPolicy") != "TLS_1_0":
        return rules
    return Finding(f"{rules.text}\n{_old_tls(wanted.domain, deployment.region)}")


def _of_the_rules(deployment: Deployment, wanted: RoutingRules) -> Finding:
    """Compare the stack's rules with those that the domain has of other stacks."""
    taken = _priorities(deployment.client("apigatewayv2"), wanted.domain)
    others = taken - _own(deployment, wanted.domain)
    if clash := sorted(others & wanted.priorities):
        return Finding(_taken(wanted.domain, clash[0], others), refused=True)
    total = len(others | wanted.priorities)
    if total > RULES_PER_DOMAIN:
        return Finding(
            f"WARNING: the domain {wanted.domain} would have {total} routing rules. By default it "
            f"takes {RULES_PER_DOMAIN}, which are eight cells; AWS Support raises the quota"
        )
    return Finding(f"the domain {wanted.domain} takes the stack's routing rules")


def _missing(domain: str, region: str) -> str:
    return f"""\
API Gateway has no custom domain {domain} in {region}.

Let the stack create it, in the DNS zone that aws route53 list-hosted-zones shows:
    make deploy ... domain={domain} hosted_zone=ID
or, where the DNS is elsewhere, with a certificate that aws acm list-certificates shows:
    make deploy ... domain={domain} certificate=ARN"""


def _without_rules(domain: str, region: str) -> str:
    return f"""\
the routing mode of the domain {domain} does not allow routing rules.

Let it try rules first and then the API mappings that it has, which go on as they are:
    aws apigatewayv2 update-domain-name --region {region} \\
        --domain-name {domain} --routing-mode ROUTING_RULE_THEN_API_MAPPING
A domain with mappings to HTTP APIs cannot have rules: then take another domain."""


def _taken(domain: str, priority: int, others: set[int]) -> str:
    bases = sorted(number for number in others if number <= 90_000)
    return f"""\
the domain {domain} has a routing rule of the priority {priority} already, of another stack.

Each stack of a domain needs a priority=, and a cell=, of its own. Priorities that are in use:
    {", ".join(map(str, bases)) or "none that another stack of this kind would have"}"""


def _old_tls(domain: str, region: str) -> str:
    return f"""\
WARNING: the domain {domain} takes TLS 1.0. To require 1.2:
    aws apigateway update-domain-name --region {region} --domain-name {domain} \\
        --patch-operations op=replace,path=/securityPolicy,value=TLS_1_2"""


def _priorities(apigatewayv2: Any, domain: str) -> set[int]:
    """The priorities of all of a domain's rules."""
    pages = apigatewayv2.get_paginator("list_routing_rules").paginate(DomainName=domain)
    return {int(rule["Priority"]) for page in pages for rule in page.get("RoutingRules", ())}


def _own(deployment: Deployment, domain: str) -> frozenset[int]:
    """Those that the deployed stack has."""
    deployed = RoutingRules.of(deployment.deployed)
    return deployed.priorities if deployed.domain == domain else frozenset()


CHECK: Final = Check("the domain takes routing rules", find)
