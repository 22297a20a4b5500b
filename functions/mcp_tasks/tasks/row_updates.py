"""What each transition of a task writes to its row, and on which condition. Pure.

The conditions carry the correctness: handlers run concurrently, in any order, and more than once.
`state.TRANSITIONS` says from which states each transition is allowed; the comments say which race a
condition decides. tests/campaigns/conditions removes them one at a time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any, Final

from ..payloads.pointer import PayloadPointer
from .conditional_update import ConditionalUpdate
from .questions import Ask, kinds
from .reconcile_schedule import FIRST_RECONCILE_MS, STOP_AGAIN_MS
from .state import Status, sources
from .subtask import Relatives
from .task import Task
from .task_item import ask_attributes

NOT_TERMINAL: Final = sources(Status.WORKING)
NOTHING_TO_UNDO: Final = ("(attribute_not_exists(#undo) OR #undo = :noUndo)",)

NO_SUBTASKS: Final = "attribute_not_exists(childTaskIds)"
HAS_SUBTASKS: Final = "size(childTaskIds) = :subtasks"

WORKER_ATTRIBUTES: Final = frozenset(
    {
        *("taskId", "status", "expiresAtMs"),  # named in conditions
        *("statusMessage", "toolError", "lastUpdatedAt", "revision"),
    }
)
"""The attributes that a worker's writes name, and that its role may name. Without the others a
worker cannot write a row that any function takes for a task."""

DURABLE_ATTRIBUTES: Final = WORKER_ATTRIBUTES | {"undo"}
"""The same for the worker of a tool that may do durable operations."""

READ_BY_WORKER: Final = ("taskId", "status", "expiresAtMs")
"""The attributes that a worker may read: whether its task goes on."""

Answers = Mapping[str, Mapping[str, dict[str, Any]]]
"""Ask id -> question key -> answer."""


def report(message: str) -> ConditionalUpdate:
    """Set the status message."""
    # Race: a step outlives its execution's end; a late report must not change a terminal task.
    # Race: the row was deleted; without a condition, a report would make a row that is no task.
    return ConditionalUpdate(sources=NOT_TERMINAL, sets={"statusMessage": message}, by_worker=True)


def store_tool_error(message: str) -> ConditionalUpdate:
    """Keep a failing step's message for the caller, in case that it ends the execution."""
    # Race: a step outlives its execution's end; nothing is written to a terminal task.
    return ConditionalUpdate(
        sources=NOT_TERMINAL, sets={"toolError": message}, visible=False, by_worker=True
    )


def set_undo(undo: bool) -> ConditionalUpdate:
    """Note whether anything that the task did is to be undone when it is cancelled or fails."""
    # Race: the task is cancelled while a step begins that something undoes. Whoever cancels it
    # reads here, once the row is terminal, whether to undo: a step that comes later must not begin.
    return ConditionalUpdate(
        sources=NOT_TERMINAL, sets={"undo": undo}, visible=False, by_worker=True
    )


def ask(ask: Ask) -> ConditionalUpdate:
    """Store an ask's questions and token, and wait for the client."""
    wanted = sorted(kinds(ask.questions.values()))
    # Races: the task was cancelled while the state started (status); Step Functions or Lambda
    # delivered the ask twice, and the first was answered meanwhile (its id).
    return ConditionalUpdate(
        sources=sources(Status.INPUT_REQUIRED),
        conditions=(
            "attribute_not_exists(asks.#ask)",
            *(f"attribute_exists(accepts.#{kind})" for kind in wanted),
        ),
        sets={"asks.#ask": ask_attributes(ask)},
        names={"#ask": ask.id} | {f"#{kind}": kind.value for kind in wanted},
        status=Status.INPUT_REQUIRED,
        changes_questions=True,
    )


