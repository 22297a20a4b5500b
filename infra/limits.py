"""The limits that a deployment may choose, each within what AWS, or this server, can bear."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from mcp_tasks.limits import Limits
from mcp_tasks.registry.catalogue import Catalogue

from .options import Choices, refusal

DEFAULTS = Limits()
OFF = "0 is no limit"


@dataclass(frozen=True, slots=True)
class Throttle:
    """What API Gateway lets through a stage, of all callers together."""

    rate: int
    """Requests a second."""
    burst: int
    """Requests at once."""


def limits_of(choices: Choices) -> Limits:
    """What one caller, and one request, may be. Raises ValueError."""

    def number(key: str, default: int, low: int, high: int, what: str) -> int:
        return choices.number(key, default, low, high, f"{low} to {high} {what}")

    return Limits(
        # The names of a caller's open tasks are kept in one item, of at most 400 KB.
        max_open_tasks=number(
            "max_tasks",
            DEFAULTS.max_open_tasks,
            0,
            500,
            f"tasks of one caller that are not terminal; {OFF}",
        ),
        creations_per_minute=number(
            "max_creations",
            DEFAULTS.creations_per_minute,
            0,
            10_000,
            f"tasks that one caller creates a minute; {OFF}",
        ),
        polls_per_second=number(
            "max_polls",
            DEFAULTS.polls_per_second,
            0,
            1000,
            f"polls a second of one caller for one task; {OFF}",
        ),
        max_open_subscriptions=number(
            "max_listens",
            DEFAULTS.max_open_subscriptions,
            0,
            100,
            f"open listens of one caller; {OFF}",
        ),
        max_body_bytes=number(
            "max_body",
            DEFAULTS.max_body_bytes,
            1024,
            5 * 1024 * 1024,
            "bytes of a body; Lambda takes 6 MB, with the request's headers and escapes",
        ),
        max_argument_bytes=number(
            "max_arguments",
            DEFAULTS.max_argument_bytes,
            1024,
            5 * 1024 * 1024,
            "bytes of arguments, which a body has to carry",
        ),
        max_json_depth=number(
            "max_depth", DEFAULTS.max_json_depth, 10, 500, "levels of arrays and objects"
        ),
    )


def throttle_of(choices: Choices) -> Throttle:
    """The stage's throttling. Raises ValueError."""

    def number(key: str, default: int, what: str) -> int:
        remedy = f"1 to 100000 requests {what}; the account's own quota is 10000 unless raised"
        return choices.number(key, default, 1, 100_000, remedy)

    return Throttle(rate=number("rate", 500, "a second"), burst=number("burst", 1000, "at once"))


def max_ttl_of(choices: Choices) -> timedelta:
    """How long a tool may keep its tasks. Raises ValueError.

    Objects in the bucket expire by it, those that are there already included: a lower value may
    take them from tasks that were made under a higher one.
    """
    return timedelta(days=choices.number("max_ttl_days", 30, 1, 365, "1 to 365 days"))


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
