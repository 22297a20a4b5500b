"""The least TLS that the endpoint takes: 1.2, at API Gateway's own host and at a custom domain.

A regional API takes TLS 1.0 otherwise. A domain and the APIs behind it have the same policy: where
the two differ, API Gateway negotiates by the API's, also for requests to the domain (API Gateway
developer guide, "Security policies for REST APIs in API Gateway" and "Choose a security policy for
your custom domain in API Gateway").
"""

from __future__ import annotations

from typing import Final, cast

from aws_cdk import aws_apigateway as apigateway

SECURITY_POLICY: Final = apigateway.SecurityPolicy.TLS13_1_2_PQ_2025_09
"""TLS 1.2 and 1.3."""
POLICY_NAME: Final = "SecurityPolicy_TLS13_1_2_PQ_2025_09"


def require_tls(api: apigateway.RestApi) -> None:
    """Give an API the policy. The CDK's construct has no parameter for it.

    The access mode is BASIC, because an API that is deployed already has to pass through it ("How
    to change a security policy"); a custom domain that is new has STRICT.
    """
    created = cast(apigateway.CfnRestApi, api.node.default_child)
    created.security_policy = POLICY_NAME
    created.endpoint_access_mode = "BASIC"
