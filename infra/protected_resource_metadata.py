"""The document that names the issuer of this server's access tokens (RFC 9728)."""

from __future__ import annotations

from typing import Final

from aws_cdk import aws_apigateway as apigateway

from .auth_options import OAuth
from .cors import answer_preflights
from .endpoint_address import WELL_KNOWN, EndpointAddress
from .fixed_answer import FixedAnswer
from .settings import ENDPOINT

HEADERS: Final = {
    "Cache-Control": "public, max-age=3600",
    # Anybody may read it, also a page in a browser (RFC 9728 leaves it open; RFC 8414 does not).
    "Access-Control-Allow-Origin": "*",
}


def serve_metadata(
    api: apigateway.RestApi, address: EndpointAddress, name: str, oauth: OAuth
) -> None:
    """Serve the document at its well-known paths, to everybody, without calling a function.

    A client that got no challenge asks for the path with the endpoint's own inserted, and then for
    the one without (authorization-server-discovery.mdx, "Protected Resource Metadata Discovery
    Requirements"). The path that ends in `/mcp` is there also where the endpoint's is longer: for a
    proxy that takes the rest of the path away.

    API Gateway reads `$` and `#` as parts of a template: no value may hold either, and
    `infra/auth_options.py` refuses those that do.
    """
    document = {
        "resource": address.url,
        "authorization_servers": [oauth.issuer],
        "bearer_methods_supported": ["header"],
        "resource_name": name,
    }
    if oauth.scopes:  # section 3.2: what has no values must be left out
        document["scopes_supported"] = list(oauth.scope_names.long(oauth.scopes))
    reason = "Names the issuer of tokens to callers that have no token yet"
    answer = FixedAnswer(200, document, reason, HEADERS)
    without_path: apigateway.IResource = api.root
    for part in WELL_KNOWN:
        without_path = _child(without_path, part)
    resources = [without_path]
    for path in dict.fromkeys([(ENDPOINT.strip("/"),), address.inserted_path]):
        resource = without_path
        for part in path:
            resource = _child(resource, part)
        resources.append(resource)
    for resource in resources:
        answer.add_to(resource, "GET")
        # The official SDKs send it, and browsers ask before they do.
        answer_preflights(resource, ["Mcp-Protocol-Version"])


def _child(parent: apigateway.IResource, part: str) -> apigateway.IResource:
    return parent.get_resource(part) or parent.add_resource(part)
