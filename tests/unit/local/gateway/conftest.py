"""A gateway in front of a small function."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from local.gateway import Gateway, handler
from local.gateway.lambda_instances import LambdaFunction
from tests.unit.local.gateway.small_function import STREAMING, bundle, serving


@pytest.fixture(scope="module")
def function(tmp_path_factory: pytest.TempPathFactory) -> LambdaFunction:
    return bundle(tmp_path_factory.mktemp("bundle") / "code", STREAMING)


@pytest.fixture(scope="module")
def gateway(function: LambdaFunction) -> Iterator[Gateway]:
    with serving(function) as running:
        yield running


@pytest.fixture(autouse=True)
def attentive(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check clients often, so that tests need not wait."""
    monkeypatch.setattr(handler, "CLIENT_CHECK_SECONDS", 0.02)
