"""A request as API Gateway passes it on: the events of an authorizer and of a function.

Sources: API Gateway developer guide, "Input to an API Gateway Lambda authorizer" and "Input format
of a Lambda function for proxy integration".
"""

from __future__ import annotations

import base64
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from local.deployment import STAGE
from local.emulator import ACCOUNT, REGION

Values = Mapping[str, list[str]]
"""All values of each header or query parameter, in the order in which they were sent."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request without its body."""

    api_id: str
    http_method: str
    resource: str
    """The path without the stage. No resource of this server has path parameters."""
    headers: Values
    """Names are in lower case."""
    query: Values
    source_ip: str
    request_id: str = field(default_factory=lambda: str(uuid.uuid4()))

    @property
    def method_arn(self) -> str:
        """The ARN that the authorizer's policy has to allow."""
        path = f"{self.api_id}/{STAGE}/{self.http_method}{self.resource}"
        return f"arn:aws:execute-api:{REGION}:{ACCOUNT}:{path}"

    def authorizer_event(self) -> dict[str, Any]:
        """The event of a Lambda authorizer of the type REQUEST. It has no body."""
        return {"type": "REQUEST", "methodArn": self.method_arn, **self._common()}

    def proxy_event(self, body: bytes, authorizer: Mapping[str, Any] | None) -> dict[str, Any]:
        """The event of a Lambda proxy integration; `authorizer` is what the authorizer returned."""
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
