"""What nothing serves is answered in JSON, with 404 or 405, and without a function.

Source: authorization-server-discovery.mdx: clients probe several paths, of which most do not exist.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.infra.assembly import Assembly

GATEWAYS = [("aws", "Api"), ("open", "Api"), ("domain", "Api"), ("domain", "SubscriptionsApi")]


def _methods(assembly: Assembly, api: str) -> dict[str, Any]:
    prefix = f"{api}/Gateway/RestApi/Default/"
    return {
        path.removeprefix(prefix): method
        for path, method in assembly.resources("AWS::ApiGateway::Method").items()
        if path.startswith(prefix)
    }


def _answer(method: dict[str, Any]) -> tuple[str, dict[str, Any], dict[str, str]]:
    """Status, document and headers of a method that calls no function."""
    integration = method["Integration"]
    assert (method["AuthorizationType"], integration["Type"]) == ("NONE", "MOCK")
    assert integration["PassthroughBehavior"] == "NEVER", "a body must not be read as a template"
    (answer,) = integration["IntegrationResponses"]
    for template in integration["RequestTemplates"].values():
        assert json.loads(template) == {"statusCode": int(answer["StatusCode"])}
    headers = {
        name.removeprefix("method.response.header."): value.strip("'")
        for name, value in answer["ResponseParameters"].items()
    }
    (declared,) = method["MethodResponses"]
    assert declared["ResponseParameters"] == dict.fromkeys(answer["ResponseParameters"], True)
    document = json.loads(answer["ResponseTemplates"]["application/json"])
    return answer["StatusCode"], document, headers


@pytest.mark.parametrize(("job", "api"), GATEWAYS)
@pytest.mark.parametrize("path", ["ANY", "{proxy+}/ANY"])
def test_an_unknown_path_is_not_found(
    assemblies: dict[str, Assembly], job: str, api: str, path: str
) -> None:
    """Also with IAM, where API Gateway's own type of answer is that of unsigned calls, too."""
    status, document, headers = _answer(_methods(assemblies[job], api)[path])
    assert (status, document["error"]["code"]) == ("404", -32600)
    assert headers == {"Access-Control-Allow-Origin": "*"}


@pytest.mark.parametrize(("job", "api"), GATEWAYS)
def test_an_unknown_method_of_the_endpoint_is_not_allowed(
    assemblies: dict[str, Assembly], job: str, api: str
) -> None:
    status, document, headers = _answer(_methods(assemblies[job], api)["mcp/ANY"])
    assert (status, document["error"]["code"]) == ("405", -32600)
    assert headers == {"Allow": "POST, GET, DELETE"}


def test_unsigned_calls_are_still_refused(on_aws: Assembly) -> None:
    """An answer of the type MISSING_AUTHENTICATION_TOKEN keeps its 403: nothing changes it."""
    kinds = {
        response["ResponseType"]
        for response in on_aws.resources("AWS::ApiGateway::GatewayResponse").values()
    }
    assert "MISSING_AUTHENTICATION_TOKEN" not in kinds
    post = _methods(on_aws, "Api")["mcp/POST"]
    assert post["AuthorizationType"] == "AWS_IAM"
