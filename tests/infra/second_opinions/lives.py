"""The lives of all tasks that the interpreters execute.

AWS's documentation decides what must come of each: the developer guide's "Handling errors in Step
Functions workflows", "Map workflow state", "Wait for a Callback with Task Token".
"""

from __future__ import annotations

from typing import Final

from tests.infra.second_opinions.function_lives import FUNCTION_LIVES
from tests.infra.second_opinions.life import (
    ANSWER,
    ARGUMENTS,
    WITHOUT_CONTEXT,
    WORKFLOW,
    Life,
    raises,
)

OTHER_LIVES: Final[dict[str, Life]] = {
    "runs once": Life(
        state_machine=WITHOUT_CONTEXT,
        script={"worker": [{"returns": {"result": [1, 2]}}]},
        calls=[("worker", {"task": "c1-4f2b9c1e", "input": ARGUMENTS, "trace": {}})],
        output=[1, 2],
    ),
    "runs once, and fails when it is killed": Life(
        state_machine=WITHOUT_CONTEXT,
        script={"worker": raises("Runtime.ExitError")},
        calls=[("worker", {"task": "c1-4f2b9c1e", "input": ARGUMENTS, "trace": {}})],
        failed=("Runtime.ExitError", "it broke"),
    ),
    "goes through the steps of a workflow": Life(
        state_machine=WORKFLOW,
        script={
            "worker": [
                {"when": {"step": "split"}, "returns": ["a", "b"]},
                {"when": {"input": {"chunk": "a"}}, "returns": {"rows": 1}},
                *raises("Lambda.ServiceException", when={"input": {"chunk": "b"}}),
                {"when": {"input": {"chunk": "b"}}, "returns": {"rows": 2}},
                {"when": {"step": "merge"}, "returns": {"requests": {}, "tally": {"rows": 3}}},
                {"when": {"step": "publish"}, "returns": "published"},
            ],
            "ask": [{"token": ANSWER}],
        },
        input={"csv": "a,b", "_meta": {"traceparent": "00-1-2-01", "answers": {}}},
        calls=[
            ("worker", {"step": "split", "trace": {"traceparent": "00-1-2-01"}}),
            ("worker", {"step": "tally", "input": {"chunk": "a"}}),
            *[("worker", {"step": "tally", "input": {"chunk": "b"}})] * 2,
            ("worker", {"step": "merge", "input": {"parts": [{"rows": 1}, {"rows": 2}]}}),
            ("ask", {"requests": {}}),
            ("worker", {"step": "publish", "input": {"tally": {"rows": 3}, "answers": ANSWER}}),
        ],
        output="published",
    ),
    "has one chunk": Life(
        state_machine=WORKFLOW,
        script={
            "worker": [
                {"when": {"step": "split"}, "returns": ["a"]},
                {"when": {"step": "tally"}, "returns": {"rows": 1}},
                {"when": {"step": "merge"}, "returns": {"requests": {}, "tally": {"rows": 1}}},
                {"when": {"step": "publish"}, "returns": "published"},
            ],
            "ask": [{"token": ANSWER}],
        },
        input={"csv": "a"},
        calls=[
            ("worker", {"step": "split", "trace": {}}),
            ("worker", {"step": "tally", "input": {"chunk": "a"}}),
            ("worker", {"step": "merge", "input": {"parts": [{"rows": 1}]}}),
            ("ask", {"requests": {}}),
            ("worker", {"step": "publish"}),
        ],
        output="published",
    ),
}
"""Of tools that take no context, and of workflows."""
LIVES: Final = FUNCTION_LIVES | OTHER_LIVES
