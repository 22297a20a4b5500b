"""The routing rules of a template, and the domain that they are for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from .deployment import properties_of

RULE: Final = "AWS::ApiGatewayV2::RoutingRule"
DOMAIN: Final = "AWS::ApiGateway::DomainName"


@dataclass(frozen=True, slots=True)
class RoutingRules:
    """What a template says of a custom domain."""

    domain: str
    """Its name; empty where there is none."""
    priorities: frozenset[int]
    created: Mapping[str, Any] | None
    """The properties of the domain, where the stack creates it."""

    @classmethod
    def of(cls, template: Mapping[str, Any]) -> RoutingRules:
        """Read them from a template."""
        rules = list(properties_of(template, RULE))
        arns = {_text(rule["DomainNameArn"]) for rule in rules}
        names = [arn.rpartition("/")[2] for arn in arns]
        created = next(properties_of(template, DOMAIN), None)
        priorities = frozenset(int(rule["Priority"]) for rule in rules)
        return cls(names[0] if names else "", priorities, created)


def _text(value: Any) -> str:
    """What is literal in a value: `Fn::Join` with the references left out."""
    if isinstance(value, Mapping) and "Fn::Join" in value:
        return "".join(part for part in value["Fn::Join"][1] if isinstance(part, str))
    return str(value)
