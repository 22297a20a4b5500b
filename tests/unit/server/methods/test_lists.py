"""Pages of the lists (server/utilities/pagination.mdx)."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_tasks.protocol.errors import ProtocolError
from mcp_tasks.server.call import Call, Complete, Method
from mcp_tasks.server.methods.lists import LIST_FRESH_MS, PAGE_SIZE, list_method
from mcp_tasks.server.request_notifications import RequestNotifications
from mcp_tasks.server.response_channel import ResponseChannel

Item = dict[str, Any]


def items(names: Iterable[str]) -> dict[str, Item]:
    return {name: {"name": name} for name in names}


def answered(method: Method, **params: Any) -> Complete:
    channel = ResponseChannel(lambda _: None)
    outcome = method(
        Call("tools/list", params, "anonymous", RequestNotifications(channel.send), channel, 1)
    )
    assert isinstance(outcome, Complete)
    return outcome


def page(method: Method, cursor: Any = None) -> dict[str, Any]:
    return answered(method, **({} if cursor is None else {"cursor": cursor})).result


def names(page: dict[str, Any], member: str = "tools") -> list[str]:
    return [item["name"] for item in page[member]]


def walk(method: Method) -> Iterator[dict[str, Any]]:
    """Every page, as a client fetches them."""
    found = page(method)
    yield found
    while "nextCursor" in found:
        found = page(method, found["nextCursor"])
        yield found


NUMBERS: Final = [f"t{number:03}" for number in range(250)]


def test_pages_follow_one_another_in_the_order_of_names() -> None:
    pages = list(walk(list_method("tools", items(reversed(NUMBERS)))))
    assert [len(each["tools"]) for each in pages] == [PAGE_SIZE, PAGE_SIZE, 50]
    assert [name for each in pages for name in names(each)] == NUMBERS
    assert ["nextCursor" in each for each in pages] == [True, True, False]


@pytest.mark.parametrize("count", [0, 1, PAGE_SIZE])
def test_what_fits_into_one_page_has_no_cursor(count: int) -> None:
    found = page(list_method("tools", items(NUMBERS[:count])))
    assert found == {"tools": list(items(NUMBERS[:count]).values())}


def test_a_page_that_is_just_full_is_not_followed_by_an_empty_one() -> None:
    pages = list(walk(list_method("tools", items(NUMBERS[: 2 * PAGE_SIZE]))))
    assert [len(each["tools"]) for each in pages] == [PAGE_SIZE, PAGE_SIZE]


def test_every_page_may_be_cached_alike() -> None:
    """caching.mdx: the same cacheScope on all pages."""
    method = list_method("tools", items(NUMBERS))
    cursor = page(method)["nextCursor"]
    for outcome in (answered(method), answered(method, cursor=cursor)):
        assert (outcome.fresh_ms, outcome.cache_scope) == (LIST_FRESH_MS, "public")


def test_a_cursor_is_opaque_and_fits_into_a_url() -> None:
    cursor = page(list_method("tools", items(NUMBERS)))["nextCursor"]
    assert "t099" not in cursor
    assert not set(cursor) & set("+/:?#& ")


@given(
    st.sets(st.text(min_size=1, max_size=6), max_size=40),
    st.sets(st.text(min_size=1, max_size=6), max_size=10),
    st.data(),
    st.integers(1, 7),
)
def test_what_stays_is_listed_once_though_others_come_and_go(
    staying: set[str], coming: set[str], data: st.DataObject, size: int
) -> None:
    """A deployment between two pages."""
    going = data.draw(st.sets(st.sampled_from(sorted(staying)))) if staying else set()
    before = list_method("tools", items(staying), size)
    after = list_method("tools", items((staying | coming) - going), size)
    first = page(before)
    seen = names(first)
    while "nextCursor" in first:
        first = page(after, first["nextCursor"])
        seen += names(first)
    assert seen == sorted(set(seen))
    assert set(seen) >= staying - going
    assert set(seen) <= staying | coming


def test_a_cursor_stays_right_when_its_item_is_gone() -> None:
    cursor = page(list_method("tools", items("abcd"), 2))["nextCursor"]
    assert names(page(list_method("tools", items("acd"), 2), cursor)) == ["c", "d"]
    assert names(page(list_method("tools", items("a"), 2), cursor)) == []


def test_names_with_colons_have_cursors_too() -> None:
    uris = ["docs://a:b", "docs://c", "docs://c:d"]
    pages = list(walk(list_method("resources", items(uris), 1)))
    assert [names(each, "resources") for each in pages] == [[uri] for uri in uris]


def encoded(text: bytes) -> str:
    return base64.urlsafe_b64encode(text).decode()


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        " ",
        "t099",
        "next",
        "äöü",
        "=",
        encoded(b""),
        encoded(b"tools"),
        encoded(b"tools:"),
        encoded(b":t099"),
        encoded(b"t099"),
        encoded(b"Tools:t099"),
        encoded(b"tools:\xff"),
        encoded(b"tools:t099") + "\n",
        encoded(b"tools:t09").rstrip("=") + "!",
        0,
        1,
        1.5,
        True,
        False,
        [],
        ["a"],
        {},
        {"cursor": "a"},
    ],
)
def test_an_invalid_cursor_is_refused(cursor: Any) -> None:
    """pagination.mdx, "Error Handling": -32602."""
    with pytest.raises(ProtocolError) as caught:
        page(list_method("tools", items(NUMBERS)), cursor)
    assert caught.value.code == -32602


def refused(method: Method, cursor: Any) -> bool:
    """Whether a cursor is refused; anything else that is raised is a crash."""
    try:
        page(method, cursor)
    except ProtocolError as error:
        return error.code == -32602
    return False


@given(st.text().filter(bool) | st.binary().map(lambda data: encoded(data)))
def test_no_cursor_that_somebody_made_up_is_taken(cursor: str) -> None:
    assert refused(list_method("tools", items(NUMBERS)), cursor)


@pytest.mark.parametrize(
    ("member", "other"), [("tools", "prompts"), ("resources", "resourceTemplates")]
)
def test_a_cursor_of_another_list_is_refused(member: str, other: str) -> None:
    cursor = page(list_method(member, items(NUMBERS)))["nextCursor"]
    with pytest.raises(ProtocolError) as caught:
        page(list_method(other, items(NUMBERS)), cursor)
    assert caught.value.code == -32602


class Counted(Mapping[str, Item]):
    """Items that note how often they are read."""

    def __init__(self, found: dict[str, Item]) -> None:
        self._found = found
        self.reads = 0

    def __getitem__(self, name: str) -> Item:
        self.reads += 1
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        self.reads += 1
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


def test_pages_are_built_once() -> None:
    counted = Counted(items(NUMBERS))
    method = list_method("tools", counted)
    assert counted.reads == len(NUMBERS) + 1  # each item, and the names to sort
    for _ in range(10):
        assert len(list(walk(method))) == 3
    assert counted.reads == len(NUMBERS) + 1
