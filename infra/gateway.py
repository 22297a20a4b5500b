"""The REST API in front of the function."""

from __future__ import annotations

import json
from typing import Any, Final

from aws_cdk import RemovalPolicy
from aws_cdk import aws_apigateway as apigateway
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from .carrier import Carrier
from .functions import LOG_RETENTION
from .nag import acknowledge
from .settings import Settings

STAGE: Final = "v1"

INVALID_REQUEST: Final = -32600
INTERNAL_ERROR: Final = -32603

Type = apigateway.ResponseType

GATEWAY_ERRORS: Final = {
    "Throttled": (Type.THROTTLED, "429", INTERNAL_ERROR, "Too many requests; try again later"),
    "TooLarge": (Type.REQUEST_TOO_LARGE, "413", INVALID_REQUEST, "The body is too large"),
    "TimedOut": (
        Type.INTEGRATION_TIMEOUT,
        "504",
        INTERNAL_ERROR,
        "The call took longer than a request may; a client that declares the tasks extension can "
        "run it as a task",
    ),
}
"""Name -> type, HTTP status, JSON-RPC error code and message of what the gateway answers itself."""


class Gateway(Construct):
    """A regional REST API: POST /mcp calls the function; GET and DELETE are 405 without one."""

    stage: Final = STAGE

    def __init__(
        self,
        scope: Construct,
        name: str,
        function: lambda_.IFunction,
        carrier: Carrier,
        settings: Settings,
    ) -> None:
        super().__init__(scope, "Gateway")
        api = apigateway.RestApi(
            self,
            "RestApi",
            rest_api_name=name,
            endpoint_types=[apigateway.EndpointType.REGIONAL],
            deploy_options=apigateway.StageOptions(
                stage_name=STAGE,
                throttling_rate_limit=500,
                throttling_burst_limit=1000,
                **(self._access_log() if settings.access_log else {}),
            ),
        )
        mcp = api.root.add_resource("mcp")
        _post(mcp, function, carrier, settings)
        _not_allowed(mcp, "GET")
        _not_allowed(mcp, "DELETE")
        _answer_in_json_rpc(api)
        self._accept_findings(api, settings)
        self.url = api.url_for_path("/mcp")
        self.rest_api_id = api.rest_api_id
        self.deployed_stage = api.deployment_stage.stage_name
        """The stage's name for a resource that must not exist before the stage does."""

    def _access_log(self) -> dict[str, Any]:
        group = logs.LogGroup(
            self, "AccessLog", retention=LOG_RETENTION, removal_policy=RemovalPolicy.DESTROY
        )
        fields = {
            "requestId": apigateway.AccessLogField.context_request_id(),
            "requestTime": apigateway.AccessLogField.context_request_time(),
            "caller": apigateway.AccessLogField.context_identity_user_arn(),
            "ip": apigateway.AccessLogField.context_identity_source_ip(),
            "httpMethod": apigateway.AccessLogField.context_http_method(),
            "path": apigateway.AccessLogField.context_path(),
            "status": apigateway.AccessLogField.context_status(),
            "responseType": "$context.error.responseType",
        }
        return {
            "access_log_destination": apigateway.LogGroupLogDestination(group),
            "access_log_format": apigateway.AccessLogFormat.custom(json.dumps(fields)),
        }

    def _accept_findings(self, api: apigateway.RestApi, settings: Settings) -> None:
        stage = api.deployment_stage
        if not settings.access_log:
            acknowledge(
                stage,
                "AwsSolutions-APIG1",
                "Access logs need a role in the account's settings, which a stack should not "
                "change; -c access_log=on turns them on. The function logs a line per request",
            )
        acknowledge(
            stage, "AwsSolutions-APIG3", "A web ACL has a monthly fee: it is the deployer's choice"
        )
        acknowledge(
            stage,
            "AwsSolutions-APIG6",
            "Execution logs need the same role, and would hold arguments and answers",
        )
        acknowledge(
            api,
            "AwsSolutions-APIG2",
            "The function validates, and says in JSON-RPC what is wrong; the gateway could not",
        )


def _post(
    resource: apigateway.Resource,
    function: lambda_.IFunction,
    carrier: Carrier,
    settings: Settings,
) -> None:
    iam = settings.auth == "iam"
    method = resource.add_method(
        "POST",
        apigateway.LambdaIntegration(function, allow_test_invoke=False, **carrier.integration),
        authorization_type=apigateway.AuthorizationType.IAM
        if iam
        else apigateway.AuthorizationType.NONE,
    )
    if not iam:
        acknowledge(method, "AwsSolutions-APIG4", "-c auth=none asks for an open server")
    acknowledge(
        method, "AwsSolutions-COG4", "Callers sign with SigV4, or -c auth=none asks for anybody"
    )


def _not_allowed(resource: apigateway.Resource, http_method: str) -> None:
    """streamable-http.mdx, "Earlier Streamable HTTP Revisions": 405, without calling a function."""
    method = resource.add_method(
        http_method,
        apigateway.MockIntegration(
            request_templates={"application/json": '{"statusCode": 405}'},
            passthrough_behavior=apigateway.PassthroughBehavior.NEVER,
            integration_responses=[
                apigateway.IntegrationResponse(
                    status_code="405",
                    response_parameters={"method.response.header.Allow": "'POST'"},
                )
            ],
        ),
        method_responses=[
            apigateway.MethodResponse(
                status_code="405", response_parameters={"method.response.header.Allow": True}
            )
        ],
    )
    for rule in ("AwsSolutions-APIG4", "AwsSolutions-COG4"):
        acknowledge(method, rule, "405 for everybody: there is nothing to authorize")


def _answer_in_json_rpc(api: apigateway.RestApi) -> None:
    """Errors of the gateway as JSON-RPC; it does not know the request's id.

    The two defaults stand for all types that have no response of their own, each with the status
    that API Gateway gives it: 401, 403, 404, 415, 500, 502 and so on.
    """
    for name, (kind, status, code, message) in GATEWAY_ERRORS.items():
        api.add_gateway_response(
            name, type=kind, status_code=status, templates=_error(code, json.dumps(message))
        )
    refused = _error(INVALID_REQUEST, "$context.error.messageString")
    api.add_gateway_response("Refused", type=Type.DEFAULT_4_XX, templates=refused)
    failed = _error(INTERNAL_ERROR, json.dumps("Internal error"))
    api.add_gateway_response("Failed", type=Type.DEFAULT_5_XX, templates=failed)


def _error(code: int, message: str) -> dict[str, str]:
    """`message` is JSON, or one of API Gateway's variables that holds JSON."""
    error = f'{{"code": {code}, "message": {message}}}'
    return {"application/json": f'{{"jsonrpc": "2.0", "error": {error}}}'}
