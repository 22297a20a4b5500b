"""The function that checks access tokens (`-c auth=oauth`)."""

from __future__ import annotations

from aws_cdk import Duration
from aws_cdk import aws_apigateway as apigateway
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from mcp_tasks import environment

from .alarms import metrics_namespace
from .auth_options import OAuth
from .function_code import FunctionCode
from .invoke_permissions import permissions_in
from .rollout import Rollout


class Authorizer(Construct):
    """A Lambda authorizer. It reads nothing but the token, and has no permissions but to log."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        code: FunctionCode,
        oauth: OAuth,
        rollout: Rollout,
    ) -> None:
        super().__init__(scope, construct_id)
        self.function = code.function(
            self,
            "authorize",
            description="Checks access tokens",
            environment={
                environment.ISSUER: oauth.issuer,
                environment.AUDIENCE: " ".join(oauth.audiences),  # see `Gateway`
                environment.TOKEN_TYP: oauth.token_typ,
                environment.SCOPES: " ".join(oauth.scopes),
                environment.SCOPE_PREFIX: oauth.scope_names.prefix,
                **metrics_namespace(self),
            },
            # It may have to fetch the issuer's keys.
            timeout=Duration.seconds(10),
        )
        self._called = rollout.authorizer(self.function)

    def for_api(self, api: Construct) -> apigateway.RequestAuthorizer:
        """The authorizer of one API; each API needs its own.

        API Gateway does not cache its decisions: a token may expire in the next second, and the
        scopes that a request needs depend on the tool that it calls. API Gateway refuses a request
        without the header itself, with the same challenge as for a bad token.
        """
        return apigateway.RequestAuthorizer(
            api,
            "Authorizer",
            handler=self._called,
            identity_sources=[apigateway.IdentitySource.header("Authorization")],
            results_cache_ttl=Duration.seconds(0),
        )

    @property
    def permissions(self) -> list[lambda_.CfnPermission]:
        """Of the APIs that have an authorizer, to call this one."""
        return permissions_in(self._called)
