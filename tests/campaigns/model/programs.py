"""Tools that do what their arguments say: a program is a list of operations.

    {"do": "step", ...}      a step; `undo`: whether something undoes it
    {"do": "map", ...}       `items`, of which `lanes` run at once; `tolerate`: how many may fail
    {"do": "sleep", ...}     for so many `seconds`
    {"do": "wait_for", ...}  until it was looked at for so many `times`
    {"do": "ask"}            a question
    {"do": "on_cancel"}      something that is to be done if the task fails or is cancelled
    {"do": "now"}            what needs a record; also "uuid", which needs none, and "version"
    {"do": "call", ...}      the `tool`, once for each of the arguments in `calls`: a subtask each,
                             of which `lanes` run at once; `alone`: by `task.call`
    {"do": "end", ...}       `how`: it returns, it refuses (ToolError), or it crashes

A step and an item may have `takes`, the seconds that it runs; `fails`, how often it raises before
it succeeds; `attempts`, how often it is tried; and `undo_fails`, the same of its undo.

Each operation has a place: its number among those that the journal counts, or a name. All that a
program does it tells the world of the history, which says what must hold of it (`durable.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final, Protocol

from pydantic import BaseModel

from mcp_tasks import Retry, TaskContext, ToolError, tool
from mcp_tasks.registry.decorated_function import DECLARATION
from mcp_tasks.registry.durable_errors import StepFailed, SubtaskFailed, WaitTimedOut
from mcp_tasks.registry.function_tool import FunctionTool
from tests.campaigns.model.history import current

TIMEOUT: Final = timedelta(minutes=1)
"""Of one run of a tool."""
RETRY_SECONDS: Final = 30
EVERY_SECONDS: Final = 60
UNCOUNTED: Final = ("ask", "uuid", "version", "end")
"""The operations without a number in the journal."""


class Number(BaseModel):
    """What is asked for."""

    n: int


class Boom(Exception):
    """A tool crashes."""


class Trouble(Exception):
    """A step, or what undoes one, cannot be done this time."""


class Watch(Protocol):
    """Who is told what a program does."""

    def done(self, task_id: str, place: str, token: str, spec: dict[str, Any]) -> int:
        """A step, or an item of a map. Returns what is never returned twice; raises Trouble."""

    def undone(self, task_id: str, place: str, spec: dict[str, Any], *given: Any) -> None:
        """What undoes a step was called. Raises Trouble."""

    def looked(self, task_id: str, place: str, times: int) -> int:
        """A check was made; returns 0 before it was made so many times."""

    def saw(self, task_id: str, place: str, spec: dict[str, Any], value: Any) -> None:
        """What the tool got from an operation."""


def _watch() -> Watch:
    world: Any = current()
    watch: Watch = world
    return watch


def operate(task: TaskContext, program: list[dict[str, Any]]) -> list[Any]:
    """The body of a tool."""
    watch, task_id = _watch(), str(task.task_id)
    seen: list[Any] = []
    count = 0
    for n, spec in enumerate(program):
        count += spec["do"] not in UNCOUNTED
        place = f"{spec['do']} {n}" if spec["do"] in UNCOUNTED else f"{count}"
        try:
            value = OPERATIONS[spec["do"]](task, place, spec)
        except (StepFailed, WaitTimedOut) as failed:
            value = f"{type(failed).__name__}: {failed}"
            if not spec.get("catch"):
                raise
        plain = [_plain(each) for each in value] if isinstance(value, list) else value
        watch.saw(task_id, place, spec, plain)
        seen.append(plain)
    return seen


def _plain(value: Any) -> Any:
    return f"{type(value).__name__}: {value}" if isinstance(value, Exception) else value


def _named(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    function.__name__ = name
    return function


def _retry(spec: dict[str, Any]) -> Retry:
    delay = timedelta(seconds=RETRY_SECONDS)
    return Retry(attempts=spec.get("attempts", 1), delay=delay, jitter=False)


def _step(task: TaskContext, place: str, spec: dict[str, Any]) -> Any:
    watch, task_id = _watch(), str(task.task_id)

    def work() -> int:
        return watch.done(task_id, place, task.step_token, spec)

    def undo(result: int) -> None:
        watch.undone(task_id, place, spec, result)

    return task.step(
        _named(f"step{place}", work),
        retry=_retry(spec),
        undo=_named(f"undo{place}", undo) if spec.get("undo") else None,
    )


def _map(task: TaskContext, place: str, spec: dict[str, Any]) -> Any:
    watch, task_id = _watch(), str(task.task_id)

    def work(item: int) -> int:
        return watch.done(task_id, f"{place}.{item}", task.step_token, spec)

    return task.map(
        _named(f"item{place}", work),
        range(spec["items"]),
        concurrency=spec["lanes"],
        tolerate=spec.get("tolerate", 0),
        retry=_retry(spec),
    )


def _sleep(task: TaskContext, place: str, spec: dict[str, Any]) -> Any:
    task.sleep(timedelta(seconds=spec["seconds"]))


def _wait_for(task: TaskContext, place: str, spec: dict[str, Any]) -> Any:
    watch, task_id = _watch(), str(task.task_id)

    def look() -> int:
        return watch.looked(task_id, place, spec["times"])

    return task.wait_for(
        _named(f"look{place}", look),
        every=timedelta(seconds=EVERY_SECONDS),
        until=timedelta(seconds=spec["seconds"]),
    )


def _ask(task: TaskContext, place: str, spec: dict[str, Any]) -> Any:
    return task.ask("How many?", Number, key=f"q{place}").n


def _on_cancel(task: TaskContext, place: str, spec: dict[str, Any]) -> Any:
    watch, task_id = _watch(), str(task.task_id)

    def undo() -> None:
        watch.undone(task_id, place, spec)

    task.on_cancel(_named(f"undo{place}", undo))


def _call(task: TaskContext, place: str, spec: dict[str, Any]) -> Any:
    """The subtasks' results; `{"failed": ...}` when the call has raised."""
    called, calls = {"quick": quick, "slow": slow}[spec["tool"]], spec["calls"]
    try:
        if spec.get("alone") and len(calls) == 1:
            return [task.call(called, **calls[0])]
        return task.map(called, calls, concurrency=spec["lanes"], tolerate=spec.get("tolerate", 0))
    except (SubtaskFailed, ToolError) as failed:
        if not spec.get("catch"):
            raise
        return {"failed": _plain(failed)}


