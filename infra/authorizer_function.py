"""The function that lets callers in who bring a good access token (`-c auth=oauth`)."""

from __future__ import annotations

from aws_cdk import Duration
from aws_cdk import aws_apigateway as apigateway
from constructs import Construct

from .auth import OAuth
from .function_code import FunctionCode


class Authorizer(Construct):
    """Looks at tokens, and at nothing else: it may do nothing but log."""

    def __init__(
        self, scope: Construct, construct_id: str, code: FunctionCode, oauth: OAuth
    ) -> None:
        super().__init__(scope, construct_id)
        self.function = code.function(
            self,
            "authorize",
            description="Checks access tokens",
            environment={
                "ISSUER": oauth.issuer,
                "AUDIENCE": oauth.audience,
                "SCOPES": " ".join(oauth.scopes),
            },
            # It may have to fetch the issuer's keys.
            timeout=Duration.seconds(10),
        )

    def of(self, api: Construct) -> apigateway.RequestAuthorizer:
        """Let it decide about the requests to an API; each needs an authorizer of its own.

        Its decisions are not kept: a token may expire in the next second, and what a request needs
        depends on the tool that it calls. A request without the header is refused by API Gateway,
        which does not call the function then; it challenges as for a token that is no good.
        """
        return apigateway.RequestAuthorizer(
            api,
            "Authorizer",
            handler=self.function,
            identity_sources=[apigateway.IdentitySource.header("Authorization")],
            results_cache_ttl=Duration.seconds(0),
        )
