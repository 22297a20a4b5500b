"""The challenge in `WWW-Authenticate` (RFC 6750, RFC 9728)."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_tasks.protocol.www_authenticate import bearer_challenge


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((), 'Bearer resource_metadata="m"'),
        ((["a", "b"],), 'Bearer scope="a b", resource_metadata="m"'),
        (([], "invalid_token"), 'Bearer error="invalid_token", resource_metadata="m"'),
        (
            (["a"], "invalid_token", "It has expired"),
            'Bearer error="invalid_token", error_description="It has expired", scope="a", '
            'resource_metadata="m"',
        ),
    ],
)
def test_a_challenge_says_what_to_bring(arguments: tuple[Any, ...], text: str) -> None:
    """RFC 6750, section 3: no error for a request that brought no token."""
    assert bearer_challenge("m", *arguments) == text
