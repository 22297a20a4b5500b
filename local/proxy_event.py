"""A request as API Gateway passes it on: to an authorizer, and to a function. Only stdlib.

Sources: API Gateway developer guide, "Input to an API Gateway Lambda authorizer" and "Input format
of a Lambda function for proxy integration".
"""

from __future__ import annotations

import base64
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from .emulator import ACCOUNT, REGION

STAGE: Final = "v1"

Values = Mapping[str, list[str]]
"""Header or query parameter -> all of its values, in their order."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request, without its body."""

    api_id: str
    http_method: str
    resource: str
    """Its path within the stage; none of this server's resources has parameters."""
    headers: Values
    """Their names in lower case."""
    query: Values
    source_ip: str
    request_id: str = field(default_factory=lambda: str(uuid.uuid4()))

    @property
    def method_arn(self) -> str:
        """What a policy has to allow."""
        path = f"{self.api_id}/{STAGE}/{self.http_method}{self.resource}"
        return f"arn:aws:execute-api:{REGION}:{ACCOUNT}:{path}"

    def to_authorizer(self) -> dict[str, Any]:
        """The event of an authorizer of the type REQUEST; it has no body."""
        return {"type": "REQUEST", "methodArn": self.method_arn, **self._common()}

    def to_function(self, body: bytes, authorizer: Mapping[str, Any] | None) -> dict[str, Any]:
        """The event of a proxy integration, with what the authorizer said, if there is one."""
        try:
            text, encoded = body.decode("utf-8"), False
        except UnicodeDecodeError:
            text, encoded = base64.b64encode(body).decode(), True
        event = {**self._common(), "body": text, "isBase64Encoded": encoded}
        if authorizer is not None:
            event["requestContext"]["authorizer"] = dict(authorizer)
        return event

    def _common(self) -> dict[str, Any]:
        return {
            "resource": self.resource,
            "path": self.resource,
            "httpMethod": self.http_method,
            "headers": {name: values[-1] for name, values in self.headers.items()},
            "multiValueHeaders": dict(self.headers),
            "queryStringParameters": {name: v[-1] for name, v in self.query.items()} or None,
            "multiValueQueryStringParameters": dict(self.query) or None,
            "pathParameters": None,
            "stageVariables": None,
            "requestContext": {
                "accountId": ACCOUNT,
                "apiId": self.api_id,
                "httpMethod": self.http_method,
                "identity": {
                    "sourceIp": self.source_ip,
                    "userAgent": self.headers.get("user-agent", [None])[-1],
                    "userArn": None,
                },
                "path": f"/{STAGE}{self.resource}",
                "protocol": "HTTP/1.1",
                "requestId": self.request_id,
                "requestTimeEpoch": int(time.time() * 1000),
                "resourcePath": self.resource,
                "stage": STAGE,
            },
        }
