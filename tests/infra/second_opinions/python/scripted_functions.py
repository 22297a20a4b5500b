"""The functions that a state machine calls, played by a script, and what is seen of its execution.

Standard library only: the programs of several environments import it.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from typing import Any

TOKEN = "the task's token"
"""In the place of a token, which is random."""


class FunctionError(Exception):
    """A function failed: the error's name, and its cause."""


class ScriptedFunctions:
    """Answers the calls of one execution.

    A script has a list of steps for each function. A call takes the first step that is left and
    whose `when` is part of the call's payload. The step `returns` a value, `raises` an error, or
    answers the `token` of the payload with a value. A call that the script does not foresee fails.
    """

    def __init__(self, script: Mapping[str, list[dict[str, Any]]]) -> None:
        self._left = {function: list(steps) for function, steps in script.items()}
        self._lock = threading.Lock()
        self.answer: Callable[[str, str], None] = lambda token, output: None
        """Sends a token's output, as JSON, to Step Functions."""
        self.calls: list[dict[str, Any]] = []
        """What was called, in this order, with which payload."""

    def call(self, function_arn: str, payload: Any) -> Any:
        """A function's result. Raises FunctionError when it fails."""
        function = function_arn.rpartition(":")[2].rpartition("_")[2].lower()
        with self._lock:
            token = payload.get("token")
            shown = payload | ({"token": TOKEN} if token else {})
            self.calls.append({"function": function, "payload": shown})
            step = self._next(function, payload)
        if "raises" in step:
            raise FunctionError(*step["raises"])
        if "token" in step:
            self.answer(token, json.dumps(step["token"]))
        return step.get("returns")

    def _next(self, function: str, payload: dict[str, Any]) -> dict[str, Any]:
        steps = self._left.get(function, [])
        for step in steps:
            if step.get("when", {}).items() <= payload.items():
                steps.remove(step)
                return step
        return {"raises": ["Unforeseen", json.dumps({"function": function, "payload": payload})]}

    def seen(self, outcome: Mapping[str, Any]) -> dict[str, Any]:
        """What an execution came to, and by which calls."""
        left = [step for steps in self._left.values() for step in steps]
        return {**outcome, "calls": self.calls, "left": left}
