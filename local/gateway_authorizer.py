"""The decisions of a deployed Lambda authorizer, as API Gateway takes them.

Source: API Gateway developer guide, "Use API Gateway Lambda authorizers", "Output from an API
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
HEADER: Final = "method.request.header."


@dataclass
class DeniedError(Exception):
    """The request is not let in."""

    kind: str
    """The type of the gateway response."""
    message: str | None
    context: Mapping[str, str] = field(default_factory=dict)
    """What the authorizer said about it."""


@dataclass(frozen=True, slots=True)
class Authorizer:
    """One that is asked about every request."""

    function: str
    """Its ARN."""
    headers: tuple[str, ...]
    """Without these, a request is refused unasked (`identitySource`)."""
    client: Any
    """boto3's for Lambda."""

    @classmethod
    def read(cls, authorizer: Mapping[str, Any], client: Any) -> Authorizer:
        """From what API Gateway says of it."""
        found = re.search("/functions/([^/]+)/invocations$", authorizer["authorizerUri"])
        if found is None or int(authorizer["authorizerResultTtlInSeconds"]) != 0:
            raise ValueError(f"{authorizer} is not a function that is asked every time")
        sources = [source for source in authorizer.get("identitySource", "").split(",") if source]
        names = tuple(source.removeprefix(HEADER).lower() for source in sources)
        return cls(found[1], names, client)

    def decide(self, request: Request) -> dict[str, str]:
        """What the function gets as `requestContext.authorizer`. Raises DeniedError."""
        if not all(any(request.headers.get(name, ())) for name in self.headers):
            raise DeniedError("UNAUTHORIZED", "Unauthorized")
        said = self._ask(request)
        try:
            context = {name: _text(value) for name, value in (said.get("context") or {}).items()}
            effects = _effects(said["policyDocument"], request.method_arn)
            principal = str(said["principalId"])
        except (AttributeError, KeyError, TypeError):
            raise DeniedError("AUTHORIZER_CONFIGURATION_ERROR", None) from None
        if effects != {"Allow"}:
            explicit = " with an explicit deny" if "Deny" in effects else ""
            text = f"User is not authorized to access this resource{explicit}"
            raise DeniedError("ACCESS_DENIED", text, context)
        return {**context, "principalId": principal, "integrationLatency": "0"}

    def _ask(self, request: Request) -> Any:
        event = json.dumps(request.to_authorizer()).encode()
        try:
            answer = self.client.invoke(FunctionName=self.function, Payload=event)
            said = json.load(answer["Payload"])
        except (BotoCoreError, ClientError):
            raise DeniedError("AUTHORIZER_CONFIGURATION_ERROR", None) from None
        if "FunctionError" not in answer:
            return said
        if said.get("errorMessage") == "Unauthorized":
            raise DeniedError("UNAUTHORIZED", "Unauthorized")
        raise DeniedError("AUTHORIZER_FAILURE", None)


def _effects(policy: Mapping[str, Any], arn: str) -> set[str]:
    """What the statements that are about the method say."""
    return {
        statement["Effect"]
        for statement in _list(policy["Statement"])
        if any(fnmatchcase(ACTION, action) for action in _list(statement["Action"]))
        and any(fnmatchcase(arn, resource) for resource in _list(statement["Resource"]))
    }


def _text(value: Any) -> str:
    """Texts, numbers and booleans may be in a context, and arrive as texts."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise TypeError(value)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
