"""Can the stack create a domain, and change the one that it has created?"""

from __future__ import annotations

from typing import Any, Final

import pytest

from operations.preflight import new_domain
from operations.preflight.new_domain import covers
from tests.unit.operations.preflight.domains import (
    CERTIFICATE,
    FREE,
    NAME,
    REGION,
    RULES_ONLY,
    Answer,
    certificate,
    deployment,
    in_zone,
    issued,
    records,
    template,
    the_domain,
    zone,
)


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


@pytest.mark.parametrize("own", [in_zone(), issued(), issued(zone="Z1")])
def test_what_a_domain_of_the_stack_has_is_not_looked_at_again(own: dict[str, Any]) -> None:
    assert new_domain.find(deployment(own, deployed=own)).text == ""
    assert new_domain.find(deployment(template())).text == ""


OTHER_CERTIFICATE: Final = CERTIFICATE.replace("1234abcd", "4321dcba")


@pytest.mark.parametrize(
    ("before", "after", "answers", "said"),
    [
        # The record that was made by hand, as the output DomainTarget says, is in the way.
        (
            issued(),
            in_zone(),
            [zone(), records(("mcp.example.com.", "CNAME"))],
            "has a record of mcp.example.com already (CNAME)",
        ),
        (issued(OTHER_CERTIFICATE), issued(), [certificate(Status="EXPIRED")], "is EXPIRED"),
        (in_zone(), issued(), [certificate(DomainName="a.example.com")], "is for a.example.com"),
        (issued(), issued(CERTIFICATE.replace(REGION, "us-east-1")), [], "needs one of eu-west-1"),
        (template({}, "Z2"), template({}, "Z1"), [zone("example.org.")], "is example.org, which"),
    ],
)
def test_another_certificate_or_zone_for_the_stack_s_domain_is_looked_at(
    before: dict[str, Any], after: dict[str, Any], answers: list[Answer], said: str
) -> None:
    found = new_domain.find(deployment(after, *answers, deployed=before))
    assert found.refused
    assert said in found.text


def test_another_certificate_and_zone_that_fit_are_good() -> None:
    answers = certificate(), zone(), records()
    before = issued(OTHER_CERTIFICATE)
    found = new_domain.find(deployment(issued(zone="Z1"), *answers, deployed=before))
    said = f"the domain {NAME} can have the other certificate and hosted zone"
    assert (found.refused, found.text) == (False, said)


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