def answer(task: Task, answers: Answers) -> ConditionalUpdate:
    """Store answers; the task works again when no question is left."""
    unanswered = set(task.outstanding) - {key for given in answers.values() for key in given}
    names: dict[str, str] = {}
    sets: dict[str, Any] = {}
    for a, (ask_id, given) in enumerate(answers.items()):
        names[f"#ask{a}"] = ask_id
        for k, (key, content) in enumerate(given.items()):
            names[f"#key{a}x{k}"] = key
            sets[f"asks.#ask{a}.answers.#key{a}x{k}"] = json.dumps(content)
    # Races: two clients answer the same key, or different keys at once, each believing the other's
    # to be open; a question is asked between read and write. Each increases inputRevision. Without
    # the condition a key is answered twice, or the task waits with nothing left to answer.
    return ConditionalUpdate(
        sources=(Status.INPUT_REQUIRED,),
        conditions=("inputRevision = :seen",),
        sets=sets,
        names=names,
        values={":seen": task.input_revision},
        status=Status.INPUT_REQUIRED if unanswered else Status.WORKING,
        principal=task.principal,
        changes_questions=True,
        # The function may die before it has sent the answers to the waiting state.
        reconcile_in_ms=FIRST_RECONCILE_MS,
    )


def close_ask(task: Task, ask_id: str) -> ConditionalUpdate:
    """Close an ask that no state waits for any more."""
    unanswered = any(ask.outstanding for ask in task.asks.values() if ask.id != ask_id)
    # Races: an answer to this ask, or to another, is stored between read and write; a question is
    # asked. Each increases inputRevision. Without the condition an answer that a state waits for
    # is thrown away, or the task works on while something is to be answered.
    return ConditionalUpdate(
        sources=(Status.INPUT_REQUIRED,),
        conditions=("inputRevision = :seen",),
        sets={"asks.#ask": {"delivered": True}},
        names={"#ask": ask_id},
        values={":seen": task.input_revision},
        status=Status.INPUT_REQUIRED if unanswered else Status.WORKING,
        changes_questions=True,
    )


def mark_delivered(ask_id: str) -> ConditionalUpdate:
    """Replace an ask, whose answers its state has received, by a tombstone."""
    # Race: the execution may end, or the row expire, as soon as the token is sent; nothing may be
    # written to a terminal row, and an expired one must not be written back to life.
    return ConditionalUpdate(
        sources=NOT_TERMINAL,
        conditions=("attribute_exists(asks.#ask)",),
        sets={"asks.#ask": {"delivered": True}},
        names={"#ask": ask_id},
        visible=False,
    )


def complete(
    result: dict[str, Any] | PayloadPointer, relatives: Relatives, *, step_may_run: bool = False
) -> ConditionalUpdate:
    """End the task with its result, or with the pointer to a large one."""
    stored: dict[str, Any] = (
        {"resultPayload": asdict(result)}
        if isinstance(result, PayloadPointer)
        else {"result": json.dumps(result)}
    )
    return _end(
        Status.COMPLETED, stored, relatives, execution_ended=True, step_may_run=step_may_run
    )


def fail(
    error: dict[str, Any],
    relatives: Relatives,
    *,
    may_run: bool,
    step_may_run: bool = False,
) -> ConditionalUpdate:
    """End the task with a JSON-RPC error; its execution has ended, unless it `may_run`.

    A step of an execution that has ended may run on all the same (`step_may_run`).
    """
    stored = {"error": json.dumps(error), "statusMessage": error["message"]}
    update = _end(
        Status.FAILED, stored, relatives, execution_ended=not may_run, step_may_run=step_may_run
    )
    if may_run:
        return update
    # Race: a step that is to be undone begins after the row was read. The row would leave the
    # reconcile schedule, and nobody would know that something is to be undone.
    return replace(
        update,
        conditions=(*update.conditions, *NOTHING_TO_UNDO),
        names={**update.names, "#undo": "undo"},
        values={**update.values, ":noUndo": False},
    )


