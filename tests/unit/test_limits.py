"""The limits, as a value of a function's environment."""

from __future__ import annotations

from mcp_tasks.limits import Limits


def test_limits_travel_in_the_environment() -> None:
    limits = Limits(
        max_open_tasks=1,
        creations_per_minute=2,
        polls_per_second=3,
        max_open_subscriptions=4,
        new_subscriptions_per_minute=5,
        max_open_calls=6,
        max_body_bytes=7,
        max_argument_bytes=8,
        max_json_depth=9,
        max_json_values=10,
    )
    assert Limits.from_json(limits.to_json()) == limits
    assert Limits.from_json(None) == Limits.from_json("") == Limits()
