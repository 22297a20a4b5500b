"""A REST API as it is deployed: its methods, their authorizers, and its gateway responses.

Sources: API Gateway developer guide, "Gateway responses for REST APIs" and "Set up mock
integrations in API Gateway".
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .authorizer import Authorizer


@dataclass(frozen=True, slots=True)
class Response:
    """A response that API Gateway gives without a function."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Method:
    """A method of a resource. Without a mock response, its requests invoke the function."""

    mock_response: Response | None
    authorizer: Authorizer | None


@dataclass(frozen=True, slots=True)
class RestApi:
    """One REST API."""

    api_id: str
    methods: Mapping[tuple[str, str], Method]
    """The methods by resource path (without the stage) and HTTP method."""
    gateway_responses: Mapping[str, Mapping[str, Any]]
    """The gateway responses by their type."""

    @classmethod
    def read(cls, api_id: str, aws: Callable[[str], Any]) -> RestApi:
        """Read the API from the control plane; `aws` makes boto3's clients.

        Raises ValueError for an API that checks signatures, because this gateway cannot.
        """
        client, lambda_ = aws("apigateway"), aws("lambda")
        authorizers = {
            item["id"]: Authorizer.read(item, lambda_)
            for item in client.get_authorizers(restApiId=api_id)["items"]
        }
        methods = {}
        pages = client.get_paginator("get_resources").paginate(restApiId=api_id, embed=["methods"])
        for resource in (resource for page in pages for resource in page["items"]):
            for name, method in resource.get("resourceMethods", {}).items():
                if method["authorizationType"] not in ("CUSTOM", "NONE"):
                    raise ValueError(f"{name} {resource['path']}: {method['authorizationType']}")
                methods[resource["path"], name] = Method(
                    _mock_response(method["methodIntegration"]),
                    authorizers[method["authorizerId"]] if method.get("authorizerId") else None,
                )
        responses = client.get_gateway_responses(restApiId=api_id)["items"]
        return cls(api_id, methods, {item["responseType"]: item for item in responses})

    def method(self, path: str, http_method: str) -> Method | None:
        """The method that takes a request: of the path itself, or of a `{proxy+}` above it.

        `path` is without the stage, and empty where there is none. None for a request that nothing
        takes.
        """
        parents = path.split("/")[:-1]
        greedy = ("/".join([*parents[:n], "{proxy+}"]) for n in range(len(parents), 0, -1))
        for resource in (path, *greedy) if path != "/" else (path,):
            for name in (http_method, "ANY"):
                if found := self.methods.get((resource, name)):
                    return found
        return None

    def gateway_response(
        self,
        response_type: str,
        message: str | None = None,
        context: Mapping[str, str] | None = None,
        status: int | None = None,
    ) -> Response:
        """The gateway response of a type, with the variables that this server's responses use.

        `message` is `$context.error.messageString`, and `context` the authorizer's. `status` is for
        the default types, which have none.
        """
        response = self.gateway_responses[response_type]
        variables = {
            "context.error.messageString": json.dumps(message),
            **{f"context.authorizer.{name}": value for name, value in (context or {}).items()},
        }
        headers = {"Content-Type": "application/json"}
        for target, source in (response.get("responseParameters") or {}).items():
            value = source[1:-1] if source.startswith("'") else variables.get(source)
            if value is not None:  # API Gateway omits a header whose variable has no value
                headers[target.removeprefix("gatewayresponse.header.")] = value
        template = response["responseTemplates"]["application/json"]
        body = re.sub(r"\$(context\.[\w.]+)", lambda m: variables.get(m[1], ""), template)
        return Response(status or int(response["statusCode"]), headers, body.encode())


def _mock_response(integration: Mapping[str, Any]) -> Response | None:
    """The response of a mock integration; None for other integrations."""
    if integration["type"] != "MOCK":
        return None
    status = json.loads(integration["requestTemplates"]["application/json"])["statusCode"]
    response = integration["integrationResponses"][str(status)]
    headers = {
        name.removeprefix("method.response.header."): value.strip("'")
        for name, value in (response.get("responseParameters") or {}).items()
    }
    body = (response.get("responseTemplates") or {}).get("application/json", "")
    content_type = {"Content-Type": "application/json"} if body else {}
    return Response(status, {**content_type, **headers}, body.encode())
