"""`requestState`: sealed, bound to its request, and good for a while (basic/patterns/mrtr.mdx,
"Server Requirements (Basic Workflow)").
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_tasks.protocol.errors import ProtocolError
from mcp_tasks.server.methods.request_state import (
    LIFETIME_MS,
    MAX_CHARACTERS,
    RequestStateCipher,
    request_digest,
)

NOW: Final = 1_700_000_000_000
SECRET: Final = "0123456789abcdef0123456789abcdef"
STATES: Final = RequestStateCipher(SECRET)
STATE: Final = {"answers": {"sure": {"action": "accept"}}, "asked": ["name"]}
REQUEST: Final[tuple[str, str, str, Any]] = ("alice", "tools/call", "count", {"upto": 3})
SUBJECT: Final = request_digest(*REQUEST)
ENVELOPE: Final = 1 + 12
"""Bytes before what is encrypted: the format, and the nonce."""


def sealed(now: int = NOW) -> str:
    return STATES.seal(STATE, SUBJECT, now)


def refusal(
    text: str, bound: str = SUBJECT, now: int = NOW, states: RequestStateCipher = STATES
) -> dict[str, Any]:
    """The error that a state is refused with."""
    with pytest.raises(ProtocolError) as caught:
        states.open(text, bound, now)
    return caught.value.as_error()


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode()


def decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text)


ONE_REFUSAL: Final = refusal("")
"""What every refusal looks like; they must not tell one reason from another."""


def test_the_refusal_is_one_of_parameters_and_names_the_way_out() -> None:
    assert ONE_REFUSAL["code"] == -32602
    assert "without it" in ONE_REFUSAL["message"]


def test_a_state_comes_back_to_the_request_that_it_was_made_for() -> None:
    assert STATES.open(sealed(), SUBJECT, NOW) == STATE


def test_every_instance_of_a_deployment_opens_it() -> None:
    assert RequestStateCipher(SECRET).open(sealed(), SUBJECT, NOW) == STATE


def test_two_seals_of_one_state_differ_entirely() -> None:
    """A nonce that were used twice would give the key away (NIST SP 800-38D)."""
    seals = {decoded(sealed()) for _ in range(200)}
    assert len({seal[1:ENVELOPE] for seal in seals}) == 200
    assert len({seal[ENVELOPE:] for seal in seals}) == 200


def test_a_state_shows_nothing_of_what_it_holds() -> None:
    text = STATES.seal({"answers": {"word": "hunter2" * 9}}, SUBJECT, NOW)
    assert b"hunter2" not in decoded(text)
    assert b"answers" not in decoded(text)


@pytest.mark.parametrize("bit", [0, 7])
def test_a_state_with_one_bit_changed_anywhere_is_refused(bit: int) -> None:
    data = decoded(sealed())
    for position in range(len(data)):
        changed = bytearray(data)
        changed[position] ^= 1 << bit
        assert refusal(encoded(bytes(changed))) == ONE_REFUSAL, position


@pytest.mark.parametrize("version", [0, 2, 255])
def test_a_state_of_another_format_is_refused(version: int) -> None:
    assert refusal(encoded(bytes([version]) + decoded(sealed())[1:])) == ONE_REFUSAL


def test_a_state_that_is_cut_off_is_refused() -> None:
    data = decoded(sealed())
    for length in range(len(data)):
        assert refusal(encoded(data[:length])) == ONE_REFUSAL, length


def test_a_state_with_something_added_is_refused() -> None:
    data = decoded(sealed())
    for longer in (data + b"\x00", b"\x01" + data, data + data):
        assert refusal(encoded(longer)) == ONE_REFUSAL


def not_base64() -> Iterator[str]:
    text = sealed()
    yield from ("", "=", "a", "not base64!", "\u00e4" * 8, "\x00", "e30=", "{}", "\U0001f600")
    yield from (f" {text}", f"{text}\n", text[:-1], f"{text[:20]} {text[20:]}", f".{text}")


@pytest.mark.parametrize("text", list(not_base64()))
def test_what_is_no_state_at_all_is_refused(text: str) -> None:
    assert refusal(text) == ONE_REFUSAL


@pytest.mark.parametrize(
    "other",
    [
        ("mallory", *REQUEST[1:]),
        ("", *REQUEST[1:]),
        ("alice", "prompts/get", "count", {"upto": 3}),
        ("alice", "tools/call", "counts", {"upto": 3}),
        ("alice", "tools/call", "count", {"upto": 4}),
        ("alice", "tools/call", "count", {"upto": "3"}),
        ("alice", "tools/call", "count", {"upto": 3.5}),
        ("alice", "tools/call", "count", {"upto": True}),
        ("alice", "tools/call", "count", {"upto": 3, "ask": None}),
        ("alice", "tools/call", "count", {}),
        ("alice", "tools/call", "count", None),
        ("alice", "tools/callcount", "", {"upto": 3}),
        ('alice", "tools/call', "count", "", {"upto": 3}),
    ],
    ids=repr,
)
def test_a_state_of_another_request_is_refused(other: tuple[str, str, str, Any]) -> None:
    """Of another principal, or of another method, target or arguments."""
    assert refusal(sealed(), request_digest(*other)) == ONE_REFUSAL


def test_the_order_of_arguments_means_nothing() -> None:
    one, other = {"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"d": 3, "c": 2}, "a": 1}
    assert request_digest("alice", "m", "t", one) == request_digest("alice", "m", "t", other)


def test_a_state_expires() -> None:
    text = sealed()
    assert STATES.open(text, SUBJECT, NOW + LIFETIME_MS - 1) == STATE
    for later in (LIFETIME_MS, LIFETIME_MS + 1, 100 * LIFETIME_MS):
        assert refusal(text, now=NOW + later) == ONE_REFUSAL


@pytest.mark.parametrize("key", [SECRET[::-1], f"{SECRET} ", SECRET.upper()])
def test_a_state_of_another_deployment_is_refused(key: str) -> None:
    assert refusal(sealed(), states=RequestStateCipher(key)) == ONE_REFUSAL


def test_a_short_key_is_refused_when_the_server_starts() -> None:
    with pytest.raises(ValueError, match="shorter than 32"):
        RequestStateCipher(SECRET[:-1])


def test_a_state_that_would_not_fit_into_a_request_is_not_made() -> None:
    room = MAX_CHARACTERS * 3 // 4
    assert len(STATES.seal({"a": "x" * (room - 500)}, SUBJECT, NOW)) <= MAX_CHARACTERS
    with pytest.raises(ProtocolError, match="too large") as caught:
        STATES.seal({"a": "x" * room}, SUBJECT, NOW)
    assert caught.value.code == -32602


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
states = st.dictionaries(st.text(), json_values, max_size=4)
requests = st.tuples(st.text(), st.text(), st.text(), json_values)


@given(states, requests, st.integers(0, LIFETIME_MS - 1))
def test_any_state_comes_back_as_it_was(
    state: dict[str, Any], request: tuple[str, str, str, Any], later: int
) -> None:
    bound = request_digest(*request)
    assert STATES.open(STATES.seal(state, bound, NOW), bound, NOW + later) == state


@given(states, requests, requests)
def test_no_state_opens_for_another_request(
    state: dict[str, Any],
    request: tuple[str, str, str, Any],
    other: tuple[str, str, str, Any],
) -> None:
    same = json.dumps(request, sort_keys=True) == json.dumps(other, sort_keys=True)
    text = STATES.seal(state, request_digest(*request), NOW)
    if same:
        assert STATES.open(text, request_digest(*other), NOW) == state
    else:
        assert refusal(text, request_digest(*other)) == ONE_REFUSAL


@given(
    st.text() | st.binary().map(encoded) | st.binary(min_size=13).map(lambda b: encoded(b"\1" + b))
)
def test_nothing_made_up_is_taken_for_a_state(text: str) -> None:
    assert refusal(text) == ONE_REFUSAL
