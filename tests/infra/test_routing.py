"""A domain's routing rules: requests for a task reach its cell, subscriptions the streaming API.

Source: API Gateway developer guide, "Routing rules to connect API stages to a custom domain name
for REST APIs".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

import pytest

from infra.address_options import MAX_PRIORITY
from infra.routing import Route, routes
from tests.infra.assembly import Assembly
from tests.integration.support.router import Domain, HeaderMatch, Rule
from tests.paths import ROOT

TASK = "0123456789abcdef0123456789abcdef"


def _methods(schema: str) -> set[str]:
    """Every request that the schema knows."""
    definitions = json.loads((ROOT / "tests" / "schema" / schema).read_text())["$defs"].values()
    named = (d.get("properties", {}).get("method", {}).get("const") for d in definitions)
    return {name for name in named if name and not name.startswith("notifications/")}


METHODS = _methods("mcp-2026-07-28.json") | _methods("mcp-2025-11-25.json") | {"tasks/update"}


def _first(rules: Iterable[Route], headers: Mapping[str, str]) -> Route:
    """The rule that API Gateway takes."""
    by_priority = {str(rule.priority): rule for rule in rules}
    domain = Domain(
        Rule(
            rule.priority,
            tuple((HeaderMatch(header, glob),) for header, glob in rule.headers.items()),
            priority,
        )
        for priority, rule in by_priority.items()
    )
    taken = domain.api(headers)
    assert taken is not None
    return by_priority[taken]


ONE, TEN, TWO = routes("c1", 300), routes("c10", 200), routes("c2", 201)
CELLS = [*ONE, *TEN, *TWO]


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
@pytest.mark.parametrize(("cell", "rules"), [("c1", ONE), ("c10", TEN), ("c2", TWO)])
def test_what_names_a_task_goes_to_its_cell(method: str, cell: str, rules: list[Route]) -> None:
    route = _first(CELLS, {"mcp-method": method, "mcp-name": f"{cell}-{TASK}"})
    assert route in rules
    assert not route.subscriptions


@pytest.mark.parametrize(("cell", "rules"), [("c1", ONE), ("c10", TEN), ("c2", TWO)])
def test_a_subscription_goes_to_the_cell_of_the_task_that_it_names(
    cell: str, rules: list[Route]
) -> None:
    route = _first(CELLS, {"Mcp-Method": "subscriptions/listen", "Mcp-Name": f"{cell}-{TASK}"})
    assert route in rules
    assert route.subscriptions


@pytest.mark.parametrize("header", ["Mcp-Session-Id", "Last-Event-ID"])
@pytest.mark.parametrize(("cell", "rules"), [("c1", ONE), ("c10", TEN), ("c2", TWO)])
def test_a_session_and_its_streams_go_to_their_cell(
    header: str, cell: str, rules: list[Route]
) -> None:
    route = _first(CELLS, {header: f"{cell}-AbC_d-9"})
    assert route in rules
    assert not route.subscriptions


def test_a_subscription_that_names_no_task_goes_to_the_cell_with_the_lowest_priority() -> None:
    route = _first(CELLS, {"Mcp-Method": "subscriptions/listen"})
    assert route in TEN
    assert route.subscriptions


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Mcp-Method": "tools/call", "Mcp-Name": "c1-is-a-fine-name-for-a-tool"},
        {"Mcp-Method": "tasks/get", "Mcp-Name": f"c3-{TASK}"},
        {"Mcp-Method": "tasks/get"},
        {"Mcp-Method": "TASKS/GET", "Mcp-Name": f"c1-{TASK}"},
        {"Mcp-Method": "tasks/get", "Mcp-Name": f"C1-{TASK}"},
    ],
    ids=str,
)
def test_all_else_goes_to_the_cell_with_the_lowest_priority(headers: dict[str, str]) -> None:
    route = _first(CELLS, headers)
    assert route in TEN
    assert not route.subscriptions


def test_whatever_a_domain_is_asked_for_reaches_an_api_that_serves_its_metadata(
    behind_a_domain: Assembly,
) -> None:
    """A client that looks for it sends no `Mcp-Method` (RFC 9728, section 3.1), and is led to the
    cell that comes first. If it sends one, both APIs of every cell have the document.
    """
    route = _first(CELLS, {"MCP-Protocol-Version": "2026-07-28"})
    assert route in TEN
    paths = behind_a_domain.resources("AWS::ApiGateway::Method")
    well_known = "Default/.well-known/oauth-protected-resource"
    for api in {api for _, _, api in _deployed(behind_a_domain).values()}:
        assert {f"{api}/{well_known}/GET", f"{api}/{well_known}/mcp/GET"} <= set(paths)


def test_the_globs_tell_methods_apart_by_their_first_word() -> None:
    """Values must not hold a slash, so the rules cannot have the methods' whole names."""
    assert {"tasks/get", "tools/call", "subscriptions/listen", "server/discover"} <= METHODS
    name = f"c1-{TASK}"
    streams = {m for m in METHODS if _first(ONE, {"Mcp-Method": m}).subscriptions}
    by_task = {
        m for m in METHODS if not _first(ONE, {"Mcp-Method": m, "Mcp-Name": name}).subscriptions
    }
    assert streams == {"subscriptions/listen"}
    assert by_task == METHODS - streams
    tasks = {m for m in METHODS if _first(CELLS, {"Mcp-Method": m, "Mcp-Name": name}) in ONE}
    assert tasks - streams == {m for m in METHODS if m.startswith("tasks/")}


