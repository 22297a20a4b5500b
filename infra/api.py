"""The MCP endpoint: a regional REST API in front of one function."""

from __future__ import annotations

import json
from typing import Final

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_apigateway as apigateway
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from constructs import Construct

from .functions import LOG_RETENTION, FunctionCode
from .nag import acknowledge
from .settings import Settings
from .table import TasksTable
from .tools import ToolWorkflows

VERSION: Final = "0.1.0"
STAGE: Final = "v1"

GATEWAY_ERRORS: Final = {
    "Throttled": (apigateway.ResponseType.THROTTLED, "Too many requests; try again later"),
    "TooLarge": (apigateway.ResponseType.REQUEST_TOO_LARGE, "The body is too large"),
    "TimedOut": (
        apigateway.ResponseType.INTEGRATION_TIMEOUT,
        "The call took longer than a request may; a client that declares the tasks extension can "
        "run it as a task",
    ),
    "Unavailable": (apigateway.ResponseType.DEFAULT_5_XX, "Internal error"),
}


class McpApi(Construct):
    """POST /mcp calls the function; GET and DELETE answer 405 without one."""

    stage: Final = STAGE

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        code: FunctionCode,
        table: TasksTable,
        workflows: ToolWorkflows,
        settings: Settings,
    ) -> None:
        super().__init__(scope, construct_id)
        function = code.function(
            self,
            "api",
            description="Answers MCP requests",
            environment={
                "TASKS_TABLE": table.name,
                "STATE_MACHINE_PREFIX": workflows.arn_prefix,
                "CELL": settings.cell,
                "SERVER_NAME": settings.stack,
                "SERVER_VERSION": VERSION,
                "ALLOWED_ORIGINS": " ".join(settings.allowed_origins),
            },
            timeout=Duration.seconds(29),
            memory_mb=1024,
        )
        table.grant(function, "dynamodb:PutItem", "dynamodb:GetItem", "dynamodb:UpdateItem")
        function.add_to_role_policy(
            iam.PolicyStatement(
                actions=["states:StartExecution", "states:SendTaskSuccess"],
                resources=workflows.state_machines,
            )
        )
        function.add_to_role_policy(
            iam.PolicyStatement(actions=["states:StopExecution"], resources=workflows.executions)
        )
        access_log = logs.LogGroup(
            self, "AccessLog", retention=LOG_RETENTION, removal_policy=RemovalPolicy.DESTROY
        )
        api = apigateway.RestApi(
            self,
            "RestApi",
            rest_api_name=settings.stack,
            endpoint_types=[apigateway.EndpointType.REGIONAL],
            deploy_options=apigateway.StageOptions(
                stage_name=STAGE,
                access_log_destination=apigateway.LogGroupLogDestination(access_log),
                access_log_format=apigateway.AccessLogFormat.json_with_standard_fields(
                    caller=True,
                    http_method=True,
                    ip=True,
                    protocol=True,
                    request_time=True,
                    resource_path=True,
                    response_length=True,
                    status=True,
                    user=True,
                ),
                throttling_rate_limit=500,
                throttling_burst_limit=1000,
            ),
        )
        mcp = api.root.add_resource("mcp")
        authorization = (
            apigateway.AuthorizationType.IAM
            if settings.auth == "iam"
            else apigateway.AuthorizationType.NONE
        )
        mcp.add_method(
            "POST",
            apigateway.LambdaIntegration(function, allow_test_invoke=False),
            authorization_type=authorization,
        )
        for method in ("GET", "DELETE"):
            _not_allowed(mcp, method)
        for name, (kind, message) in GATEWAY_ERRORS.items():
            api.add_gateway_response(name, type=kind, templates=_error_body(message))
        _accept_findings(api, settings)
        self.url = api.url_for_path("/mcp")
        self.rest_api_id = api.rest_api_id


def _not_allowed(resource: apigateway.Resource, http_method: str) -> None:
    """streamable-http.mdx, "Earlier Streamable HTTP Revisions": 405, without calling a function."""
    resource.add_method(
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


def _error_body(message: str) -> dict[str, str]:
    """An error that the gateway answers itself, as JSON-RPC; it does not know the request's id."""
    error = {"jsonrpc": "2.0", "error": {"code": -32603, "message": message}}
    return {"application/json": json.dumps(error)}


def _accept_findings(api: apigateway.RestApi, settings: Settings) -> None:
    accepted = {
        "AwsSolutions-APIG2": "The function validates: its errors are JSON-RPC, the gateway's are not",
        "AwsSolutions-APIG3": "A web ACL costs a monthly fee; it is the deployer's choice",
        "AwsSolutions-APIG6": "Execution logs need an account-wide role and would hold arguments; "
        "access logs are on",
        "AwsSolutions-COG4": "Callers sign with SigV4; a user pool is not required",
        "AwsSolutions-APIG4": "405 needs no authorization; POST has it unless auth=none was asked for",
    }
    for rule, reason in accepted.items():
        acknowledge(api, rule, reason)
