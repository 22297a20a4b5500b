"""Which parts of a JSON value are offloaded when it does not fit."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcp_tasks.payloads.offloading import (
    MAX_DEPTH,
    MAX_OBJECT_BYTES,
    json_size,
    json_text,
    offload,
)
from mcp_tasks.payloads.offloading import MIN_OFFLOADED_BYTES as MIN
from mcp_tasks.payloads.pointer import PayloadPointer, pointer_of

KEY: Final = f"flow/c1-{'0' * 32}/{'f' * 32}"
POINTER_BYTES: Final = json_size(PayloadPointer(KEY, MAX_OBJECT_BYTES, MAX_OBJECT_BYTES).as_json())
MAX_BYTES: Final = 4 * MIN

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
long_texts = st.builds(
    lambda text, times: text * times,
    st.text(min_size=1, max_size=3),
    st.integers(1, MIN),
)
long_lists = st.builds(lambda item, times: [item] * times, scalars, st.integers(1, MIN // 4))
values = st.recursive(
    scalars | long_texts | long_lists,
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | long_texts, inner, max_size=5),
    max_leaves=12,
)


def put_back(value: Any, content: bytes) -> Any:
    """The value with what its pointers point to."""
    payload = pointer_of(value)
    if payload is not None:
        return json.loads(content[payload.offset : payload.offset + payload.size])
    if isinstance(value, dict):
        return {key: put_back(member, content) for key, member in value.items()}
    if isinstance(value, list):
        return [put_back(element, content) for element in value]
    return value


def moved(value: Any) -> list[PayloadPointer]:
    """All pointers in a value, in the order of its text."""
    payload = pointer_of(value)
    if payload is not None:
        return [payload]
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [found for member in inside for found in moved(member)]


@given(value=values, max_bytes=st.integers(POINTER_BYTES, 6 * MIN))
@example(value="😀" * MIN, max_bytes=MAX_BYTES)
@example(value={"x" * MIN: 1}, max_bytes=POINTER_BYTES)
def test_a_value_fits_and_nothing_of_it_is_lost(value: Any, max_bytes: int) -> None:
    before = json.dumps(value)
    rest, content = offload(value, max_bytes, KEY)
    assert json_size(rest) <= max_bytes
    assert put_back(rest, content) == value
    assert json.dumps(value) == before, "the value itself is left alone"
    assert bool(content) == (json_size(value) > max_bytes)
    assert all(payload.key == KEY for payload in moved(rest))


@given(value=values)
def test_what_is_stored_has_no_gaps_and_no_copies(value: Any) -> None:
    rest, content = offload(value, POINTER_BYTES, KEY)
    end = 0
    for payload in moved(rest):
        assert payload.offset == end
        end += payload.size
    assert end == len(content)


@given(value=values)
def test_a_value_is_measured_at_its_longest(value: Any) -> None:
    """Of what Lambda's runtime, the row and Step Functions make of it."""
    compact = {"separators": (",", ":")}
    for form in ({}, compact, {"ensure_ascii": False}, {"ensure_ascii": False, **compact}):
        assert json_size(value) >= len(json.dumps(value, **form).encode())


@given(value=values)
def test_the_same_value_is_taken_apart_in_the_same_way(value: Any) -> None:
    assert offload(value, POINTER_BYTES, KEY) == offload(
        json.loads(json.dumps(value)), POINTER_BYTES, KEY
    )


def test_what_fits_exactly_is_left_as_it_is() -> None:
    value = ["x" * MIN] * 9
    rest, content = offload(value, json_size(value), KEY)
    assert rest is value
    assert content == b""


@pytest.mark.parametrize(
    "max_bytes",
    [9 * (MIN + 4) - 1, 8 * (MIN + 4) + 2 + POINTER_BYTES],
)
def test_no_more_is_moved_than_has_to_be(max_bytes: int) -> None:
    rest, content = offload(["x" * MIN] * 9, max_bytes, KEY)
    assert len(moved(rest)) == 1
    assert content == json_text("x" * MIN).encode()


@pytest.mark.parametrize("max_bytes", range(POINTER_BYTES, 12 * POINTER_BYTES, 19))
def test_a_pointer_s_own_length_is_counted(max_bytes: int) -> None:
    rest, _ = offload(["x" * 100_000] * 10, max_bytes, KEY)
    assert json_size(rest) <= max_bytes


def test_a_list_of_large_elements_stays_a_list() -> None:
    """A Map state goes through its elements."""
    elements = [{"n": n, "text": str(n) * 100_000} for n in range(10)]
    rest, _ = offload({"items": elements}, MAX_BYTES, KEY)
    assert [set(element) for element in rest["items"]] == [{"n", "text"}] * 10
    assert [element["n"] for element in rest["items"]] == list(range(10))
    assert all(pointer_of(element["text"]) for element in rest["items"])


def test_elements_of_a_kilobyte_are_large() -> None:
    rest, _ = offload(["x" * MIN] * 200, 60_000, KEY)
    assert isinstance(rest, list)
    assert len(rest) == 200


def test_what_has_less_than_a_kilobyte_is_not_worth_a_pointer() -> None:
    rest, _ = offload({"a": "x" * 900, "b": "y" * 900}, 1500, KEY)
    assert pointer_of(rest)


