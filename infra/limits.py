"""`-c max_*=`, `rate=` and `burst=`: limits of callers, requests and tasks, read from context."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from mcp_tasks.limits import Limits
from mcp_tasks.registry.catalogue import Catalogue

from .cdk_context import Context, refusal


@dataclass(frozen=True, slots=True)
class Throttle:
    """What API Gateway lets through a stage, of all callers together."""

    rate: int
    """Requests a second."""
    burst: int
    """Requests at once."""


def limits_of(context: Context) -> Limits:
    """The limits of one caller and of one request. Raises ValueError."""
    return Limits(
        max_open_tasks=context.number("max_tasks"),
        creations_per_minute=context.number("max_creations"),
        polls_per_second=context.number("max_polls"),
        max_open_subscriptions=context.number("max_subscriptions"),
        new_subscriptions_per_minute=context.number("max_new_subscriptions"),
        max_open_calls=context.number("max_calls"),
        max_body_bytes=context.number("max_body"),
        max_argument_bytes=context.number("max_arguments"),
        max_json_depth=context.number("max_depth"),
        max_json_values=context.number("max_values"),
    )


def throttle_of(context: Context) -> Throttle:
    """The stage's throttling. Raises ValueError."""
    return Throttle(rate=context.number("rate"), burst=context.number("burst"))


def max_ttl_of(context: Context) -> timedelta:
    """How long a tool may keep its tasks. Raises ValueError."""
    return timedelta(days=context.number("max_ttl_days"))


def check_ttl(catalogue: Catalogue, max_ttl: timedelta) -> None:
    """Raise ValueError for tools that keep their tasks for longer."""
    longer = [
        f"{tool.name} ({timedelta(milliseconds=tool.ttl_ms)})"
        for tool in catalogue.tools.values()
        if timedelta(milliseconds=tool.ttl_ms) > max_ttl
    ]
    if longer:
        remedy = f"shorter than the ttl of {', '.join(longer)}; give one of the two another value"
        raise refusal("max_ttl_days", str(max_ttl.days), remedy)
