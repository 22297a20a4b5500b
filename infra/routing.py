"""The routing rules that lead a custom domain's requests to this stack.

Several stacks, each a cell with a priority of its own, share one domain of the same account and
region. One of them creates it (`infra/custom_domain.py`), or it exists already; its routing mode
has rules in it (`ROUTING_RULE_ONLY` or `ROUTING_RULE_THEN_API_MAPPING`), which
`operations/preflight.py` checks before a deployment. A domain takes 50 rules by default, and a cell
needs six of them: eight cells fit.

API Gateway takes the first rule that matches, in the order of their priorities, from 1 to
1,000,000 and each used once in a domain. A rule takes up to two headers, "with AND between the
headers" (API Gateway developer guide, "Routing rules to connect API stages to a custom domain name
for REST APIs"). The API reference knows alternatives in one condition (`AnyOf`), which the guide
does not: a rule for each alternative is right by both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from aws_cdk import Stack
from aws_cdk import aws_apigatewayv2 as apigatewayv2
from constructs import Construct

from .rest_api import Gateway
from .settings import Settings

TASKS: Final = "tasks*"
SUBSCRIPTIONS: Final = "subscriptions*"
"""Globs of `Mcp-Method`. A rule's value must not hold a slash (CloudFormation template reference,
"MatchHeaderValue"); no other method begins with these words."""


@dataclass(frozen=True, slots=True)
class Route:
    """One rule."""

    name: str
    priority: int
    headers: Mapping[str, str]
    """Header -> glob of its value. All have to match; without headers, every request matches."""
    subscriptions: bool
    """Whether it leads to the API for subscriptions, where they have one of their own."""


def routes(cell: str, priority: int) -> list[Route]:
    """A cell's rules. `priority` is 1 to 90,000, so that two cells' rules never have the same.

    A request that names a task or a session goes to its cell, whose name the id begins with. So
    does one that resumes an event stream, whose event ids begin with it, too.
    `subscriptions/listen` names its tasks in the body: a client that knows of cells also names one
    of them in `Mcp-Name`, which servers ignore there. All other requests go to the cell with the
    lowest priority.
    """
    own = {"Mcp-Name": f"{cell}-*"}
    subscriptions = {"Mcp-Method": SUBSCRIPTIONS}
    session, stream = {"Mcp-Session-Id": f"{cell}-*"}, {"Last-Event-ID": f"{cell}-*"}
    return [
        Route("CellTasks", priority, {"Mcp-Method": TASKS, **own}, False),
        Route("CellSubscriptions", 100_000 + priority, {**subscriptions, **own}, True),
        Route("CellSessions", 200_000 + priority, session, False),
        Route("CellStreams", 300_000 + priority, stream, False),
        Route("Subscriptions", 800_000 + priority, subscriptions, True),
        Route("OtherRequests", 900_000 + priority, {}, False),
    ]


class Routing(Construct):
    """The rules, from a domain to the stack's gateways."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        settings: Settings,
        requests: Gateway,
        subscriptions: Gateway,
    ) -> None:
        super().__init__(scope, construct_id)
        # Not a reference, also where the stack creates the domain: a rule whose domain's ARN
        # changes is replaced, and the new one's priority is still taken.
        arn = Stack.of(self).format_arn(
            service="apigateway",
            account="",
            resource="/domainnames",
            resource_name=settings.domain,
        )
        for route in routes(settings.cell, settings.priority):
            gateway = subscriptions if route.subscriptions else requests
            apigatewayv2.CfnRoutingRule(
                self,
                route.name,
                domain_name_arn=arn,
                priority=route.priority,
                conditions=[_matches(header, glob) for header, glob in route.headers.items()],
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
