"""Inputs at the edges of what expressions may meet, and the values that they must have.

What the expressions are for is in `infra/function_task.asl.json` and `state_machine_definition.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from infra.state_machine_definition import TRACE_EXPRESSION

NO_RESULT: Final = object()
"""Of an expression without a result, with which its state fails."""
Edge = tuple[str, dict[str, Any], Any]
"""An expression, `$states` with the variables, and the value."""

TASK: Final = "$join($split($states.context.Execution.Name, '-', 2), '-')"
CRASH: Final = "$crashes = 0 ? null : $merge([$states.input, {'count': $crashes}])"
EARLIER: Final = (
    "$exists($states.context.Execution.Input.earlier_answers) "
    "? $states.context.Execution.Input.earlier_answers : {}"
)
ANSWERS: Final = (
    "$exists($states.result.earlier_answers) ? {} : $states.context.Execution.Input.answers"
)
UNDO: Final = "$exists($states.context.Execution.Input.undo)"
KILLED: Final = "$exists($states.input.killed) ? $states.input.killed : 0"
KILLED_LANES: Final = "$sum($states.result.killed)"
DONE: Final = "$exists($states.input.result) ? $states.input.result : $states.input"
EVENTS: Final = "$exists($states.result.events) ? $states.result.events : $events"
RETRIES: Final = "$exists($states.context.State.RetryCount) ? $states.context.State.RetryCount : 0"
MERGED: Final = "$merge([$answers, $states.result])"
TRACE: Final = TRACE_EXPRESSION.removeprefix("{%").removesuffix("%}").strip()
ONE_SUBTASK: Final = "$exists($states.input.call) and $states.input.call.count = 1"
CAUSE: Final = "$exists($states.input.Cause) ? $states.input.Cause : ''"
HEARD: Final = "$append($heard, [$states.result.heard.content.what])"
PARTS: Final = "[$states.input]"
TRACEPARENT: Final = {"traceparent": "00-4bf9-00f0-01"}


def _execution(**execution: Any) -> dict[str, Any]:
    return {"states": {"context": {"Execution": execution}}}


def _input(value: Any, **variables: Any) -> dict[str, Any]:
    return {**variables, "states": {"input": value}}


def _result(value: Any, **variables: Any) -> dict[str, Any]:
    return {**variables, "states": {"result": value}}


def edges() -> Iterator[Edge]:
    """All of them."""
    yield from _of_names_and_inputs()
    yield from _of_results()
    yield from _of_state_inputs()
    yield from _of_a_month()
    yield from _of_other_workflows()


def _of_names_and_inputs() -> Iterator[Edge]:
    for name, task in (
        ("c1-4f2b9c1e-2", "c1-4f2b9c1e"),
        ("c1-4f2b9c1e", "c1-4f2b9c1e"),
        ("eu-a-b-c", "eu-a"),
    ):
        yield TASK, _execution(Name=name), task
    yield EARLIER, _execution(Input={}), {}
    yield EARLIER, _execution(Input={"earlier_answers": {}}), {}
    yield EARLIER, _execution(Input={"earlier_answers": {"a": [1]}}), {"a": [1]}
    yield UNDO, _execution(Input={}), False
    yield UNDO, _execution(Input={"undo": None}), True
    yield UNDO, _execution(Input={"undo": False}), True
    for meta, trace in (
        ({}, {}),
        ({"answers": {"a": 1}}, {}),
        (TRACEPARENT, TRACEPARENT),
        ({**TRACEPARENT, "answers": {}}, TRACEPARENT),
        (
            {**TRACEPARENT, "tracestate": "a=1", "baggage": ""},
            {**TRACEPARENT, "tracestate": "a=1", "baggage": ""},
        ),
    ):
        yield TRACE, _execution(Input={"_meta": meta}), trace
    yield TRACE, _execution(Input={}), {}
    yield TRACE, _execution(Input=[]), {}
    yield TRACE, _execution(Input="text"), {}
    yield RETRIES, {"states": {"context": {"State": {"RetryCount": 0}}}}, 0
    yield RETRIES, {"states": {"context": {"State": {}}}}, 0


def _of_results() -> Iterator[Edge]:
    yield MERGED, _result({}, answers={}), {}
    yield MERGED, _result({"a": 2}, answers={"a": 1, "b": None}), {"a": 2, "b": None}
    yield MERGED, _result({"a": []}, answers={}), {"a": []}
    yield EVENTS, _result({"events": 0}, events=15), 0
    yield EVENTS, _result({}, events=15), 15
    yield EVENTS, _result([], events=15), 15
    yield KILLED_LANES, _result([{"killed": 0}]), 0
    yield KILLED_LANES, _result([{"killed": 1}, {"killed": 0}, {"killed": 1}]), 2
    # A map without lanes would fail: its tool does not suspend for it (durable/maps.py).
    yield KILLED_LANES, _result([]), NO_RESULT
    answers = {"context": {"Execution": {"Input": {"answers": {"a": 1}}}}}
    yield ANSWERS, {"states": {**answers, "result": {"earlier_answers": {}}}}, {}
    yield ANSWERS, {"states": {**answers, "result": {}}}, {"a": 1}
    yield ANSWERS, {"states": {**answers, "result": None}}, {"a": 1}


def _of_state_inputs() -> Iterator[Edge]:
    yield CRASH, _input({}, crashes=0), None
    yield (
        CRASH,
        _input({"error": "e", "cause": ""}, crashes=2),
        {"error": "e", "cause": "", "count": 2},
    )
    yield KILLED, _input({}), 0
    yield KILLED, _input({"killed": 3}), 3
    yield DONE, _input({"result": None}), None
    yield DONE, _input({"result": []}), []
    yield DONE, _input({"result": [[1]]}), [[1]]
    yield DONE, _input({"result": False}), False
    yield DONE, _input({"result": ""}), ""
    yield DONE, _input({}), {}
    yield ONE_SUBTASK, _input({"call": {"count": 1}}), True
    yield ONE_SUBTASK, _input({"call": {"count": 2}}), False
    yield ONE_SUBTASK, _input({}), False
    yield CAUSE, _input({"Error": "e"}), ""
    yield CAUSE, _input({"Error": "e", "Cause": "c"}), "c"
    for lanes in ([7], [0], [1, 2]):
        yield "$states.input.map.lanes", _input({"map": {"lanes": lanes}}), lanes
        yield "$states.input.numbers", _input({"numbers": lanes}), lanes
    yield "$states.input.ask", _input({"ask": {}}), {}
    yield "$states.input.ask", _input({}), NO_RESULT
    yield PARTS, _input([]), []
    yield PARTS, _input([{"rows": 1}]), [{"rows": 1}]
    yield PARTS, _input([[1], [2]]), [[1], [2]]
    yield "$states.input", _input([]), []
    yield "$states.input", _input([1]), [1]
    yield "$states.input", _input(None), None


def _of_a_month() -> Iterator[Edge]:
    """Of tests/campaigns/month, which runs on no emulator."""
    heard = {"heard": {"content": {"what": "b"}}}
    yield HEARD, _result(heard, heard=[]), ["b"]
    yield HEARD, _result(heard, heard=["a"]), ["a", "b"]
    yield "$states.input.over", _input({"over": True}), True
    yield "$over", _input({}, over=False), False
    yield "$heard", _input({}, heard=["a"]), ["a"]


def _of_other_workflows() -> Iterator[Edge]:
    """Of the samples, and of workflows that tests deploy."""
    yield "$states.result.profile", _result({"profile": {"rows": [1]}}), {"rows": [1]}
    yield "$profile", _input({}, profile={"rows": []}), {"rows": []}
    for seconds in (0, 1.5):
        yield "$states.input.seconds", _input({"seconds": seconds}), seconds
    yield "$states.context.Execution.Input.mark", _execution(Input={"mark": "m"}), "m"
    yield "$states.context.Execution.Input.size", _execution(Input={"size": 0}), 0
    yield "$states.input.wait", _input({"wait": 2}), 2
    yield "$states.result.started", _result({"started": "2026"}), "2026"
    yield "$started", _input({}, started="2026"), "2026"
    yield "$states.result", _result([[]]), [[]]
    yield "$states.input.kind = 'large'", _input({"kind": "large"}), True
    yield "$states.input.kind = 'large'", _input({}), False
    yield "$made", _input({}, made={"parts": [[1]]}), {"parts": [[1]]}
    yield "$made.parts", _input({}, made={"parts": [[1]]}), [[1]]
