"""The API Gateway REST API in front of a function."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from aws_cdk import aws_apigateway as apigateway
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from mcp_tasks import environment

from .authorizer_function import Authorizer
from .cdk_nag_findings import accept_no_authorization, acknowledge
from .cors import gateway_response_headers
from .encryption import Encryption
from .endpoint_address import address_of
from .gateway_responses import answer_in_json_rpc, challenge_callers
from .invoke_permissions import permit_before_deployment, permit_method_before_deployment
from .log_groups import log_group
from .protected_resource_metadata import serve_metadata
from .response_transfer import ResponseTransfer
from .settings import ENDPOINT, Settings
from .tls import require_tls
from .unknown_paths import answer_unknown_paths

STAGE: Final = "v1"
HTTP_METHODS: Final = ("POST", "GET", "DELETE")
"""POST brings a message; GET resumes an event stream; DELETE ends a session."""


@dataclass(frozen=True, slots=True)
class GatewayProps:
    """What a gateway is built from."""

    name: str
    function: lambda_.Function
    called: lambda_.IFunction
    """The function or its alias."""
    transfer: ResponseTransfer
    settings: Settings
    authorizer: Authorizer | None
    encryption: Encryption


class Gateway(Construct):
    """A regional REST API, whose /mcp calls the function.

    With an authorizer, it also serves the metadata that names the issuer of its tokens (RFC 9728).
    """

    stage: Final = STAGE

    def __init__(self, scope: Construct, construct_id: str, props: GatewayProps) -> None:
        super().__init__(scope, construct_id)
        settings = props.settings
        api = self._rest_api(props)
        address = address_of(settings, api, STAGE)
        self.url = address.url
        mcp = api.root.add_resource(ENDPOINT.strip("/"))
        authorizer = props.authorizer.for_api(self) if props.authorizer else None
        if props.authorizer:
            permit_before_deployment(api, props.authorizer.permissions)
        methods = [_method(mcp, name, props, authorizer) for name in HTTP_METHODS]
        if settings.allowed_origins:
            methods.append(_preflight_method(mcp, props))
        for method in methods:
            permit_method_before_deployment(method, STAGE)
        cors_headers = gateway_response_headers(settings.allowed_origins)
        answer_in_json_rpc(api, cors_headers)
        answer_unknown_paths(api, mcp, HTTP_METHODS)
        if settings.oauth and props.authorizer:
            scopes = settings.oauth.scope_names.long(settings.oauth.scopes)
            challenge_callers(api, address.metadata_url, scopes, cors_headers)
            serve_metadata(api, address, settings.stack, settings.oauth)
            for function in (props.function, props.authorizer.function):
                function.add_environment(environment.RESOURCE_METADATA_URL, address.metadata_url)
            if not settings.oauth.audiences:
                props.authorizer.function.add_environment(environment.AUDIENCE, self.url)
        self._accept_findings(api, settings)
        self.rest_api = api
        self.rest_api_id = api.rest_api_id
        self.deployed_stage = api.deployment_stage.stage_name
        """The stage's name for a resource that must not exist before the stage does."""

    def deploy_after(self, construct: Construct) -> None:
        """Let the stage be updated when a construct is there. Raises ValueError for an API that
        nothing is deployed of.
        """
        if self.rest_api.latest_deployment is None:
            raise ValueError(f"{self.rest_api.node.path} has no deployment")
        self.rest_api.latest_deployment.node.add_dependency(construct)

    def _rest_api(self, props: GatewayProps) -> apigateway.RestApi:
        settings = props.settings
        access_log = self._access_log(settings, props.encryption) if settings.access_log else {}
        api = apigateway.RestApi(
            self,
            "RestApi",
            rest_api_name=props.name,
            endpoint_types=[apigateway.EndpointType.REGIONAL],
            # With a domain, nothing but the domain leads here. Without one, the host is opened
            # again where there was one: a property that is left out changes nothing.
            disable_execute_api_endpoint=settings.domain is not None,
            deploy_options=apigateway.StageOptions(
                stage_name=STAGE,
                tracing_enabled=settings.monitoring.tracing,
                throttling_rate_limit=settings.throttle.rate,
                throttling_burst_limit=settings.throttle.burst,
                **access_log,
            ),
        )
        require_tls(api)
        return api

    def _access_log(self, settings: Settings, encryption: Encryption) -> dict[str, Any]:
        """A line of JSON for each request, with what went wrong before and behind the function: in
        the gateway, in the authorizer, or when Lambda was called (API Gateway developer guide,
        "Variables for access logging for API Gateway").
        """
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
            "responseLatency": field.context_response_latency(),
            "errorMessage": field.context_error_message(),
            "integrationLatency": "$context.integration.latency",
            "integrationStatus": "$context.integration.status",
            "lambdaStatus": "$context.integration.integrationStatus",
            "integrationError": field.context_integration_error_message(),
            "authorizerLatency": field.context_authorizer_latency(),
            "authorizerStatus": field.context_authorizer_status(),
            "authorizerError": field.context_authorizer_error(),
            "traceId": field.context_xray_trace_id(),
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


def _preflight_method(resource: apigateway.Resource, props: GatewayProps) -> apigateway.Method:
    """The method by which a browser asks whether a page may call, without credentials.

    The function answers, because it has the list of origins and its patterns. A gateway's own
    answer would need them once more, in a template of another language.
    """
    none = apigateway.AuthorizationType.NONE
    method = resource.add_method("OPTIONS", _integration(props), authorization_type=none)
    accept_no_authorization(method, "Browsers send preflights without credentials (Fetch standard)")
    return method


def _integration(props: GatewayProps) -> apigateway.LambdaIntegration:
    """The call of the function, or of its alias."""
    return apigateway.LambdaIntegration(
        props.called, allow_test_invoke=False, **props.transfer.integration
    )


def _method(
    resource: apigateway.Resource,
    http_method: str,
    props: GatewayProps,
    authorizer: apigateway.RequestAuthorizer | None,
) -> apigateway.Method:
    """A method that calls the function, for the callers that `auth` lets in."""
    kinds = apigateway.AuthorizationType
    auth = props.settings.auth
    method = resource.add_method(
        http_method,
        _integration(props),
        authorization_type={"oauth": kinds.CUSTOM, "iam": kinds.IAM, "none": kinds.NONE}[auth],
        authorizer=authorizer,
    )
    if auth == "none":
        acknowledge(method, "AwsSolutions-APIG4", "-c auth=none asks for an open server")
    acknowledge(
        method,
        "AwsSolutions-COG4",
        "Who may call is the deployer's choice (-c auth=), and tokens may be any OIDC issuer's",
    )
    return method
