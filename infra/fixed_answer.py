"""Answers that API Gateway gives by itself, always the same (a MOCK integration).

Source: API Gateway developer guide, "Set up mock integrations in API Gateway".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from aws_cdk import aws_apigateway as apigateway

from .cdk_nag_findings import accept_no_authorization

JSON: Final = "application/json"
"""Also the type of a request without Content-Type."""
CONTENT_TYPES: Final = (JSON, "application/x-www-form-urlencoded", "text/plain")


@dataclass(frozen=True, slots=True)
class FixedAnswer:
    """An answer. Its document is part of a template of API Gateway's, in which `$` and `#` have a
    meaning: it may hold neither.
    """

    status: int
    document: Mapping[str, Any] | None
    """None for an answer without a body."""
    reason: str
    """Why everybody may have it; empty for preflights, of which cdk-nag asks no reason."""
    headers: Mapping[str, str] = field(default_factory=dict)
    content_types: tuple[str, ...] = CONTENT_TYPES
    """Of requests that are answered. Others get 415."""

    def add_to(self, resource: apigateway.IResource, http_method: str) -> None:
        """Let a method of a resource give it, to everybody, without calling a function."""
        status = str(self.status)
        templates = {JSON: json.dumps(self.document)} if self.document else None
        parameters = {f"method.response.header.{name}": value for name, value in self._quoted()}
        method = resource.add_method(
            http_method,
            apigateway.MockIntegration(
                request_templates=dict.fromkeys(self.content_types, f'{{"statusCode": {status}}}'),
                passthrough_behavior=apigateway.PassthroughBehavior.NEVER,
                integration_responses=[
                    apigateway.IntegrationResponse(
                        status_code=status,
                        response_parameters=parameters,
                        response_templates=templates,
                    )
                ],
            ),
            authorization_type=apigateway.AuthorizationType.NONE,
            method_responses=[
                apigateway.MethodResponse(
                    status_code=status, response_parameters=dict.fromkeys(parameters, True)
                )
            ],
        )
        if self.reason:
            accept_no_authorization(method, self.reason)

    def _quoted(self) -> list[tuple[str, str]]:
        return [(name, f"'{value}'") for name, value in self.headers.items()]