def start_successor(task: Task) -> ConditionalUpdate:
    """Let the task go on in another execution, the one after that which has ended."""
    # Races: the end of an execution is told twice. Both go on with the same successor, which has
    # one name; a third one would run beside it. Or a cancel was requested, which has stopped the
    # execution that has ended: its successor would run on.
    first = task.execution == 1
    return ConditionalUpdate(
        sources=NOT_TERMINAL,
        conditions=(
            "attribute_not_exists(#execution)" if first else "#execution = :execution",
            "attribute_not_exists(cancelRequested)",
        ),
        names={"#execution": "execution"},
        values={} if first else {":execution": task.execution},
        sets={"execution": task.execution + 1},
        visible=False,
        # The function may die before it has started the successor.
        reconcile_in_ms=FIRST_RECONCILE_MS,
    )


def undone(task: Task, message: str | None) -> ConditionalUpdate:
    """Note that what a cancelled or failed task did is undone, but for what `message` says."""
    # Race: the end of the execution that undid it is told twice, or to the sweeper as well.
    return ConditionalUpdate(
        sources=(Status.CANCELLED, Status.FAILED),
        conditions=("#undo = :undo",),
        names={"#undo": "undo"},
        values={":undo": True},
        sets={"undo": False, **({"statusMessage": message} if message else {})},
        visible=False,
        # As long as its parent was not told of its end, it stays in the reconcile schedule.
        execution_ended=task.parent is None or not task.parent.tokens,
        expired=None,
    )


def request_cancel(principal: str) -> ConditionalUpdate:
    """Note that the task is to be cancelled once its subtasks have ended."""
    # Race: the task starts more subtasks while those that it has are ended. It may not any more
    # (`subtask_updates.add`), or there would be no end of it.
    return ConditionalUpdate(
        sources=NOT_TERMINAL,
        sets={"cancelRequested": True},
        principal=principal,
        visible=False,
        # The function may die before it has ended the subtasks.
        reconcile_in_ms=FIRST_RECONCILE_MS,
    )


def cancel(principal: str, relatives: Relatives) -> ConditionalUpdate:
    """End the task because its client cancelled it."""
    return _end(Status.CANCELLED, {}, relatives, step_may_run=True, principal=principal)


def expire(error: dict[str, Any], relatives: Relatives) -> ConditionalUpdate:
    """End a task whose time to live has passed."""
    stored = {"error": json.dumps(error), "statusMessage": error["message"]}
    return _end(Status.FAILED, stored, relatives, step_may_run=True, expired=True)


def _end(
    status: Status,
    sets: dict[str, Any],
    relatives: Relatives,
    *,
    step_may_run: bool,
    execution_ended: bool = False,
    **more: Any,
) -> ConditionalUpdate:
    # What only a running task needs is removed, answers and tokens first of all.
    message = () if "statusMessage" in sets else ("statusMessage",)
    # Races: cancel against complete, events that arrive late or twice, a redriven execution. The
    # first writer wins; a later one gets TaskEnded and changes nothing.
    return ConditionalUpdate(
        sources=sources(status),
        sets=sets,
        status=status,
        # Race: the task starts a subtask after its subtasks were seen to have ended. A task is
        # never terminal before they are (SEP-2268, "Task Termination").
        conditions=(HAS_SUBTASKS if relatives.subtasks else NO_SUBTASKS,),
        values={":subtasks": relatives.subtasks} if relatives.subtasks else {},
        removes=("asks", "input", "toolError", *message),
        # An execution that may run is stopped next, and a parent is told. The function may die
        # before that.
        reconcile_in_ms=_next_reconcile_in_ms(relatives, execution_ended=execution_ended),
        execution_ended=execution_ended and not relatives.parent,
        # What it was before says whether a step could run (`last_step.py`).
        copies={"endedFrom": "#status"} if step_may_run else {},
        **more,
    )


def _next_reconcile_in_ms(relatives: Relatives, *, execution_ended: bool) -> int | None:
    if not execution_ended:
        return STOP_AGAIN_MS
    return FIRST_RECONCILE_MS if relatives.parent else None
