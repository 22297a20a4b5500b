"""Limits for tests: all their clients are one caller, who does more than people do."""

from __future__ import annotations

from typing import Final

RAISED: Final = {
    "max_tasks": "500",
    "max_creations": "10000",
    "max_polls": "1000",
    "max_subscriptions": "100",
    "max_new_subscriptions": "10000",
    "max_calls": "100",
}
"""Context of a deployment: out of the way, and still checked."""
