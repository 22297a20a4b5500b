"""boto3 for an emulator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import boto3

from infra.local.emulator import Emulator


def client_of(emulator: Emulator) -> Callable[..., Any]:
    """`boto3.client` for an emulator."""
    environment = emulator.environment
    session = boto3.Session(
        aws_access_key_id=environment["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=environment["AWS_SECRET_ACCESS_KEY"],
        region_name=environment["AWS_REGION"],
    )

    def client(service: str, **options: Any) -> Any:
        return session.client(service, endpoint_url=emulator.url, **options)  # type: ignore[call-overload]

    return client
