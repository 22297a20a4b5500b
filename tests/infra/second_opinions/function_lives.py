"""The lives of function tools' tasks."""

from __future__ import annotations

from typing import Any, Final

from mcp_tasks.workflows.retry import TRANSIENT_ERROR
from tests.infra.second_opinions.life import (
    ANSWER,
    ARGUMENTS,
    FUNCTION_TOOL,
    INPUT,
    Call,
    Life,
    Step,
    raises,
)

LONG_AGO: Final = "2020-01-01T00:00:00Z"
STORED: Final = {"$payload": "s3://payloads/answers", "bytes": 200_000}
RUN: Final[Call] = ("worker", {"input": ARGUMENTS, "calls": True, "undo": False})
RESULT: Final[Step] = {"returns": {"result": {"euros": 12}}}
EUROS: Final = {"euros": 12}


def _again(**payload: Any) -> Call:
    return "worker", {"input": ARGUMENTS, "calls": True, "killed_lanes": 0, **payload}


def _lane(number: int, **payload: Any) -> Call:
    return "worker", {"lane": {"id": "000002", "number": number}, **payload}


def _map(*numbers: int) -> Step:
    lanes = {"id": "000002", "lanes": list(numbers)}
    return {"returns": {"map": lanes, "events": 30, "journal": True}}


def _lane_step(number: int, **step: Any) -> Step:
    return {"when": {"lane": {"id": "000002", "number": number}}, **step}


def _subtask(number: int | None = None) -> Call:
    operation = {"task": "c1-4f2b9c1e", "operation": "000003", "token": "the task's token"}
    return "subtasks", operation | ({} if number is None else {"number": number})


FUNCTION_LIVES: Final[dict[str, Life]] = {
    "ends at once": Life(
        state_machine=FUNCTION_TOOL,
        script={"worker": [RESULT]},
        calls=[RUN],
        output=EUROS,
    ),
    "ends with null": Life(
        state_machine=FUNCTION_TOOL,
        script={"worker": [{"returns": {"result": None}}]},
        calls=[RUN],
        output=None,
    ),
    "asks, and goes on with the answer": Life(
        state_machine=FUNCTION_TOOL,
        script={
            "worker": [{"returns": {"ask": {"sure": {"method": "elicitation/create"}}}}, RESULT],
            "ask": [{"token": ANSWER}],
        },
        calls=[
            RUN,
            (
                "ask",
                {"task": "c1-4f2b9c1e", "requests": {"sure": {"method": "elicitation/create"}}},
            ),
            _again(answers=ANSWER, earlier_answers={}, crash=None, events=0, journal=False),
        ],
        output=EUROS,
    ),
    "stores many answers, and asks again": Life(
        state_machine=FUNCTION_TOOL,
        script={
            "worker": [
                {"returns": {"ask": {"sure": {}}, "earlier_answers": STORED}},
                {"returns": {"ask": {"name": {}}}},
                RESULT,
            ],
            "ask": [{"token": ANSWER}, {"token": {"name": {"action": "decline"}}}],
        },
        input={**INPUT, "answers": {"first": {"action": "cancel"}}},
        calls=[
            ("worker", {"answers": {"first": {"action": "cancel"}}, "earlier_answers": {}}),
            ("ask", {"requests": {"sure": {}}}),
            _again(answers=ANSWER, earlier_answers=STORED),
            ("ask", {"requests": {"name": {}}}),
            _again(answers={**ANSWER, "name": {"action": "decline"}}, earlier_answers=STORED),
        ],
        output=EUROS,
    ),
    "waits": Life(
        state_machine=FUNCTION_TOOL,
        script={
            "worker": [
                {"returns": {"wait": {"until": LONG_AGO}, "events": 15, "journal": True}},
                RESULT,
            ]
        },
        calls=[RUN, _again(events=15, journal=True, answers={})],
        output=EUROS,
    ),
    "maps, where one lane is killed and one finds no instance": Life(
        state_machine=FUNCTION_TOOL,
        script={
            "worker": [
                _lane_step(0, returns=None),
                *(raises("Runtime.ExitError", **_lane_step(1))),
                *(raises("Lambda.TooManyRequestsException", 41, **_lane_step(2))),
                _map(0, 1, 2),
                RESULT,
            ]
        },
        calls=[
            RUN,
            _lane(0, answers={}, earlier_answers={}),
            _lane(1),
            *[_lane(2)] * 41,
            _again(killed_lanes=1, events=30, journal=True),
        ],
        output=EUROS,
    ),
    "calls a tool": Life(
        state_machine=FUNCTION_TOOL,
        script={
            "worker": [{"returns": {"call": {"operation": "000003", "count": 1}}}, RESULT],
            "subtasks": [{"token": {}}],
        },
        calls=[RUN, _subtask(), _again()],
        output=EUROS,
    ),
    "has subtasks, of which one is started by the next run": Life(
        state_machine=FUNCTION_TOOL,
        script={
            "worker": [{"returns": {"call": {"operation": "000003", "count": 3}}}, RESULT],
            "subtasks": [
                {"when": {"number": 0}, "token": {}},
                *raises("Lambda.TooManyRequestsException", 9, when={"number": 1}),
                {"when": {"number": 2}, "token": {}},
                {"returns": {"numbers": [0, 1, 2], "concurrency": 2}},
            ],
        },
        calls=[
            RUN,
            ("subtasks", {"task": "c1-4f2b9c1e", "operation": "000003"}),
            _subtask(0),
            *[_subtask(1)] * 9,
            _subtask(2),
            _again(),
        ],
        output=EUROS,
    ),
    "is killed three times, and then ends": Life(
        state_machine=FUNCTION_TOOL,
        script={
            "worker": [
                *raises("Lambda.Unknown"),
                *raises("Sandbox.Timedout"),
                *raises("Runtime.OutOfMemory"),
                RESULT,
            ]
        },
        calls=[
            RUN,
            _again(crash={"error": "Lambda.Unknown", "cause": "it broke", "count": 1}),
            _again(crash={"error": "Sandbox.Timedout", "cause": "it broke", "count": 2}),
            _again(crash={"error": "Runtime.OutOfMemory", "cause": "it broke", "count": 3}),
        ],
        output=EUROS,
    ),
    "is retried after errors of Lambda and of AWS": Life(
        state_machine=FUNCTION_TOOL,
        script={
            "worker": [
                *raises("Lambda.TooManyRequestsException", 3),
                *raises("Lambda.ServiceException", 2),
                {"returns": {"wait": {"until": LONG_AGO}}},
                *raises(TRANSIENT_ERROR),
                RESULT,
            ]
        },
        calls=[
            *[("worker", {"retries": retries}) for retries in range(6)],
            _again(retries=0),
            _again(retries=1),
        ],
        output=EUROS,
    ),
    "fails as its tool says": Life(
        state_machine=FUNCTION_TOOL,
        script={"worker": [{"returns": {"fail": {"error": "ValueError", "cause": "no months"}}}]},
        calls=[RUN],
        failed=("ValueError", "no months"),
    ),
    "fails by an exception": Life(
        state_machine=FUNCTION_TOOL,
        script={"worker": raises("KeyError")},
        calls=[RUN],
        failed=("KeyError", "it broke"),
    ),
    "undoes what it did": Life(
        state_machine=FUNCTION_TOOL,
        script={"worker": [{"returns": {"wait": {"until": LONG_AGO}}}, {"returns": {}}]},
        input={**INPUT, "undo": True},
        calls=[("worker", {"undo": True, "calls": True}), ("worker", {"undo": True})],
        output={},
    ),
}
