"""The document that names the issuer of this server's access tokens (RFC 9728)."""

from __future__ import annotations

import json
from typing import Final

from aws_cdk import aws_apigateway as apigateway

from .auth_options import OAuth
from .cdk_nag_findings import acknowledge
from .cors import answer_preflights

WELL_KNOWN: Final = (".well-known", "oauth-protected-resource")
PATH: Final = f"/{'/'.join(WELL_KNOWN)}/mcp"
"""RFC 9728, section 3.1: the well-known string stands before the resource's own path. A client that
got no challenge asks here first, and then without that path (authorization/index.mdx)."""
HEADERS: Final = {
    "Cache-Control": "public, max-age=3600",
    # Anybody may read it, also a page in a browser (RFC 9728 leaves it open; RFC 8414 does not).
    "Access-Control-Allow-Origin": "*",
}


def serve_metadata(api: apigateway.RestApi, url: str, name: str, oauth: OAuth) -> None:
    """Serve the document at both well-known paths, to everybody, without calling a function.

    The document is part of a template of API Gateway's, in which `$` and `#` have a meaning: no
    value may hold either, and `infra/auth_options.py` refuses those that do.
    """
    document = {
        "resource": url,
        "authorization_servers": [oauth.issuer],
        "bearer_methods_supported": ["header"],
        "resource_name": name,
    }
    if oauth.scopes:  # section 3.2: what has no values must be left out
        document["scopes_supported"] = list(oauth.scope_names.long(oauth.scopes))
    resource = api.root
    for part in WELL_KNOWN:
        resource = resource.add_resource(part)
    _serve(resource, json.dumps(document))
    _serve(resource.add_resource("mcp"), json.dumps(document))


def _serve(resource: apigateway.IResource, document: str) -> None:
    method = resource.add_method(
        "GET",
        apigateway.MockIntegration(
            request_templates={"application/json": '{"statusCode": 200}'},
            passthrough_behavior=apigateway.PassthroughBehavior.NEVER,
            integration_responses=[
                apigateway.IntegrationResponse(
                    status_code="200",
                    response_parameters={
                        f"method.response.header.{name}": f"'{value}'"
                        for name, value in HEADERS.items()
                    },
                    response_templates={"application/json": document},
                )
            ],
        ),
        method_responses=[
            apigateway.MethodResponse(
                status_code="200",
                response_parameters={f"method.response.header.{name}": True for name in HEADERS},
            )
        ],
    )
    # The official SDKs send it, and browsers ask before they do.
    answer_preflights(resource, ["Mcp-Protocol-Version"])
    for rule in ("AwsSolutions-APIG4", "AwsSolutions-COG4"):
        acknowledge(method, rule, "Names the issuer of tokens to callers that have no token yet")
