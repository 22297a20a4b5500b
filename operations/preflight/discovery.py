"""Can every client find the issuer of the access tokens (`auth=oauth`)?

A client that does not follow `WWW-Authenticate` asks the endpoint's host for
`/.well-known/oauth-protected-resource/...` (RFC 9728, section 3.1). API Gateway's own host cannot
serve it: the first part of a path is a stage.
"""

from __future__ import annotations

import json
from typing import Final

from .check import Check, Finding
from .deployment import Deployment, properties_of

AUTHORIZER: Final = "AWS::ApiGateway::Authorizer"
WITHOUT_ROOT: Final = """\
WARNING: not every client will find the issuer of the access tokens. The endpoint is at API
    Gateway's own host, which serves nothing outside of a stage. Clients that follow
    WWW-Authenticate log in; others get 403 at /.well-known/oauth-protected-resource, and stop.
    What helps is a domain, in the DNS zone that aws route53 list-hosted-zones shows:
    make deploy ... domain=mcp.example.com hosted_zone=ID
    or a CDN in front, with url=. What each client would do: make doctor url=ENDPOINT"""


def find(deployment: Deployment) -> Finding:
    """Look at the output with the endpoint's URL."""
    if next(properties_of(deployment.template, AUTHORIZER), None) is None:
        return Finding("")
    endpoint = json.dumps(deployment.template["Outputs"]["Endpoint"]["Value"])
    return Finding(WITHOUT_ROOT if ".execute-api." in endpoint.lower() else "")


CHECK: Final = Check("every client finds the issuer", find)
