"""A deployed Lambda authorizer, and what API Gateway does with its output.

Sources: API Gateway developer guide, "Use API Gateway Lambda authorizers", "Output from an API
Gateway Lambda authorizer" and "Gateway response types".
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from .proxy_event import Request

ACTION: Final = "execute-api:Invoke"
HEADER_SOURCE: Final = "method.request.header."


@dataclass
class DeniedError(Exception):
    """The caller may not call the method."""

    response_type: str
    """The type of the gateway response."""
    message: str | None
    context: Mapping[str, str] = field(default_factory=dict)
    """The authorizer's context, for the response's variables."""


@dataclass(frozen=True, slots=True)
class Authorizer:
    """An authorizer of the type REQUEST whose decisions are not cached."""

    function_arn: str
    required_headers: tuple[str, ...]
    """A request that lacks one is refused without a call of the function (`identitySource`)."""
    client: Any
    """boto3's client for Lambda."""

    @classmethod
    def read(cls, authorizer: Mapping[str, Any], client: Any) -> Authorizer:
        """Make an authorizer of an item of GetAuthorizers.

        Raises ValueError for one that is no function, or whose decisions are cached.
        """
        found = re.search("/functions/([^/]+)/invocations$", authorizer["authorizerUri"])
        if found is None or int(authorizer["authorizerResultTtlInSeconds"]) != 0:
            raise ValueError(f"{authorizer} is not a Lambda authorizer without a cache")
        sources = [source for source in authorizer.get("identitySource", "").split(",") if source]
        headers = tuple(source.removeprefix(HEADER_SOURCE).lower() for source in sources)
        return cls(found[1], headers, client)

    def authorize(self, request: Request) -> dict[str, str]:
        """Return the `requestContext.authorizer` of the function's event. Raises DeniedError."""
        if not all(any(request.headers.get(name, ())) for name in self.required_headers):
            raise DeniedError("UNAUTHORIZED", "Unauthorized")
        output = self._invoke(request)
        try:
            context = {name: _text(value) for name, value in (output.get("context") or {}).items()}
            effects = _effects(output["policyDocument"], request.method_arn)
            principal = str(output["principalId"])
        except (AttributeError, KeyError, TypeError):
            raise DeniedError("AUTHORIZER_CONFIGURATION_ERROR", None) from None
        if effects != {"Allow"}:
            explicit = " with an explicit deny" if "Deny" in effects else ""
            text = f"User is not authorized to access this resource{explicit}"
            raise DeniedError("ACCESS_DENIED", text, context)
        return {**context, "principalId": principal, "integrationLatency": "0"}

    def _invoke(self, request: Request) -> Any:
        event = json.dumps(request.authorizer_event()).encode()
        try:
            response = self.client.invoke(FunctionName=self.function_arn, Payload=event)
            output = json.load(response["Payload"])
        except (BotoCoreError, ClientError):
            raise DeniedError("AUTHORIZER_CONFIGURATION_ERROR", None) from None
        if "FunctionError" not in response:
            return output
        if output.get("errorMessage") == "Unauthorized":
            raise DeniedError("UNAUTHORIZED", "Unauthorized")
        raise DeniedError("AUTHORIZER_FAILURE", None)


def _effects(policy: Mapping[str, Any], method_arn: str) -> set[str]:
    """The effects of the policy's statements that apply to the method."""
    return {
        statement["Effect"]
        for statement in _list(policy["Statement"])
        if any(fnmatchcase(ACTION, action) for action in _list(statement["Action"]))
        and any(fnmatchcase(method_arn, resource) for resource in _list(statement["Resource"]))
    }


def _text(value: Any) -> str:
    """A context value as API Gateway passes it on: strings, numbers and booleans as strings.

    Raises TypeError for other values, which API Gateway refuses.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise TypeError(value)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