def test_small_members_stay_beside_a_large_one() -> None:
    """A Choice state looks at them."""
    value = {"deep": {"kind": "b", "rows": list(range(10_000))}, "ok": True, "n": 7}
    rest, content = offload(value, MAX_BYTES, KEY)
    assert rest == {"deep": {"kind": "b", "rows": moved(rest)[0].as_json()}, "ok": True, "n": 7}
    assert json.loads(content) == value["deep"]["rows"]  # type: ignore[index]


def test_the_largest_goes_first() -> None:
    value = {
        "a": "a" * 2 * MIN,
        "b": "b" * 3 * MIN,
        "c": "c" * 2 * MIN,
    }
    rest, _ = offload(value, 5 * MIN, KEY)
    assert [name for name in value if pointer_of(rest[name])] == ["b"]


def test_of_two_that_are_as_large_the_first_goes() -> None:
    rest, _ = offload(["x" * 3 * MIN, "y" * 3 * MIN], MAX_BYTES, KEY)
    assert [pointer_of(element) is not None for element in rest] == [True, False]


def test_what_is_too_much_for_pointers_becomes_one() -> None:
    value = {"name": "n", "many": ["x" * MIN for _ in range(1000)]}
    rest, content = offload(value, MAX_BYTES, KEY)
    assert rest["name"] == "n"
    assert json.loads(content) == value["many"], "whole: no pointers are stored"
    assert pointer_of(rest["many"])


def test_of_two_lists_with_too_many_elements_the_longer_becomes_a_pointer() -> None:
    value = {"short": ["x" * MIN] * 5, "long": ["y" * MIN] * 20}
    rest, _ = offload(value, 7 * POINTER_BYTES, KEY)
    assert len(moved(rest["short"])) == 5
    assert pointer_of(rest["long"])
    assert len(moved(rest)) == 6


def test_an_object_whose_large_member_is_pointed_to_may_become_a_pointer_itself() -> None:
    """However small it is then: there is one read less, and a list of such objects stays one."""
    elements = [{"text": "x" * 5000, "label": "y" * 100} for _ in range(9)]
    rest, _ = offload(elements, 9 * (POINTER_BYTES + 50), KEY)
    assert isinstance(rest, list)
    assert any(map(pointer_of, rest))


def test_what_is_small_once_its_large_part_is_moved_keeps_nothing_else_from_being_moved() -> None:
    """`inner` is small then, and `outer` with its many numbers is next."""
    numbers = {f"numbers {n}": list(range(200)) for n in range(3)}
    value = {"outer": {"inner": {"text": "x" * 9 * MIN}, **numbers}, "n": 1}
    rest, content = offload(value, POINTER_BYTES + 50, KEY)
    assert rest == {"outer": moved(rest)[0].as_json(), "n": 1}
    assert json.loads(content) == value["outer"]


def test_many_small_members_become_one_pointer() -> None:
    value = {f"member {n}": n for n in range(10_000)}
    rest, content = offload(value, MAX_BYTES, KEY)
    assert pointer_of(rest)
    assert json.loads(content) == value


def test_a_pointer_is_given_even_where_there_is_no_room_for_one() -> None:
    rest, content = offload("x" * 100, 5, KEY)
    assert pointer_of(rest)
    assert json.loads(content) == "x" * 100


@pytest.mark.parametrize("levels", [MAX_DEPTH - 1, MAX_DEPTH, MAX_DEPTH + 1, 100, 200])
def test_a_deep_value_fits(levels: int) -> None:
    """As deep as a request's body may be (`Limits.max_json_depth`), and deeper."""
    value: Any = "x" * 100_000
    for n in range(levels):
        value = [n, value] if n % 2 else {"n": n, "value": value}
    rest, content = offload(value, 4 * MAX_BYTES, KEY)
    assert json_size(rest) <= 4 * MAX_BYTES
    assert put_back(rest, content) == value
    above = 0
    while not pointer_of(rest):
        rest = rest["value"] if isinstance(rest, dict) else rest[1]
        above += 1
    assert above == min(levels, MAX_DEPTH)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("max_bytes", [10, 10**6])
def test_numbers_that_json_does_not_have_are_refused(number: float, max_bytes: int) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        offload({"a": [number], "b": "x" * 5000}, max_bytes, KEY)


@pytest.mark.parametrize("half", ["\ud83d", "\ude00\ud83d", "x\udfffy"])
@pytest.mark.parametrize("max_bytes", [10, 10**6])
def test_half_of_a_surrogate_pair_is_refused(half: str, max_bytes: int) -> None:
    """Nothing that stores or sends it could."""
    with pytest.raises(UnicodeEncodeError):
        offload({"a": [half], "b": "x" * 5000}, max_bytes, KEY)


def test_what_is_no_json_value_is_refused() -> None:
    with pytest.raises(TypeError):
        offload({"a": {1, 2}}, 10**6, KEY)


def test_a_tuple_is_a_list() -> None:
    rest, _ = offload(("x" * 5000, 1), MAX_BYTES, KEY)
    assert pointer_of(rest[0])
    assert rest[1:] == [1]
    rest, _ = offload({"a": tuple(range(5000)), "n": 1}, MAX_BYTES, KEY)
    assert pointer_of(rest["a"])
