"""Sealed texts and derived ids."""

from __future__ import annotations

from typing import Final

import pytest

from mcp_tasks.server.sealed import DerivedIds, Seal, Unsealable
from mcp_tasks.tasks.ids import cell_of

SECRET: Final = "a secret of at least thirty-two characters"
NOW: Final = 1_800_000_000_000
VALUE: Final = {"key": "value", "n": 1}


def seal(purpose: str = "sessionId", cell: str = "c1", secret: str = SECRET) -> Seal:
    return Seal(lambda: secret, purpose, cell)


def test_what_was_sealed_is_opened() -> None:
    text = seal().seal(VALUE, "alice", NOW + 1)
    assert text.startswith("c1-")
    assert seal().open(text, "alice", NOW) == (VALUE, NOW + 1)


def test_two_texts_are_never_the_same() -> None:
    assert seal().seal(VALUE, "alice", NOW) != seal().seal(VALUE, "alice", NOW)


def test_nothing_of_the_value_can_be_read() -> None:
    assert "value" not in seal().seal(VALUE, "alice", NOW)


@pytest.mark.parametrize(
    ("other", "owner", "now"),
    [
        (seal("eventId"), "alice", NOW),
        (seal(cell="c2"), "alice", NOW),
        (seal(secret="b" * 32), "alice", NOW),
        (seal(), "mallory", NOW),
        (seal(), "", NOW),
        (seal(), "alice", NOW + 1),
    ],
    ids=["purpose", "cell", "secret", "owner", "nobody", "expired"],
)
def test_a_text_opens_for_its_purpose_and_owner_until_it_expires(
    other: Seal, owner: str, now: int
) -> None:
    text = seal().seal(VALUE, "alice", NOW + 1)
    with pytest.raises(Unsealable):
        other.open(text, owner, now)


def test_a_changed_text_does_not_open() -> None:
    text = seal().seal(VALUE, "alice", NOW + 1)
    for at in range(len(text)):
        for instead in ("A", "B", "", "=", "ä"):
            changed = text[:at] + instead + text[at + 1 :]
            if changed == text:
                continue
            try:
                assert seal().open(changed, "alice", NOW) == (VALUE, NOW + 1)
            except Unsealable:
                continue
            # Base64 has bits that mean nothing in the last character.
            assert at == len(text) - 1


@pytest.mark.parametrize("text", ["", "c1", "c1-", "c1-A", "c1-AAAAAAAAAAAAAAAAAAAA", "x" * 10_000])
def test_what_was_never_sealed_does_not_open(text: str) -> None:
    with pytest.raises(Unsealable):
        seal().open(text, "alice", NOW)


def test_what_no_header_could_carry_is_not_sealed() -> None:
    with pytest.raises(ValueError, match="too long"):
        seal().seal({"x": "a" * 6000}, "alice", NOW)


def test_a_short_secret_is_refused() -> None:
    with pytest.raises(ValueError, match="32 characters"):
        seal(secret="short").seal(VALUE, "alice", NOW)


def test_a_derived_id_is_a_task_id_and_always_the_same() -> None:
    ids = DerivedIds(lambda: SECRET, "c1")
    one = ids.derive("request", "session", "1")
    assert cell_of(one) == "c1"
    assert one == DerivedIds(lambda: SECRET, "c1").derive("request", "session", "1")
    others = {
        ids.derive("request", "session", '"1"'),
        ids.derive("request", "session1", ""),
        ids.derive("request", "sessio", "n1"),
        DerivedIds(lambda: "b" * 32, "c1").derive("request", "session", "1"),
    }
    assert len({one, *others}) == 5
