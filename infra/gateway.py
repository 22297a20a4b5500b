"""The REST API in front of the function."""

from __future__ import annotations

import json
from typing import Any, Final

from aws_cdk import Stack
from aws_cdk import aws_apigateway as apigateway
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from .authorizer_function import Authorizer
from .cdk_nag_findings import acknowledge
from .encryption import Encryption
from .gateway_responses import answer_in_json_rpc, challenge_callers
from .log_groups import log_group
from .protected_resource_metadata import PATH as METADATA_PATH
from .protected_resource_metadata import serve_metadata
from .response_transfer import ResponseTransfer
from .settings import ENDPOINT, Settings

STAGE: Final = "v1"


class Gateway(Construct):
    """A regional REST API: POST /mcp calls the function; GET and DELETE are 405 without one.

    With an authorizer, it also serves the metadata that leads clients to its tokens' issuer.
    """

    stage: Final = STAGE

    def __init__(
        self,
        scope: Construct,
        name: str,
        function: lambda_.Function,
        transfer: ResponseTransfer,
        settings: Settings,
        authorizer: Authorizer | None,
        encryption: Encryption,
    ) -> None:
        super().__init__(scope, "Gateway")
        api = apigateway.RestApi(
            self,
            "RestApi",
            rest_api_name=name,
            endpoint_types=[apigateway.EndpointType.REGIONAL],
            deploy_options=apigateway.StageOptions(
                stage_name=STAGE,
                throttling_rate_limit=settings.throttle.rate,
                throttling_burst_limit=settings.throttle.burst,
                **(self._access_log(settings, encryption) if settings.access_log else {}),
            ),
        )
        base = _base_url(api, settings)
        self.url = base + ENDPOINT
        mcp = api.root.add_resource(ENDPOINT.strip("/"))
        _post(mcp, function, transfer, settings, authorizer.of(self) if authorizer else None)
        _not_allowed(mcp, "GET")
        _not_allowed(mcp, "DELETE")
        answer_in_json_rpc(api)
        if settings.oauth and authorizer:
            metadata = base + METADATA_PATH
            challenge_callers(api, metadata, settings.oauth.scopes)
            serve_metadata(api, self.url, settings.stack, settings.oauth)
            for challenging in (function, authorizer.function):
                challenging.add_environment("RESOURCE_METADATA_URL", metadata)
        self._accept_findings(api, settings)
        self.rest_api_id = api.rest_api_id
        self.deployed_stage = api.deployment_stage.stage_name
        """The stage's name for a resource that must not exist before the stage does."""

    def _access_log(self, settings: Settings, encryption: Encryption) -> dict[str, Any]:
        group = log_group(self, "AccessLog", encryption)
        field = apigateway.AccessLogField
        fields = {
            "requestId": field.context_request_id(),
            "requestTime": field.context_request_time(),
            "caller": field.context_authorizer_principal_id()
            if settings.oauth
            else field.context_identity_user_arn(),
            "ip": field.context_identity_source_ip(),
            "httpMethod": field.context_http_method(),
            "path": field.context_path(),
            "status": field.context_status(),
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


def _base_url(api: apigateway.RestApi, settings: Settings) -> str:
    """What clients' URLs of this server begin with.

    API Gateway's own name for it is put together here: what refers to the deployment's stage comes
    after all of the API's methods, and so after the functions that are to know this URL.
    """
    if settings.url:
        return settings.url.removesuffix(ENDPOINT)
    if settings.domain:
        return f"https://{settings.domain}"
    stack = Stack.of(api)
    return f"https://{api.rest_api_id}.execute-api.{stack.region}.{stack.url_suffix}/{STAGE}"


def _post(
    resource: apigateway.Resource,
    function: lambda_.IFunction,
    transfer: ResponseTransfer,
    settings: Settings,
    authorizer: apigateway.RequestAuthorizer | None,
) -> None:
    kinds = apigateway.AuthorizationType
    method = resource.add_method(
        "POST",
        apigateway.LambdaIntegration(function, allow_test_invoke=False, **transfer.integration),
        authorization_type={"oauth": kinds.CUSTOM, "iam": kinds.IAM, "none": kinds.NONE}[
            settings.auth
        ],
        authorizer=authorizer,
    )
    if settings.auth == "none":
        acknowledge(method, "AwsSolutions-APIG4", "-c auth=none asks for an open server")
    acknowledge(
        method,
        "AwsSolutions-COG4",
        "Who may call is the deployer's choice (-c auth=), and tokens may be any OIDC issuer's",
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
