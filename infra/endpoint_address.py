"""Where the endpoint is, and where the document that names its issuer is (RFC 9728, section 3.1).

The well-known string is inserted between the host and the path of the endpoint's URL:
`https://cdn.example.com/tools/mcp` has its document at
`https://cdn.example.com/.well-known/oauth-protected-resource/tools/mcp`. API Gateway's own host
cannot serve it there: the first part of a path is a stage, and a stage's name cannot begin with a
dot. Under that host the document is below the stage, where only clients find it that follow
`WWW-Authenticate`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from aws_cdk import Stack
from aws_cdk import aws_apigateway as apigateway

from .cdk_context import refusal
from .settings import ENDPOINT, Settings

WELL_KNOWN: Final = (".well-known", "oauth-protected-resource")
EXECUTE_API: Final = re.compile(r"\.execute-api\.[a-z0-9-]+\.", re.IGNORECASE)
PATH_PART: Final = r"[A-Za-z0-9._:-]+"
"""What API Gateway allows as a part of a resource's path."""


@dataclass(frozen=True, slots=True)
class EndpointAddress:
    """The endpoint's URL, and that of its RFC 9728 document."""

    url: str
    metadata_url: str
    """What `WWW-Authenticate` names: a URL at which the document is served."""
    inserted_path: tuple[str, ...]
    """The parts of the document's path that follow the well-known string."""


def serves_its_root(settings: Settings) -> bool:
    """Whether the endpoint's host serves this stack below `/`, and not below a stage's name."""
    if settings.url:
        return not settings.profile.loopback and not EXECUTE_API.search(host_of(settings.url))
    return settings.domain is not None


def host_of(url: str) -> str:
    """The host of a URL, with its port."""
    return urlsplit(url).netloc


def address_of(settings: Settings, api: apigateway.RestApi, stage: str) -> EndpointAddress:
    """The address of the endpoint that an API serves from a stage.

    API Gateway's own URL is composed here, and not taken from the stage: CloudFormation creates
    what refers to the stage after all methods of the API, and so after the functions that need this
    URL. Raises ValueError for a path of `-c url=` that API Gateway could not serve a document for.
    """
    well_known = f"/{'/'.join(WELL_KNOWN)}"
    if not serves_its_root(settings):
        base = settings.url.removesuffix(ENDPOINT) if settings.url else _default_base(api, stage)
        return EndpointAddress(
            base + ENDPOINT, f"{base}{well_known}{ENDPOINT}", (ENDPOINT.strip("/"),)
        )
    url = settings.url or f"https://{settings.domain}{ENDPOINT}"
    path = urlsplit(url).path
    parts = tuple(path.strip("/").split("/"))
    if settings.oauth and not all(re.fullmatch(PATH_PART, part) for part in parts):
        raise refusal(
            "url",
            url,
            "with -c auth=oauth, each part of the path has letters, digits, dots, hyphens, "
            "underscores and colons only: API Gateway serves a document under the same path",
        )
    root = url.removesuffix(path)
    return EndpointAddress(url, f"{root}{well_known}{path}", parts)


def _default_base(api: apigateway.RestApi, stage: str) -> str:
    stack = Stack.of(api)
    return f"https://{api.rest_api_id}.execute-api.{stack.region}.{stack.url_suffix}/{stage}"
