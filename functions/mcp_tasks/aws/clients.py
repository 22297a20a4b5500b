"""Clients of AWS services: how they are made, and how long they may take.

API Gateway gives up on a request after 29 seconds. A call to AWS that hangs is repeated well before
that, and not so often that the client is answered too late.
"""

from __future__ import annotations

from typing import Any, Final

from botocore.config import Config
from botocore.session import get_session

from .errors import record_unanswered_attempts

DEFAULT_CONFIG: Final = Config(
    connect_timeout=2, read_timeout=5, retries={"mode": "standard", "total_max_attempts": 4}
)

S3_CONFIG: Final = DEFAULT_CONFIG.merge(
    Config(signature_version="s3v4", s3={"addressing_style": "virtual"}, read_timeout=20)
)
"""For S3. By default botocore presigns with signature version 2, which does not work for objects
that a KMS key encrypts (boto/boto3#2680). It presigns for `BUCKET.s3.amazonaws.com`, which resolves
to us-east-1 at first, and never to a region that has to be enabled (S3 user guide, "Virtual hosting
of buckets"). A read of 50 MB takes up to 20 seconds."""

S3_CONFIG_WITHIN_REQUEST: Final = S3_CONFIG.merge(
    Config(read_timeout=5, retries={"mode": "standard", "total_max_attempts": 2})
)
"""For S3, while a client waits: at most 19 seconds, with a body that breaks off."""

ONE_ATTEMPT: Final = Config(read_timeout=3, retries={"mode": "standard", "total_max_attempts": 1})
"""Merged into another: one attempt of at most 3 seconds."""

SHORT_ATTEMPT: Final = Config(
    connect_timeout=0.5, read_timeout=1, retries={"mode": "standard", "total_max_attempts": 1}
)
"""Merged into another: one attempt of at most 1.5 seconds. Whoever makes the call repeats it."""


def aws_client(service: str, config: Config) -> Any:
    """A client of an AWS service, made by botocore: importing boto3 doubles the cold start."""
    client = get_session().create_client(service, config=config)
    record_unanswered_attempts(client)
    return client
