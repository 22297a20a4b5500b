"""Statistics, and the periods that samples fall into."""

from __future__ import annotations

import pytest

from operations.dashboard.points import Line, Window, line, statistic

MINUTE = 60_000


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Sum", 10.0),
        ("Maximum", 4.0),
        ("Minimum", 1.0),
        ("Average", 2.5),
        ("SampleCount", 4),
        ("p50", 2.0),
        ("p90", 4.0),
        ("p99", 4.0),
    ],
)
def test_a_statistic_is_cloudwatchs(name: str, value: float) -> None:
    assert statistic(name, [4.0, 1.0, 3.0, 2.0]) == value


def test_an_unknown_statistic_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^tm95: no statistic$"):
        statistic("tm95", [1.0])


def test_a_window_has_whole_periods_and_the_one_that_goes_on() -> None:
    window = Window.before(now_ms=10 * MINUTE + 1, minutes=5)
    assert (window.begin_ms, window.end_ms) == (6 * MINUTE, 11 * MINUTE)
    assert window.at(10 * MINUTE + 1) == 10 * MINUTE
    assert window.at(6 * MINUTE - 1) is None
    assert window.at(11 * MINUTE) is None


def test_a_long_window_has_long_periods() -> None:
    window = Window.before(now_ms=1_000 * MINUTE, minutes=24 * 60)
    assert window.period_ms == 24 * MINUTE
    assert (window.end_ms - window.begin_ms) == 24 * 60 * MINUTE


def test_a_period_without_samples_has_no_point() -> None:
    window = Window(0, 3 * MINUTE, MINUTE)
    samples = [(1, 2.0), (2, 3.0), (2 * MINUTE, 7.0), (5 * MINUTE, 9.0)]
    assert line("x", samples, "Sum", window) == Line("x", {0: 5.0, 2 * MINUTE: 7.0})
