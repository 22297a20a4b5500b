"""A REST API as boto3 describes it: this server's, with or without an authorizer."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from botocore.exceptions import ClientError

from local.gateway.rest_api import RestApi

API_ID = "a1b2c3d4"
AUTHORIZER = "arn:aws:lambda:us-east-1:000000000000:function:mcp-test-Authorizer"
WELL_KNOWN = "/.well-known/oauth-protected-resource"
CHALLENGE = 'Bearer resource_metadata="https://x.example/metadata"'
NOT_FOUND = {"jsonrpc": "2.0", "error": {"code": -32600, "message": "Not found"}}
DOCUMENT = {"resource": "https://x.example/mcp"}

Decide = Callable[[dict[str, Any]], Any]
"""An authorizer's function. It may raise any exception."""


class Aws:
    """boto3's clients for API Gateway and Lambda, as far as they are called."""

    def __init__(self, decide: Decide | None = None, **changed: Any) -> None:
        self._decide = decide
        self._authorizer = {
            "id": "9",
            "authorizerUri": f"arn:aws:apigateway:us-east-1:lambda:path/x/functions/{AUTHORIZER}"
            "/invocations",
            "authorizerResultTtlInSeconds": 0,
            "identitySource": "method.request.header.Authorization",
            **changed,
        }
        self.events: list[dict[str, Any]] = []
        """The events that the authorizer was invoked with."""

    def __call__(self, service: str) -> Aws:
        assert service in ("apigateway", "lambda")
        return self

    def get_authorizers(self, restApiId: str) -> dict[str, Any]:
        assert restApiId == API_ID
        return {"items": [self._authorizer] if self._decide else []}

    def get_paginator(self, operation: str) -> Aws:
        assert operation == "get_resources"
        return self

    def paginate(self, restApiId: str, embed: list[str]) -> Iterator[dict[str, Any]]:
        assert (restApiId, embed) == (API_ID, ["methods"])
        not_allowed = _mock(405, {"Allow": "'POST'"}, "")
        post = {"authorizationType": "NONE", "methodIntegration": {"type": "AWS_PROXY"}}
        if self._decide:
            post |= {"authorizationType": "CUSTOM", "authorizerId": "9"}
        yield {"items": [{"id": "0", "path": "/"}]}
        methods = {"POST": post, "GET": not_allowed, "DELETE": not_allowed}
        yield {"items": [{"id": "1", "path": "/mcp", "resourceMethods": methods}]}
        metadata = {"GET": _mock(200, {"Cache-Control": "'public'"}, json.dumps(DOCUMENT))}
        yield {"items": [{"id": "2", "path": WELL_KNOWN, "resourceMethods": metadata}]}
        unknown = {"ANY": _mock(404, {}, json.dumps(NOT_FOUND))}
        yield {"items": [{"id": "3", "path": "/{proxy+}", "resourceMethods": unknown}]}

    def get_gateway_responses(self, restApiId: str) -> dict[str, Any]:
        """All types of gateway responses. API Gateway lists those that are not customized, too."""
        assert restApiId == API_ID
        refused, failed = (
            _json_rpc(-32600, "$context.error.messageString"),
            _json_rpc(-32603, '"-"'),
        )
        static, variable = f"'{CHALLENGE}'", "context.authorizer.challenge"
        return {
            "items": [
                _response("MISSING_AUTHENTICATION_TOKEN", "403", refused),
                _response("REQUEST_TOO_LARGE", "413", _json_rpc(-32600, '"Too large"')),
                _response("THROTTLED", "429", _json_rpc(-32603, '"Later"')),
                _response("UNAUTHORIZED", "401", refused, static),
                _response("ACCESS_DENIED", "403", refused, variable),
                _response("AUTHORIZER_FAILURE", "503", failed),
                _response("AUTHORIZER_CONFIGURATION_ERROR", "503", failed),
                {"responseType": "DEFAULT_5XX", "responseTemplates": {"application/json": failed}},
            ]
        }

    def invoke(self, FunctionName: str, Payload: bytes) -> dict[str, Any]:
        assert FunctionName == AUTHORIZER
        assert self._decide
        self.events.append(json.loads(Payload))
        try:
            said, error = self._decide(self.events[-1]), {}
        except ClientError:
            raise
        except Exception as raised:
            said = {"errorMessage": str(raised), "errorType": type(raised).__name__}
            error = {"FunctionError": "Unhandled"}
        return {"Payload": io.BytesIO(json.dumps(said).encode()), **error}


def rest_api(aws: Aws | None = None) -> RestApi:
    """The API. Without an authorizer in `aws`, anybody may call it."""
    return RestApi.read(API_ID, aws or Aws())


def _mock(status: int, headers: Mapping[str, str], body: str) -> dict[str, Any]:
    answer = {
        "statusCode": str(status),
        "responseParameters": {f"method.response.header.{k}": v for k, v in headers.items()},
        **({"responseTemplates": {"application/json": body}} if body else {}),
    }
    integration = {
        "type": "MOCK",
        "requestTemplates": {"application/json": f'{{"statusCode": {status}}}'},
        "integrationResponses": {str(status): answer},
    }
    return {"authorizationType": "NONE", "methodIntegration": integration}


def _json_rpc(code: int, message: str) -> str:
    return f'{{"jsonrpc": "2.0", "error": {{"code": {code}, "message": {message}}}}}'


def _response(
    kind: str, status: str, template: str, challenge: str | None = None
) -> dict[str, Any]:
    parameters = {"gatewayresponse.header.WWW-Authenticate": challenge} if challenge else {}
    return {
        "responseType": kind,
        "statusCode": status,
        "responseParameters": parameters,
        "responseTemplates": {"application/json": template},
    }
