"""What MiniStack is asked, recorded for tests: which calls it authorizes, and which JSONata it
evaluates. `install` is for the emulator's process; `read` is for the tests.
"""

from __future__ import annotations

import copy
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

FOLDER_VARIABLE: Final = "MCP_TASKS_RECORD"
"""The environment variable with the folder that an emulator records into."""
CALLS: Final = "calls.jsonl"
EXPRESSIONS: Final = "expressions.jsonl"


class Record:
    """A file of JSON lines, each of them once."""

    def __init__(self, file: Path) -> None:
        file.write_text("", encoding="utf-8")
        self._file = file
        self._seen: set[str] = set()
        self._lock = threading.Lock()

    def add(self, entry: Mapping[str, Any]) -> None:
        """Write an entry that is new."""
        line = json.dumps(entry, sort_keys=True, default=str)
        with self._lock:
            if line not in self._seen:
                self._seen.add(line)
                with self._file.open("a", encoding="utf-8") as lines:
                    lines.write(f"{line}\n")


def install(folder: Path, iam_evaluator: Any, stepfunctions: Any) -> None:
    """Record what MiniStack's modules for permissions and for state machines do."""
    folder.mkdir(parents=True, exist_ok=True)
    iam_evaluator.evaluate = _recorded_call(Record(folder / CALLS), iam_evaluator.evaluate)
    stepfunctions._evaluate_jsonata = recorded_expression(
        Record(folder / EXPRESSIONS).add, stepfunctions._evaluate_jsonata
    )


def read(file: Path) -> Iterator[Any]:
    """The entries of a record that an emulator has written."""
    with file.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def _recorded_call(record: Record, evaluate: Callable[..., Any]) -> Callable[..., Any]:
    def recorded(request: Any, *policies: Any) -> Any:
        result = evaluate(request, *policies)
        record.add(
            {
                "principal": request.principal_arn,
                "action": request.action,
                "resource": request.resource_arn,
                "context": request.service_context,
                "decision": result.decision,
            }
        )
        return result

    return recorded


def recorded_expression(
    add: Callable[[Mapping[str, Any]], None], evaluate: Callable[..., Any]
) -> Callable[..., Any]:
    """MiniStack's `evaluate` for JSONata, which passes on what is evaluated: the expression, the
    bindings, and the value or the error."""

    def recorded(
        expression: str,
        state_input: Any,
        context: dict[str, Any],
        result: Any = None,
        error_output: Any = None,
    ) -> Any:
        shown = {name: value for name, value in context.items() if name != "variables"}
        states = {"input": state_input, "context": shown}
        states |= {"result": result} if result is not None else {}
        states |= {"errorOutput": error_output} if error_output is not None else {}
        bindings = copy.deepcopy({**context.get("variables", {}), "states": states})
        entry: dict[str, Any] = {"expression": expression, "bindings": bindings}
        try:
            entry["value"] = evaluate(expression, state_input, context, result, error_output)
        except Exception as error:
            entry["error"] = getattr(error, "error", type(error).__name__)
            raise
        finally:
            add(entry)
        return entry["value"]

    return recorded
