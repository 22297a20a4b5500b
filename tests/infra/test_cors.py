"""`-c origins=`: what API Gateway is told about web pages.

Sources: Fetch standard, section 3.2, "CORS protocol"; API Gateway developer guide, "CORS for REST
APIs in API Gateway".
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from infra.cors import gateway_response_headers
from tests.infra.assembly import Assembly

ALLOW = "gatewayresponse.header.Access-Control-Allow-Origin"
EXPOSE = "gatewayresponse.header.Access-Control-Expose-Headers"


def _options(assembly: Assembly) -> dict[str, Any]:
    """The path of a resource -> its OPTIONS method."""
    return {
        path.split("/Default/")[1].removesuffix("/OPTIONS"): method
        for path, method in assembly.resources("AWS::ApiGateway::Method").items()
        if method["HttpMethod"] == "OPTIONS"
    }


def _parameters(assembly: Assembly) -> list[dict[str, str]]:
    responses = assembly.resources("AWS::ApiGateway::GatewayResponse").values()
    return [response.get("ResponseParameters", {}) for response in responses]


def test_without_origins_there_is_nothing_for_pages(on_aws: Assembly) -> None:
    assert _options(on_aws) == {}
    assert [p for p in _parameters(on_aws) if ALLOW in p] == []


@pytest.mark.parametrize("name", ["open", "fork", "local"])
def test_the_function_answers_preflights_without_a_token(
    assemblies: dict[str, Assembly], name: str
) -> None:
    method = _options(assemblies[name])["mcp"]
    assert method["AuthorizationType"] == "NONE"
    assert "AuthorizerId" not in method
    assert method["Integration"]["Type"] == "AWS_PROXY"


@pytest.mark.parametrize(
    ("name", "allowed"), [("open", "'*'"), ("fork", "'https://app.example.com'"), ("local", "'*'")]
)
def test_pages_can_read_the_gateways_own_errors(
    assemblies: dict[str, Assembly], name: str, allowed: str
) -> None:
    """All types: a response without the header would be a network error to the page."""
    parameters = _parameters(assemblies[name])
    assert parameters
    for of_one_type in parameters:
        assert of_one_type[ALLOW] == allowed
        assert "WWW-Authenticate" in of_one_type[EXPOSE]
        assert "Retry-After" in of_one_type[EXPOSE]


@pytest.mark.parametrize("origins", [["https://*.example.com"], ["https://a.example", "https://b"]])
def test_a_gateway_response_names_no_origin_that_it_cannot_compare(origins: list[str]) -> None:
    assert gateway_response_headers(origins)["Access-Control-Allow-Origin"] == "'*'"


@pytest.mark.parametrize("name", ["streaming", "fork"])
def test_all_pages_may_ask_for_the_metadata_with_a_protocol_version(
    assemblies: dict[str, Assembly], name: str
) -> None:
    found = {k: m for k, m in _options(assemblies[name]).items() if ".well-known" in k}
    assert found
    for method in found.values():
        integration = method["Integration"]
        assert (method["AuthorizationType"], integration["Type"]) == ("NONE", "MOCK")
        assert json.loads(integration["RequestTemplates"]["application/json"]) == {
            "statusCode": 204
        }
        (response,) = integration["IntegrationResponses"]
        headers = response["ResponseParameters"]
        assert headers["method.response.header.Access-Control-Allow-Origin"] == "'*'"
        assert (
            headers["method.response.header.Access-Control-Allow-Headers"]
            == "'Mcp-Protocol-Version'"
        )
