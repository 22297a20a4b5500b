"""Cross-origin resource sharing at the gateway: what API Gateway answers web pages by itself.

The function answers for the endpoint, preflights included: it knows which origins may call
(`mcp_tasks.protocol.cors`). API Gateway answers without it where a caller has no good token, calls
too often, or where the function fails. Source: API Gateway developer guide, "CORS for REST APIs in
API Gateway", "Enabling CORS support for ... gateway responses".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from aws_cdk import aws_apigateway as apigateway

from mcp_tasks.protocol.cors import EXPOSED, MAX_AGE_SECONDS

from .fixed_answer import JSON, FixedAnswer

ANY: Final = "*"


def gateway_response_headers(origins: Sequence[str]) -> dict[str, str]:
    """The headers that let pages read API Gateway's own errors, which hold nothing of anybody's.

    A gateway response cannot depend on the request's origin, but for an echo of it, which would
    name every origin as an allowed one. So a single origin is named; with several, or with a
    pattern, every page may read these errors, as it may read the metadata that they refer to.
    """
    if not origins:
        return {}
    only = origins[0] if len(origins) == 1 and ANY not in origins[0] else ANY
    return {
        "Access-Control-Allow-Origin": f"'{only}'",
        "Access-Control-Expose-Headers": f"'{', '.join(EXPOSED)}'",
    }


def answer_preflights(resource: apigateway.IResource, headers: Sequence[str]) -> None:
    """Let pages of all origins GET a public document with these request headers."""
    answer = {
        "Access-Control-Allow-Origin": ANY,
        "Access-Control-Allow-Methods": "GET",
        "Access-Control-Allow-Headers": ", ".join(headers),
        "Access-Control-Max-Age": str(MAX_AGE_SECONDS),
    }
    FixedAnswer(204, None, "", answer, (JSON,)).add_to(resource, "OPTIONS")
