"""Fixtures of the tests of authorization."""

from __future__ import annotations

import pytest

from tests.unit.authorization.issuer_documents import Web, jwk


@pytest.fixture
def web() -> Web:
    """An issuer with one key."""
    web = Web()
    web.publish(jwk("a"))
    return web
