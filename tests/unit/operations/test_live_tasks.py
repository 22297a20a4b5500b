"""`make tasks`: the table of live tasks, and one task."""

from __future__ import annotations

from typing import Any

from mcp_tasks.durable.record import Kind, Operation, Record, State
from operations.live_tasks import MESSAGE_CHARACTERS, Row, detail, table

NOW = 1_795_500_000_000
MACHINE = "arn:aws:states:eu-west-1:111122223333:stateMachine:notes-report"


def row(task_id: str, **values: Any) -> Row:
    """A task that was created an hour ago, and changed five seconds ago."""
    good = {
        "taskId": task_id,
        "tool": "report",
        "status": "working",
        "createdAt": NOW - 3_600_000,
        "lastUpdatedAt": NOW - 5_250,
        "expiresAtMs": NOW + 3_600_000,
        "principal": "issuer|alice",
        "stateMachineArn": MACHINE,
    }
    return Row(good | values)


def test_subtasks_stand_below_their_parents() -> None:
    lines = table(
        [
            row("c1-child", parent={"taskId": "c1-parent"}, status="input_required"),
            row("c1-other"),
            row("c1-parent"),
            row("c1-grandchild", parent={"taskId": "c1-child"}),
        ],
        NOW,
    )
    assert lines == [
        "task               tool    status          age      changed  message",
        "c1-other           report  working         1:00:00  0:00:05",
        "c1-parent          report  working         1:00:00  0:00:05",
        "  c1-child         report  input_required  1:00:00  0:00:05",
        "    c1-grandchild  report  working         1:00:00  0:00:05",
        "",
        "1 input_required, 3 working",
    ]


def test_a_subtask_whose_parent_has_ended_stands_for_itself() -> None:
    assert table([row("c1-child", parent={"taskId": "c1-gone"})], NOW)[1].startswith("c1-child ")


def test_a_long_message_is_cut() -> None:
    line = table([row("c1-a", statusMessage="x" * 100)], NOW)[1]
    assert line.endswith("  " + "x" * (MESSAGE_CHARACTERS - 1) + "…")


def test_a_cancel_that_waits_for_subtasks_is_shown() -> None:
    assert "to be cancelled" in table([row("c1-a", cancelRequested=True)], NOW)[1]


def test_no_task_is_said_in_words() -> None:
    assert table([], NOW)[-1] == "no task runs"


def test_a_task_shows_its_execution_and_its_journal() -> None:
    step = Operation(Kind.STEP, "look_up", "company", "hash")
    records = [
        Record("000001", step, State.DONE, attempts=2),
        Record("000002", Operation(Kind.SLEEP, "sleep"), State.WAITING, due_at=NOW),
    ]
    lines = detail(row("c1-a", execution=3, statusMessage="half", error={"code": -32603}), records)
    assert f"execution  {MACHINE.replace('stateMachine', 'execution')}:c1-a-3" in lines
    assert "message    half" in lines
    assert "error      -32603" in lines
    assert lines[-3:] == [
        "journal",
        "  000001  step look_up (company): done, attempt 2",
        "  000002  sleep sleep: waiting, until 2026-11-24T06:00:00.000Z",
    ]
    assert not any(line.startswith(("parent", "subtasks")) for line in lines)
