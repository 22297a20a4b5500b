"""Which requests to a custom domain are this stack's: its part of the domain's routing rules.

Several stacks, each a cell with a priority of its own, share one domain of the same account and
region. The domain exists already, and its routing mode has rules in it (`ROUTING_RULE_ONLY` or
`ROUTING_RULE_THEN_API_MAPPING`).

API Gateway takes the first rule that matches, in the order of their priorities, from 1 to
1,000,000 and each used once in a domain (API Gateway developer guide, "Routing rules to connect API
stages to a custom domain name for REST APIs").
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from aws_cdk import Stack
from aws_cdk import aws_apigatewayv2 as apigatewayv2
from constructs import Construct

from .gateway import Gateway
from .settings import Settings

TASKS: Final = "tasks*"
LISTENS: Final = "subscriptions*"
"""Globs of `Mcp-Method`. A rule's value must not hold a slash (CloudFormation template reference,
"MatchHeaderValue"); no other method begins with these words."""


@dataclass(frozen=True, slots=True)
class Route:
    """One rule."""

    name: str
    priority: int
    headers: Mapping[str, str]
    """Header -> glob of its value; all must match, and without any, every request does."""
    listens: bool
    """Whether it leads to the gateway that carries listens, if they have one of their own."""


def routes(cell: str, priority: int) -> list[Route]:
    """A cell's rules; `priority` is of 1 to 90,000, so that two cells' rules never have the same.

    What names a task goes to the task's cell, whose name its id begins with. A listen names its
    tasks in the body: a client that knows of cells names one of them in `Mcp-Name`, too, which
    servers ignore there. What names no task goes to the cell with the lowest priority.
    """
    own = {"Mcp-Name": f"{cell}-*"}
    return [
        Route("Tasks", priority, {"Mcp-Method": TASKS, **own}, listens=False),
        Route("OwnListens", 100_000 + priority, {"Mcp-Method": LISTENS, **own}, listens=True),
        Route("Listens", 800_000 + priority, {"Mcp-Method": LISTENS}, listens=True),
        Route("Rest", 900_000 + priority, {}, listens=False),
    ]


class Routing(Construct):
    """Rules that lead from a domain to the stack's gateways."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        settings: Settings,
        requests: Gateway,
        listens: Gateway,
    ) -> None:
        super().__init__(scope, construct_id)
        arn = Stack.of(self).format_arn(
            service="apigateway",
            account="",
            resource="/domainnames",
            resource_name=settings.domain,
        )
        for rule in routes(settings.cell, settings.priority):
            gateway = listens if rule.listens else requests
            apigatewayv2.CfnRoutingRule(
                self,
                rule.name,
                domain_name_arn=arn,
                priority=rule.priority,
                conditions=[_matches(header, glob) for header, glob in rule.headers.items()],
                actions=[_invokes(gateway)],
            )


def _matches(header: str, glob: str) -> apigatewayv2.CfnRoutingRule.ConditionProperty:
    value = apigatewayv2.CfnRoutingRule.MatchHeaderValueProperty(header=header, value_glob=glob)
    return apigatewayv2.CfnRoutingRule.ConditionProperty(
        match_headers=apigatewayv2.CfnRoutingRule.MatchHeadersProperty(any_of=[value])
    )


def _invokes(gateway: Gateway) -> apigatewayv2.CfnRoutingRule.ActionProperty:
    api = apigatewayv2.CfnRoutingRule.ActionInvokeApiProperty(
        api_id=gateway.rest_api_id, stage=gateway.deployed_stage
    )
    return apigatewayv2.CfnRoutingRule.ActionProperty(invoke_api=api)
