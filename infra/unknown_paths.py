"""What a request gets for a path or a method that the API does not have.

API Gateway's own answer is 403 with "Missing Authentication Token". To a client that looks for
documents, 403 reads like an answer, and 404 like "look elsewhere" (RFC 8414, section 3.1, and
authorization-server-discovery.mdx, "Authorization Server Metadata Discovery": clients probe
several paths of which most do not exist).

The gateway response `MISSING_AUTHENTICATION_TOKEN` cannot be made a 404 instead: with IAM it also
answers calls of methods that exist, when they are not signed (re:Post, "How do I troubleshoot API
Gateway REST API endpoint 403 'Missing Authentication Token' errors?"), and it is not what an
unknown path gets when the request has an `Authorization` header.
"""

from __future__ import annotations

from typing import Final

from aws_cdk import aws_apigateway as apigateway

from .fixed_answer import FixedAnswer
from .gateway_responses import INVALID_REQUEST

ANY: Final = "ANY"
"""The methods of a resource that have no integration of their own."""


def _error(message: str) -> dict[str, object]:
    return {"jsonrpc": "2.0", "error": {"code": INVALID_REQUEST, "message": message}}


NOT_FOUND: Final = FixedAnswer(
    404,
    _error("Not found: the MCP endpoint is /mcp"),
    "Says to everybody that there is nothing",
    # A page that may not read the answer could not tell it from a server that does not answer.
    {"Access-Control-Allow-Origin": "*"},
)


def not_allowed(methods: tuple[str, ...]) -> FixedAnswer:
    """405 at the endpoint, for all but these methods (RFC 9110, section 15.5.6)."""
    return FixedAnswer(
        405,
        _error(f"Method not allowed: the MCP endpoint takes {', '.join(methods)}"),
        "Says to everybody which methods there are",
        {"Allow": ", ".join(methods)},
    )


def answer_unknown_paths(
    api: apigateway.RestApi, endpoint: apigateway.Resource, methods: tuple[str, ...]
) -> None:
    """Answer in JSON what nothing else answers.

    A request that no more specific resource has a method for falls through to `{proxy+}` at the
    root: the path has no methods, or none for this verb. The API Gateway developer guide does not
    say so in so many words. It was measured on AWS in eu-central-1 (ministackorg/ministack, pull
    request 1423) and, for verbs, in us-west-2 (floci-io/floci, pull request 3399).
    """
    not_allowed(methods).add_to(endpoint, ANY)
    NOT_FOUND.add_to(api.root, ANY)
    NOT_FOUND.add_to(api.root.add_resource("{proxy+}"), ANY)
