"""The campaign's judge finds what it is there to find: each thing that is promised, broken once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pytest

from mcp_tasks.durable.identity import unique_id
from mcp_tasks.durable.journal import HEAD, OUTCOME
from mcp_tasks.durable.record import Kind, Operation, Record, State
from tests.campaigns.chaos.calls import Call
from tests.campaigns.chaos.clients import Life
from tests.campaigns.chaos.durable_verdict import DurableVerdict, Told, judge_durable
from tests.campaigns.chaos.evidence import DurablyNoted

ID: Final = "c1-0"
FIRST, SECOND = "000001", "000002"


def token(place: str) -> str:
    return str(unique_id(ID, place))


def noted(what: str, place: str, value: Any, began: float = 1.0, at: float = 1.0) -> DurablyNoted:
    return DurablyNoted(ID, 1, what, "a", value, token(place), began, at)


def step(place: str, value: str, state: State = State.DONE) -> Record:
    return Record(place, Operation(Kind.STEP, "do", "a"), state, value=value, undo="undo")


def undo(place: str, state: State = State.DONE) -> Record:
    return Record(f"undo#{place}", Operation(Kind.UNDO, "undo"), state)


HEADED: Final = Record(HEAD, Operation(Kind.RUN, "endure"), State.STARTED)


def told(
    status: str, *records: Record, lines: list[DurablyNoted], message: str = "", **more: Any
) -> Told:
    row = {"status": {"S": status}, "statusMessage": {"S": message}}
    kept = {record.id: record for record in (HEADED, *records)}
    return Told(ID, row, None, kept, dict.fromkeys(kept, 5.0), lines, **more)


def judged(task: Told) -> DurableVerdict:
    return judge_durable([task])


DONE: Final = told("completed", step(FIRST, "x"), lines=[noted("did", FIRST, "x")])
CANCELLED: Final = told(
    "cancelled",
    step(FIRST, "x"),
    step(SECOND, "y"),
    undo(SECOND),
    undo(FIRST),
    lines=[
        noted("did", FIRST, "x"),
        noted("did", SECOND, "y"),
        noted("undid", f"undo#{SECOND}", "y"),
        noted("undid", f"undo#{FIRST}", "x"),
    ],
)


def test_nothing_is_wrong_with_what_is_right() -> None:
    for task in (DONE, CANCELLED):
        verdict = judged(task)
        assert (verdict.lost, verdict.twice) == ({}, {})
    assert judged(CANCELLED).undone == 2


def test_a_step_that_was_killed_before_its_record_was_written_may_be_repeated() -> None:
    again = replace(DONE, noted=[noted("did", FIRST, "w", began=0.5), *DONE.noted])
    verdict = judged(again)
    assert (verdict.lost, verdict.twice, verdict.repeated) == ({}, {}, 1)


def test_a_finished_step_may_not() -> None:
    again = replace(DONE, noted=[*DONE.noted, noted("did", FIRST, "z", began=5.5)])
    assert "in a run that began 0.50 s after it had ended" in judged(again).twice[ID][0]


def test_a_run_may_not_do_a_step_twice() -> None:
    again = replace(DONE, noted=[*DONE.noted, noted("did", FIRST, "x")])
    assert "twice in one run" in judged(again).twice[ID][0]


def test_a_step_that_is_done_has_had_its_effect() -> None:
    assert "has no effect" in judged(replace(DONE, noted=[])).lost[ID][0]


def test_what_a_completed_task_did_is_not_undone() -> None:
    undone = replace(DONE, noted=[*DONE.noted, noted("undid", f"undo#{FIRST}", "x")])
    assert judged(undone).lost[ID] == ["is completed, and 1 were undone"]


def test_what_a_task_did_that_failed_by_itself_is_undone() -> None:
    failed = Record(OUTCOME, Operation(Kind.RUN, "endure"), State.FAILED)
    task = replace(DONE, records={**DONE.records, OUTCOME: failed})
    assert "is not undone, and nobody says so" in judged(task).lost[ID][0]


def test_what_is_undone_is_undone_last_first() -> None:
    did, undid = list(CANCELLED.noted[:2]), list(CANCELLED.noted[2:])
    assert "in the order" in judged(replace(CANCELLED, noted=[*did, *undid[::-1]])).lost[ID][0]


@pytest.mark.parametrize(
    ("state", "message", "given_up", "named"),
    [
        (State.STARTED, "Not undone: do", False, True),
        (State.STARTED, "", False, False),
        (State.DONE, "Not undone: do", False, False),  # its result is known: it can be undone
        (State.DONE, "Not undone: some steps", True, True),
        (State.DONE, "Not undone: some steps", False, False),
    ],
)
def test_what_is_not_undone_is_named(
    state: State, message: str, given_up: bool, named: bool
) -> None:
    did = [noted("did", FIRST, "x")]
    task = told("cancelled", step(FIRST, "x", state), lines=did, message=message)
    verdict = judged(replace(task, given_up=given_up))
    assert (verdict.not_undone, bool(verdict.lost)) == (int(named), not named)


def test_an_undo_gets_what_its_step_returned() -> None:
    wrong = [*CANCELLED.noted[:3], noted("undid", f"undo#{FIRST}", "other")]
    assert "is not what 000001 did" in judged(replace(CANCELLED, noted=wrong)).lost[ID][0]


def test_a_sleep_is_not_too_short() -> None:
    lines = [replace(noted("sleeps", "", 2.0), token=""), replace(noted("woke", "", None), at=2.9)]
    assert judged(replace(DONE, noted=[*DONE.noted, *lines])).lost[ID] == [
        "slept 1.90 s, and not 2.0"
    ]


def test_a_task_fails_with_what_it_is_told_to_fail_with() -> None:
    life = Life(Call(1, "waits", {"mark": 1}), task_ids={ID})
    life.last = {"status": "failed", "error": {"message": "The tool failed: InternalServerError"}}
    task = replace(told("failed", lines=[]), life=life)
    assert judged(task).lost[ID] == ["failed, and was not to: The tool failed: InternalServerError"]
    assert judged(replace(task, records={})).failures.total() == 1


def test_a_map_returns_its_results_in_order() -> None:
    operation = Operation(Kind.MAP, "item", "items")
    kept = [{"value": "v0"}, {"value": "v1"}]
    record = Record(SECOND, operation, State.DONE, value=kept)
    lines = [
        replace(noted("did", f"{SECOND}#00#00000{number}", f"v{number}"), key=str(number))
        for number in range(2)
    ]
    items = [
        Record(f"00#00000{number}", Operation(Kind.ITEM, "item"), State.DONE, value=f"v{number}")
        for number in range(2)
    ]
    records = {SECOND: record} | {f"{SECOND}#{item.id}": item for item in items}
    for found, right in ((["v0", "v1"], True), (["v1", "v0"], False)):
        life = Life(Call(1, "maps", {"mark": 1}), task_ids={ID})
        result = {"structuredContent": {"steps": {}, "answers": {}, "items": found}}
        life.last = {"status": "completed", "result": result}
        task = Told(ID, {"status": {"S": "completed"}}, life, records, {}, lines)
        assert bool(judged(task).lost) is not right
