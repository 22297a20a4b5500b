"""What a request carries so that the server lets it in: nothing, a token, or a signature."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import urlsplit

import boto3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest


@dataclass(frozen=True, slots=True)
class Unsigned:
    """A request without credentials."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes


class Credentials(Protocol):
    """Adds credentials to a request."""

    def headers(self, request: Unsigned) -> dict[str, str]:
        """The request's headers, with the credentials."""


@dataclass(frozen=True, slots=True)
class NoCredentials:
    """For `auth=none`, and to see what a stranger is told."""

    def headers(self, request: Unsigned) -> dict[str, str]:
        """The headers as they are."""
        return dict(request.headers)


@dataclass(frozen=True, slots=True)
class AccessToken:
    """For `auth=oauth`."""

    token: str

    def headers(self, request: Unsigned) -> dict[str, str]:
        """The headers with the token (RFC 6750, section 2.1)."""
        return {**request.headers, "Authorization": f"Bearer {self.token}"}


class Signature:
    """For `auth=iam`: SigV4, with the AWS credentials of whoever runs the command."""

    def __init__(self, region: str) -> None:
        self._region = region
        self._credentials: Any = boto3.Session().get_credentials()

    def headers(self, request: Unsigned) -> dict[str, str]:
        """The headers with the signature (IAM user guide, "AWS Signature Version 4").

        Raises ValueError without AWS credentials.
        """
        if self._credentials is None:
            raise ValueError("there are no AWS credentials to sign requests with")
        host = {"Host": urlsplit(request.url).netloc}
        signed = AWSRequest(request.method, request.url, {**request.headers, **host}, request.body)
        SigV4Auth(self._credentials, "execute-api", self._region).add_auth(signed)
        return dict(signed.headers.items())
