"""What a worker reads and writes of its task's row, while AWS is not there for a moment."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from mcp_tasks import TaskContext, ToolError, tool
from mcp_tasks.durable.journal import JournalUnavailable
from mcp_tasks.registry.context import TaskCancelled
from mcp_tasks.testing import start_task
from mcp_tasks.testing.local_task import LocalTask
from mcp_tasks.workflows.retry import TRANSIENT_ERROR
from mcp_tasks.workflows.step_reports import cancellation_check, undo_notice


class Rows:
    """A tasks table, all of whose calls fail with an error; without one, no task goes on."""

    def __init__(self, code: str | None, status: int = 500) -> None:
        self.error: ClientError | None = None
        if code is not None:
            metadata: Any = {"HTTPStatusCode": status}
            answer: Any = {"Error": {"Code": code}, "ResponseMetadata": metadata}
            self.error = ClientError(answer, "UpdateItem")

    def is_running(self, task_id: str, now: int) -> bool:
        if self.error is not None:
            raise self.error
        return False

    def set_undo(self, task_id: str, undo: bool, now: int) -> None:
        if self.error is not None:
            raise self.error


def of(rows: Any) -> Any:
    """The table, as the type checker knows it."""
    return rows


OUT = [("InternalServerError", 500), ("ThrottlingException", 400)]


@pytest.mark.parametrize(("code", "status"), OUT)
def test_a_tool_goes_on_when_nobody_knows_whether_it_is_cancelled(code: str, status: int) -> None:
    """It asks again a second later, and before each step that is to be undone."""
    cancellation_check(of(Rows(code, status)), "c1-0", int)()


def test_a_tool_ends_when_its_task_has_ended() -> None:
    with pytest.raises(TaskCancelled):
        cancellation_check(of(Rows(None)), "c1-0", int)()


def test_a_tool_ends_its_run_when_it_may_not_ask() -> None:
    with pytest.raises(JournalUnavailable, match="AccessDeniedException"):
        cancellation_check(of(Rows("AccessDeniedException", 400)), "c1-0", int)()


def reserve() -> str:
    return "car"


def release(what: str) -> None: ...


@tool(task="required")
def book(task: TaskContext, refuse: bool = False) -> str:
    """Reserve something, whatever happens."""
    try:
        task.step(reserve, undo=release)
    except Exception:
        return "caught"
    if refuse:
        raise ToolError("too expensive")
    return "done"


@pytest.mark.parametrize(("code", "status"), OUT)
@pytest.mark.parametrize(
    ("method", "undo"), [("_announce_undo", True), ("_all_undone", False)], ids=["before", "after"]
)
def test_a_run_is_repeated_when_its_row_cannot_say_what_is_to_be_undone(
    monkeypatch: pytest.MonkeyPatch, code: str, status: int, method: str, undo: bool
) -> None:
    """Not the tool, which would take it for its step's failure; and its task does not fail."""
    note = undo_notice(of(Rows(code, status)), "c1-0", int)
    monkeypatch.setattr(LocalTask, method, lambda self: note(undo))
    task = start_task(book, {"refuse": True})
    assert task.error == TRANSIENT_ERROR
