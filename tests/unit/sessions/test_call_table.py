"""Calls that wait for answers: each write, and what it is a condition of."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pytest

from mcp_tasks.sessions.call_table import (
    MAX_PARAMS_CHARACTERS,
    MAX_QUESTIONS_CHARACTERS,
    MAX_RESPONSE_CHARACTERS,
    RESPONSE_KEPT_MS,
    WAITS_MS,
    CallExists,
    CallTable,
    CallTooLarge,
    UnknownCall,
    WaitingCall,
)
from mcp_tasks.tasks.questions import FormQuestion, RootsQuestion, UrlQuestion
from tests.unit.support.aws import Calls, create_sessions

NOW: Final = 1_800_000_000_000
FORM: Final = FormQuestion("Who?", {"type": "object", "properties": {"name": {"type": "string"}}})
ANSWER: Final[dict[str, Any]] = {"action": "accept", "content": {"name": "Ada"}}
RESPONSE: Final[dict[str, Any]] = {"result": {"content": []}}
CALL: Final = WaitingCall("c1-1", "me", "print", "tools/call", {"name": "ask"}, {"who": FORM})
CLAIMED_MS: Final = 35_000


@pytest.fixture
def table(aws: Calls) -> CallTable:
    return CallTable(aws.client("dynamodb"), create_sessions())


def read(table: CallTable, now: int = NOW) -> WaitingCall:
    return table.read(CALL.id, "me", now)


def claim(table: CallTable, name: str, now: int = NOW) -> bool:
    return table.claim(read(table, now), name, now + CLAIMED_MS, now)


def test_a_call_is_read_as_it_was_kept(table: CallTable) -> None:
    call = replace(CALL, questions={"who": FORM, "page": UrlQuestion("Pay", "https://a.example")})
    table.open(call, NOW)
    assert read(table) == call
    assert table.answer(call, "who", ANSWER)
    assert read(table) == replace(call, answers={"who": ANSWER})
    assert set(read(table).outstanding) == {"page"}


def test_a_call_is_its_owners(table: CallTable) -> None:
    table.open(CALL, NOW)
    with pytest.raises(UnknownCall):
        table.read(CALL.id, "you", NOW)
    with pytest.raises(UnknownCall):
        table.read("c1-2", "me", NOW)


def test_a_call_expires(table: CallTable) -> None:
    table.open(CALL, NOW)
    assert read(table, NOW + WAITS_MS)
    with pytest.raises(UnknownCall):
        read(table, NOW + WAITS_MS + 1000)


def test_a_request_id_stands_for_one_call(table: CallTable) -> None:
    table.open(CALL, NOW)
    other = replace(CALL, questions={"roots": RootsQuestion()})
    with pytest.raises(CallExists):
        table.open(other, NOW)
    assert read(table) == CALL
    table.open(other, NOW + WAITS_MS + 1000)
    assert read(table, NOW + WAITS_MS + 1000) == other


def test_the_first_answer_counts(table: CallTable) -> None:
    table.open(CALL, NOW)
    assert table.answer(CALL, "who", ANSWER)
    assert not table.answer(CALL, "who", {"action": "decline"})
    assert read(table).answers == {"who": ANSWER}


def test_an_answer_to_a_call_that_has_ended_is_not_kept(table: CallTable) -> None:
    table.open(CALL, NOW)
    assert table.cancel(CALL.id, RESPONSE, NOW)
    assert not table.answer(CALL, "who", ANSWER)
    assert read(table).answers == {}


def test_an_answer_is_of_its_round(table: CallTable) -> None:
    """An answer that did not fit is asked for again, by the same key."""
    table.open(CALL, NOW)
    table.answer(CALL, "who", ANSWER)
    answered = read(table)
    assert claim(table, "a")
    assert table.ask_again(answered, "a", {"who": FORM}, NOW)
    assert not table.answer(CALL, "who", ANSWER)
    assert read(table).outstanding


def test_one_instance_runs_a_call(table: CallTable) -> None:
    table.open(CALL, NOW)
    assert claim(table, "a")
    assert not claim(table, "b")
    assert not claim(table, "b", NOW + CLAIMED_MS)
    assert claim(table, "b", NOW + CLAIMED_MS + 1)


def test_a_call_that_has_ended_is_not_claimed(table: CallTable) -> None:
    table.open(CALL, NOW)
    seen = read(table)
    assert claim(table, "a")
    assert table.finish(seen, "a", RESPONSE, NOW)
    assert not table.claim(seen, "b", NOW + CLAIMED_MS, NOW)


def test_a_call_that_has_asked_again_is_not_run_without_new_answers(table: CallTable) -> None:
    table.open(CALL, NOW)
    seen = read(table)
    assert claim(table, "a")
    assert table.ask_again(seen, "a", {"roots": RootsQuestion()}, NOW)
    assert not table.claim(seen, "b", NOW + CLAIMED_MS, NOW)
    again = read(table)
    assert (again.round, set(again.questions), again.claimed_until) == (2, {"roots"}, 0)


def test_who_has_lost_a_claim_neither_asks_nor_ends(table: CallTable) -> None:
    table.open(CALL, NOW)
    seen = read(table)
    assert claim(table, "a")
    later = NOW + CLAIMED_MS + 1
    assert claim(table, "b", later)
    assert not table.ask_again(seen, "a", {"roots": RootsQuestion()}, later)
    assert not table.finish(seen, "a", {"result": {"late": True}}, later)
    assert table.finish(seen, "b", RESPONSE, later)
    assert read(table, later).response == RESPONSE


def test_a_cancelled_call_keeps_its_first_response(table: CallTable) -> None:
    table.open(CALL, NOW)
    assert claim(table, "a")
    assert table.finish(CALL, "a", RESPONSE, NOW)
    assert not table.cancel(CALL.id, {"error": {}}, NOW)
    assert read(table).response == RESPONSE
    assert not table.cancel("c1-2", {"error": {}}, NOW)
    with pytest.raises(UnknownCall):
        table.read("c1-2", "me", NOW)


def test_of_a_call_that_has_ended_only_the_response_is_kept(table: CallTable) -> None:
    table.open(CALL, NOW)
    claim(table, "a")
    table.finish(CALL, "a", RESPONSE, NOW)
    ended = read(table)
    assert (ended.params, ended.questions, ended.answers) == ({}, {}, {})
    assert ended.response == RESPONSE
    with pytest.raises(UnknownCall):
        read(table, NOW + RESPONSE_KEPT_MS + 1000)


def test_what_is_kept_is_bounded(table: CallTable) -> None:
    large = replace(CALL, params={"text": "a" * MAX_PARAMS_CHARACTERS})
    many = replace(CALL, questions={"who": FormQuestion("a" * MAX_QUESTIONS_CHARACTERS, {})})
    for call in (large, many):
        with pytest.raises(CallTooLarge):
            table.open(call, NOW)
    table.open(CALL, NOW)
    claim(table, "a")
    with pytest.raises(CallTooLarge):
        table.ask_again(CALL, "a", many.questions, NOW)
    with pytest.raises(CallTooLarge):
        table.finish(CALL, "a", {"result": "a" * MAX_RESPONSE_CHARACTERS}, NOW)
