"""Trace context in `_meta` (SEP-414): only what W3C Trace Context and Baggage call well-formed."""

from __future__ import annotations

from typing import Any, Final

import pytest

from mcp_tasks.protocol.trace import MAX_BAGGAGE_BYTES, MAX_TRACESTATE_CHARACTERS, trace_context

TRACE: Final = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN: Final = "00f067aa0ba902b7"
PARENT: Final = f"00-{TRACE}-{SPAN}-01"
STATE: Final = "vendor=opaque,other@system=t61rcWkgMzE"
BAGGAGE: Final = "userId=alice,serverNode=DF%2028;isProduction=false"


def test_all_three_are_taken_and_nothing_else() -> None:
    about = {"traceparent": PARENT, "tracestate": STATE, "baggage": BAGGAGE}
    assert trace_context({**about, "progressToken": 1, "Traceparent": PARENT}) == about


@pytest.mark.parametrize(
    "parent",
    [
        PARENT,
        f"00-{TRACE}-{SPAN}-00",
        f"cc-{TRACE}-{SPAN}-ff",  # a later version's, as far as this one can read it
    ],
)
def test_a_well_formed_parent_is_taken(parent: str) -> None:
    assert trace_context({"traceparent": parent}) == {"traceparent": parent}


@pytest.mark.parametrize(
    "parent",
    [
        None,
        7,
        [PARENT],
        "",
        f"ff-{TRACE}-{SPAN}-01",  # a version that there is not
        f"00-{'0' * 32}-{SPAN}-01",  # no trace
        f"00-{TRACE}-{'0' * 16}-01",  # no span
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{TRACE[1:]}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}0-01",
        f"00-{TRACE}-{SPAN}",
        f"00-{TRACE}-{SPAN}-01-extra",
        f"00_{TRACE}_{SPAN}_01",
        f" {PARENT}",
        f"{PARENT}\n",
        f"00-{TRACE[:-1]}g-{SPAN}-01",
        f"00-{TRACE[:-1]}٣-{SPAN}-01",  # a digit, of another script
    ],
)
def test_a_malformed_parent_ends_the_trace_and_is_no_error(parent: Any) -> None:
    """Trace Context, section 3.2.2.5. Without its parent, a state says nothing."""
    assert trace_context({"traceparent": parent, "tracestate": STATE, "baggage": BAGGAGE}) == {
        "baggage": BAGGAGE
    }


@pytest.mark.parametrize(
    ("member", "longest"),
    [("tracestate", MAX_TRACESTATE_CHARACTERS), ("baggage", MAX_BAGGAGE_BYTES)],
)
class TestAListOfMembers:
    def test_is_taken_up_to_its_longest(self, member: str, longest: int) -> None:
        text = "k=" + "v" * (longest - 2)
        assert trace_context({"traceparent": PARENT, member: text})[member] == text
        assert member not in trace_context({"traceparent": PARENT, member: text + "v"})

    @pytest.mark.parametrize("value", [None, 7, {}, "", "a=1\nb=2", "a=\x00", "a=\x7f", "a=é"])
    def test_is_left_out_when_no_header_could_carry_it(
        self, member: str, longest: int, value: Any
    ) -> None:
        """What goes into logs and on to other systems holds no line breaks."""
        assert trace_context({"traceparent": PARENT, member: value}) == {"traceparent": PARENT}


def test_baggage_needs_no_trace() -> None:
    assert trace_context({"baggage": BAGGAGE}) == {"baggage": BAGGAGE}
    assert trace_context({"tracestate": STATE}) == {}