def _end(task: TaskContext, place: str, spec: dict[str, Any]) -> Any:
    if spec["how"] == "refuse":
        raise ToolError("refused")
    if spec["how"] == "crash":
        raise Boom


OPERATIONS: Final[dict[str, Callable[[TaskContext, str, dict[str, Any]], Any]]] = {
    "step": _step,
    "map": _map,
    "sleep": _sleep,
    "wait_for": _wait_for,
    "ask": _ask,
    "on_cancel": _on_cancel,
    "now": lambda task, place, spec: task.now().isoformat(),
    "uuid": lambda task, place, spec: [str(task.uuid()), task.random()],
    "version": lambda task, place, spec: task.version(f"change{place}"),
    "call": _call,
    "end": _end,
}


@tool(task="required", ttl=timedelta(minutes=30), timeout=TIMEOUT)
def quick(task: TaskContext, program: list[dict[str, Any]], call: int, data: str) -> list[Any]:
    """A tool whose tasks live for half an hour."""
    return operate(task, program)


@tool(task="required", ttl=timedelta(days=200), timeout=TIMEOUT)
def slow(task: TaskContext, program: list[dict[str, Any]], call: int, data: str) -> list[Any]:
    """A tool whose tasks live for long."""
    return operate(task, program)


TOOLS: Final[dict[str, FunctionTool]] = {
    function.__name__: getattr(function, DECLARATION) for function in (quick, slow)
}
