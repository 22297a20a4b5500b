"""Whether access tokens will name this server: a warning before the first caller is refused."""

from __future__ import annotations

import re
from typing import Final

from aws_cdk import Annotations, Token
from constructs import Construct

from .auth_options import OAuth

EXECUTE_API: Final = re.compile(r"https://[a-z0-9]+\.execute-api\.[a-z0-9.-]+/v1/mcp")
"""API Gateway's own name for an endpoint, whose first part is known after the first deployment."""

NAMES_CLIENTS: Final = re.compile(
    r"https://(login\.microsoftonline\.(com|us)|login\.partner\.microsoftonline\.cn"
    r"|[a-z0-9-]+\.ciamlogin\.com|cognito-idp\.[a-z0-9-]+\.amazonaws\.com(\.cn)?)/.*"
)
"""The issuers whose tokens may name the client id of an app instead: Entra ID does so in all tokens
of version 2.0 ("Access token claims reference", `aud`), Cognito where no resource was asked for."""


def warn_of_other_audiences(scope: Construct, oauth: OAuth | None, resource: str) -> None:
    """Warn when the URL that clients ask for is none of the audiences.

    Clients send the `resource` of the protected resource metadata to the issuer, which makes it the
    audience of the token (RFC 8707, section 2; authorization/index.mdx, "Resource Parameter
    Implementation").
    """
    if oauth is None or not oauth.audiences or NAMES_CLIENTS.fullmatch(oauth.issuer):
        return
    if Token.is_unresolved(resource):
        named = any(EXECUTE_API.fullmatch(audience) for audience in oauth.audiences)
        shown = "the endpoint's URL, https://API.execute-api.REGION.amazonaws.com/v1/mcp"
    else:
        named, shown = resource in oauth.audiences, resource
    if not named:
        Annotations.of(scope).add_warning_v2(
            "mcp-tasks:audience",
            f"-c audience={' '.join(oauth.audiences)} leaves out {shown}. Clients ask the issuer "
            "for a token for that URL. If the issuer writes it into aud, as RFC 8707 says, every "
            "token will be refused: add it, or leave -c audience= out (docs/issuers.md)",
        )