@pytest.mark.parametrize("rules", [ONE, routes("a" * 16, MAX_PRIORITY)])
def test_rules_are_such_as_api_gateway_takes(rules: list[Route]) -> None:
    """CloudFormation template reference, "MatchHeaderValue"; at most two headers a rule."""
    for rule in rules:
        assert 1 <= rule.priority <= 1_000_000
        assert len(rule.headers) <= 2
        for header, glob in rule.headers.items():
            assert re.fullmatch(r"[\w*?!#$%&'.^`|~-]{1,39}", header, re.ASCII)
            assert re.fullmatch(r"[\w*?!#$%&'.^`|~-]{1,127}", glob, re.ASCII)
            assert glob.count("*") == 1
            assert glob.endswith("*")


def test_cells_with_priorities_of_their_own_never_share_one() -> None:
    """A rule whose priority is taken fails the deploy."""
    few = [*range(1, 200), *range(MAX_PRIORITY - 200, MAX_PRIORITY + 1), 10_000, 80_000]
    used = [rule.priority for priority in few for rule in routes("c1", priority)]
    assert len(set(used)) == len(used)


def _deployed(assembly: Assembly) -> dict[str, tuple[int, dict[str, str], str]]:
    """The template's rules: priority, headers, API."""
    found = {}
    for path, rule in assembly.resources("AWS::ApiGatewayV2::RoutingRule").items():
        ((action,),) = [rule["Actions"]]
        api = action["InvokeApi"]["ApiId"].strip("<>")
        assert action["InvokeApi"] == {
            "ApiId": f"<{api}>",
            "Stage": f"<{api}/DeploymentStage.v1>",
        }, "a reference, so that the rule is not there before the stage is"
        # One header a condition: the documents differ on what more would mean.
        headers = {}
        for condition in rule["Conditions"]:
            (header,) = condition["MatchHeaders"]["AnyOf"]
            headers[header["Header"]] = header["ValueGlob"]
        arn = "arn:<AWS::Partition>:apigateway:<AWS::Region>::/domainnames/mcp.example.com"
        assert rule["DomainNameArn"] == arn
        found[path] = (rule["Priority"], headers, api)
    return found


API, SUBSCRIPTIONS = "Api/Gateway/RestApi", "SubscriptionsApi/Gateway/RestApi"


def test_subscriptions_are_routed_to_the_api_that_streams(behind_a_domain: Assembly) -> None:
    assert _deployed(behind_a_domain) == {
        "Routing/CellTasks": (7, {"Mcp-Method": "tasks*", "Mcp-Name": "c1-*"}, API),
        "Routing/CellSubscriptions": (
            100_007,
            {"Mcp-Method": "subscriptions*", "Mcp-Name": "c1-*"},
            SUBSCRIPTIONS,
        ),
        "Routing/CellSessions": (200_007, {"Mcp-Session-Id": "c1-*"}, API),
        "Routing/CellStreams": (300_007, {"Last-Event-ID": "c1-*"}, API),
        "Routing/Subscriptions": (800_007, {"Mcp-Method": "subscriptions*"}, SUBSCRIPTIONS),
        "Routing/OtherRequests": (900_007, {}, API),
    }


def test_without_streaming_all_is_routed_to_one_api(second_cell: Assembly) -> None:
    deployed = _deployed(second_cell)
    assert {api for _, _, api in deployed.values()} == {API}
    assert deployed == {
        f"Routing/{route.name}": (route.priority, route.headers, API) for route in routes("c2", 100)
    }


def test_without_a_domain_nothing_is_routed(on_aws: Assembly, streaming: Assembly) -> None:
    for assembly in (on_aws, streaming):
        assert not assembly.resources("AWS::ApiGatewayV2::RoutingRule")


def test_a_deployment_behind_a_domain_names_it_as_its_endpoint(
    behind_a_domain: Assembly, second_cell: Assembly
) -> None:
    for assembly in (behind_a_domain, second_cell):
        outputs = assembly.readable(assembly.template["Outputs"])
        assert outputs["Endpoint"]["Value"] == "https://mcp.example.com/mcp"
        assert outputs["ApiId"]["Value"] == f"<{API}>"
    outputs = behind_a_domain.readable(behind_a_domain.template["Outputs"])
    assert outputs["SubscriptionsApiId"]["Value"] == f"<{SUBSCRIPTIONS}>"
    assert "SubscriptionsApiId" not in second_cell.template["Outputs"]
