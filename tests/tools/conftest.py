"""AWS in moto for the tools' own tests, as the platform's unit tests have it."""

from __future__ import annotations

from tests.unit.conftest import aws, moto, mounted_tools, no_account

__all__ = ["aws", "moto", "mounted_tools", "no_account"]
