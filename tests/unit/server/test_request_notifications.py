"""A request's own notifications (basic/patterns/progress.mdx, server/utilities/logging.mdx)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_tasks.protocol.notifications import LOG_LEVELS
from mcp_tasks.server.request_notifications import MAX_CHARACTERS, RequestNotifications


class Heard(list[dict[str, Any]]):
    """What was sent."""

    @property
    def progress(self) -> list[float]:
        return [message["params"]["progress"] for message in self]

    @property
    def levels(self) -> list[str]:
        return [message["params"]["level"] for message in self]


@pytest.fixture
def heard() -> Heard:
    return Heard()


def test_without_a_token_there_is_no_progress_and_without_a_level_no_log(heard: Heard) -> None:
    stream = RequestNotifications(heard.append)
    stream.report("half", 0.5)
    stream.report("more", None)
    stream.log("emergency", "fire", None)
    assert heard == []


def test_a_fraction_is_sent_as_a_percentage(heard: Heard) -> None:
    RequestNotifications(heard.append, "token").report("half", 0.5)
    params = {"progressToken": "token", "progress": 50, "total": 100, "message": "half"}
    assert heard == [{"jsonrpc": "2.0", "method": "notifications/progress", "params": params}]


@pytest.mark.parametrize("token", ["", "abc", 0, 7])
def test_the_token_comes_back_as_it_came(heard: Heard, token: str | int) -> None:
    RequestNotifications(heard.append, token).report("", None)
    assert heard[0]["params"] == {"progressToken": token, "progress": 1}


def test_reports_are_counted_until_one_has_a_fraction(heard: Heard) -> None:
    stream = RequestNotifications(heard.append, 1)
    for fraction in (None, None, 0.1, None, 0.2):
        stream.report("working", fraction)
    assert heard.progress == [1, 2, 10, 20]
    assert ["total" in message["params"] for message in heard] == [False, False, True, True]


@pytest.mark.parametrize(
    ("fractions", "sent"),
    [
        ([0, 0.5, 0.5, 1], [0, 50, 100]),
        ([0.5, 0.25, 0.75], [50, 75]),
        ([0.33333, 0.333331, 0.33341], [33.33, 33.34]),
        ([None, 0.005, 0.02], [1, 2]),
    ],
)
def test_progress_that_does_not_increase_is_left_out(
    heard: Heard, fractions: Sequence[float | None], sent: list[float]
) -> None:
    """progress.mdx, "Progress Flow": the value MUST increase with each notification."""
    stream = RequestNotifications(heard.append, 1)
    for fraction in fractions:
        stream.report("working", fraction)
    assert heard.progress == sent


@given(st.lists(st.none() | st.floats(0, 1)))
def test_progress_always_increases(fractions: list[float | None]) -> None:
    heard = Heard()
    stream = RequestNotifications(heard.append, 1)
    for fraction in fractions:
        stream.report("working", fraction)
    assert heard.progress == sorted(set(heard.progress))
    assert bool(heard) == bool(fractions)


@pytest.mark.parametrize("level", LOG_LEVELS)
def test_a_level_lets_through_itself_and_what_is_more_severe(heard: Heard, level: str) -> None:
    stream = RequestNotifications(heard.append, level=level)
    for each in LOG_LEVELS:
        stream.log(each, "text", None)
    assert heard.levels == list(LOG_LEVELS[LOG_LEVELS.index(level) :])


def test_a_log_message_holds_any_json_and_perhaps_its_logger(heard: Heard) -> None:
    stream = RequestNotifications(heard.append, level="debug")
    stream.log("info", {"rows": [1, None]}, "reader")
    stream.log("debug", None, None)
    assert heard == [
        {
            "jsonrpc": "2.0",
            "method": "notifications/message",
            "params": {"level": "info", "data": {"rows": [1, None]}, "logger": "reader"},
        },
        {
            "jsonrpc": "2.0",
            "method": "notifications/message",
            "params": {"level": "debug", "data": None},
        },
    ]


@pytest.mark.parametrize("level", [None, "debug", "emergency"])
def test_a_level_that_there_is_not_is_the_authors_mistake(heard: Heard, level: str | None) -> None:
    with pytest.raises(ValueError, match="not in"):
        RequestNotifications(heard.append, level=level).log("loud", "text", None)


def test_what_is_not_json_is_the_authors_mistake_and_is_not_sent(heard: Heard) -> None:
    stream = RequestNotifications(heard.append, level="debug")
    with pytest.raises(ValueError, match="JSON"):
        stream.log("info", float("nan"), None)
    with pytest.raises(TypeError):
        stream.log("info", object(), None)
    assert heard == []


def test_all_notifications_together_are_limited(heard: Heard) -> None:
    """The response has to hold the result as well."""
    stream = RequestNotifications(heard.append, 1, "debug")
    for number in range(30):
        stream.log("info", "x" * 50_000, None)
        stream.report("working", number / 30)
    assert heard
    assert len(heard) < 60
    assert sum(len(json.dumps(message)) for message in heard) <= MAX_CHARACTERS
