"""Answers that API Gateway gives by itself, always the same (a MOCK integration).

Source: API Gateway developer guide, "Set up mock integrations in API Gateway".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from aws_cdk import aws_apigateway as apigateway

from .cdk_nag_findings import acknowledge

CONTENT_TYPES: Final = (
    "application/json",  # also the one of a request without Content-Type
    "application/x-www-form-urlencoded",
    "text/plain",
)
"""Of requests that are answered. Others get 415."""


@dataclass(frozen=True, slots=True)
class FixedAnswer:
    """An answer. Its document is part of a template of API Gateway's, in which `$` and `#` have a
    meaning: it may hold neither.
    """

    status: int
    document: Mapping[str, Any]
    reason: str
    """Why everybody may have it."""
    headers: Mapping[str, str] = field(default_factory=dict)

    def add_to(self, resource: apigateway.IResource, http_method: str) -> None:
        """Let a method of a resource give it, to everybody, without calling a function."""
        status = str(self.status)
        parameters = {f"method.response.header.{name}": value for name, value in self._quoted()}
        method = resource.add_method(
            http_method,
            apigateway.MockIntegration(
                request_templates=dict.fromkeys(CONTENT_TYPES, f'{{"statusCode": {status}}}'),
                passthrough_behavior=apigateway.PassthroughBehavior.NEVER,
                integration_responses=[
                    apigateway.IntegrationResponse(
                        status_code=status,
                        response_parameters=parameters,
                        response_templates={"application/json": json.dumps(self.document)},
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
        for rule in ("AwsSolutions-APIG4", "AwsSolutions-COG4"):
            acknowledge(method, rule, self.reason)

    def _quoted(self) -> list[tuple[str, str]]:
        return [(name, f"'{value}'") for name, value in self.headers.items()]
