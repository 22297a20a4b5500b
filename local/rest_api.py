"""A REST API as it is deployed: its methods, who may call them, and what it answers itself.

Source: API Gateway developer guide, "Gateway responses for REST APIs" and "Set up mock integrations
in API Gateway".
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .gateway_authorizer import Authorizer


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer that no function gives."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Method:
    """What happens to a request: a function gets it, unless there is an answer."""

    answer: Answer | None
    authorizer: Authorizer | None


@dataclass(frozen=True, slots=True)
class RestApi:
    """One API."""

    api_id: str
    methods: Mapping[tuple[str, str], Method]
    """Path within the stage and HTTP method -> what happens."""
    responses: Mapping[str, Mapping[str, Any]]
    """Type -> gateway response."""

    @classmethod
    def read(cls, api_id: str, aws: Callable[[str], Any]) -> RestApi:
        """From the control plane; `aws` makes boto3's clients.

        Raises ValueError for an API that lets callers in by a signature: there is nothing here that
        could check it.
        """
        client, functions = aws("apigateway"), aws("lambda")
        authorizers = {
            item["id"]: Authorizer.read(item, functions)
            for item in client.get_authorizers(restApiId=api_id)["items"]
        }
        methods = {}
        pages = client.get_paginator("get_resources").paginate(restApiId=api_id, embed=["methods"])
        for resource in (resource for page in pages for resource in page["items"]):
            for name, method in resource.get("resourceMethods", {}).items():
                if method["authorizationType"] not in ("CUSTOM", "NONE"):
                    raise ValueError(f"{name} {resource['path']}: {method['authorizationType']}")
                methods[resource["path"], name] = Method(
                    _mock(method["methodIntegration"]),
                    authorizers[method["authorizerId"]] if method.get("authorizerId") else None,
                )
        responses = client.get_gateway_responses(restApiId=api_id)["items"]
        return cls(api_id, methods, {item["responseType"]: item for item in responses})

    def refuse(
        self,
        kind: str,
        message: str | None = None,
        context: Mapping[str, str] | None = None,
        status: int | None = None,
    ) -> Answer:
        """The gateway response of a type, with the variables that this server's responses use.

        `context` is the authorizer's, and `status` stands for the one that a default has not.
        """
        response = self.responses[kind]
        variables = {
            "context.error.messageString": json.dumps(message),
            **{f"context.authorizer.{name}": value for name, value in (context or {}).items()},
        }
        headers = {"Content-Type": "application/json"}
        for target, source in (response.get("responseParameters") or {}).items():
            value = source[1:-1] if source.startswith("'") else variables.get(source)
            if value is not None:  # what a variable does not hold is left out
                headers[target.removeprefix("gatewayresponse.header.")] = value
        template = response["responseTemplates"]["application/json"]
        body = re.sub(r"\$(context\.[\w.]+)", lambda m: variables.get(m[1], ""), template)
        return Answer(status or int(response["statusCode"]), headers, body.encode())


def _mock(integration: Mapping[str, Any]) -> Answer | None:
    """The answer of a mock integration; None for another."""
    if integration["type"] != "MOCK":
        return None
    status = json.loads(integration["requestTemplates"]["application/json"])["statusCode"]
    response = integration["integrationResponses"][str(status)]
    headers = {
        name.removeprefix("method.response.header."): value.strip("'")
        for name, value in (response.get("responseParameters") or {}).items()
    }
    body = (response.get("responseTemplates") or {}).get("application/json", "")
    kind = {"Content-Type": "application/json"} if body else {}
    return Answer(status, {**kind, **headers}, body.encode())
