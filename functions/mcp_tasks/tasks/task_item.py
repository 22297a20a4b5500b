"""A task as an item of the tasks table, and back.

Each item has the version of its shape. During a deployment, functions of two versions of this code
work on the same items, and a task may wait for weeks. So a reader takes the version before its own,
and the one after it, which a deployment that was rolled back may have written. A new version only
adds attributes, or leaves out what no reader of the version before needs.

    3   a revision, and questions of all kinds
    4   reconcileAt, reconcileShard and silenceMs; a large result is a payload (resultPayload)
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from ..aws.dynamodb_values import from_attribute, to_attribute
from ..payloads.pointer import PayloadPointer
from .questions import Ask, Kind, question
from .reconcile_schedule import FIRST_RECONCILE_MS, UNKNOWN_SILENCE_MS, shard_of
from .state import Status
from .subtask import Parent
from .task import Task
from .task_list import PRINCIPAL_KEY, principal_key

SCHEMA_VERSION: Final = 4
READABLE: Final = frozenset({SCHEMA_VERSION - 1, SCHEMA_VERSION, SCHEMA_VERSION + 1})

ITEM_KEPT_MS: Final = 24 * 3600 * 1000
"""How long an expired item is kept at least: by it, the sweeper finds an execution that still
runs."""


class UnreadableRow(ValueError):
    """The row is of a version that this code does not read; the message names the version."""


def item_of(task: Task) -> dict[str, Any]:
    """A new task in DynamoDB's notation. `expiresAt`, in seconds, is the table's time-to-live
    attribute.
    """
    row: dict[str, Any] = {
        "taskId": task.task_id,
        "schemaVersion": SCHEMA_VERSION,
        "tool": task.tool,
        "principal": task.principal,
        "status": task.status.value,
        "createdAt": task.created_at,
        "lastUpdatedAt": task.last_updated_at,
        "ttlMs": task.ttl_ms,
        "expiresAtMs": task.expires_at,
        "expiresAt": (task.expires_at + ITEM_KEPT_MS) // 1000,
        "pollIntervalMs": task.poll_interval_ms,
        "stateMachineArn": task.state_machine_arn,
        "accepts": {kind.value: True for kind in sorted(task.accepts)},
        "input": task.input,
        "asks": {},
        "inputRevision": 0,
        "revision": task.revision,
        # A subtask is reconciled from the moment on at which its execution is started.
        **({"parent": _parent_attributes(task.parent)} if task.parent else _reconciled(task)),
        "silenceMs": task.silence_ms,
        "sequential": task.sequential,
        PRINCIPAL_KEY: principal_key(task.principal),
        **({"scopes": dict.fromkeys(task.scopes, True)} if task.scopes else {}),
        **({"clientContext": json.dumps(task.client_context)} if task.client_context else {}),
    }
    return {name: to_attribute(value) for name, value in row.items()}


def task_of(item: Mapping[str, Any]) -> Task:
    """An item, in DynamoDB's notation, as a task. Raises UnreadableRow."""
    row = {name: from_attribute(value) for name, value in item.items()}
    if row.get("schemaVersion") not in READABLE:
        raise UnreadableRow(f"a row of version {row.get('schemaVersion')}")
    payload = row.get("resultPayload")
    return Task(
        task_id=row["taskId"],
        tool=row["tool"],
        principal=row["principal"],
        status=Status(row["status"]),
        created_at=row["createdAt"],
        last_updated_at=row["lastUpdatedAt"],
        ttl_ms=row["ttlMs"],
        poll_interval_ms=row["pollIntervalMs"],
        state_machine_arn=row["stateMachineArn"],
        accepts=frozenset(map(Kind, row["accepts"])),
        input=row.get("input"),
        status_message=row.get("statusMessage"),
        asks=_asks(row.get("asks", {})),
        input_revision=row["inputRevision"],
        revision=revision_of(item),
        tool_error=row.get("toolError"),
        result=_json(row.get("result")),
        result_payload=None if payload is None else PayloadPointer(**payload),
        error=_json(row.get("error")),
        reconcile_at=row.get("reconcileAt"),
        silence_ms=row.get("silenceMs", UNKNOWN_SILENCE_MS),
        sequential=row.get("sequential", False),
        scopes=tuple(sorted(row.get("scopes", ()))),
        execution=row.get("execution", 1),
        undo=row.get("undo", False),
        parent=_parent(row.get("parent")),
        subtask_ids=tuple(row.get("childTaskIds", ())),
        cancel_requested=row.get("cancelRequested", False),
        client_context=_json(row.get("clientContext")) or {},
    )


def revision_of(item: Mapping[str, Any]) -> int:
    """The revision of a row in DynamoDB's notation."""
    return int(item["revision"]["N"])


def ask_attributes(ask: Ask) -> dict[str, Any]:
    """A new ask, as a task's row holds it."""
    limit = ask.max_output_bytes
    return {
        "token": ask.token,
        "names": ask.names,
        "questions": {
            key: json.dumps(question.as_json()) for key, question in ask.questions.items()
        },
        "answers": {},
        **({} if limit is None else {"maxOutputBytes": limit}),
    }


def _reconciled(task: Task) -> dict[str, Any]:
    return {
        "reconcileShard": shard_of(task.task_id),
        "reconcileAt": task.created_at + FIRST_RECONCILE_MS,
    }


def _parent_attributes(parent: Parent) -> dict[str, Any]:
    return {
        "taskId": parent.task_id,
        "tool": parent.tool,
        "operation": parent.operation,
        "number": parent.number,
        "rootTool": parent.root_tool,
        "depth": parent.depth,
        "tokens": dict(parent.tokens),
    }


def _parent(row: Mapping[str, Any] | None) -> Parent | None:
    if row is None:
        return None
    return Parent(
        task_id=row["taskId"],
        tool=row["tool"],
        operation=row["operation"],
        number=row["number"],
        root_tool=row["rootTool"],
        depth=row["depth"],
        tokens=row.get("tokens", {}),
    )


def _asks(rows: Mapping[str, Any]) -> dict[str, Ask]:
    return {ask_id: _ask(ask_id, row) for ask_id, row in rows.items() if "delivered" not in row}


def _ask(ask_id: str, row: Mapping[str, Any]) -> Ask:
    return Ask(
        id=ask_id,
        token=row["token"],
        names=dict(row["names"]),
        questions={key: question(json.loads(text)) for key, text in row["questions"].items()},
        answers={key: json.loads(text) for key, text in row["answers"].items()},
        max_output_bytes=row.get("maxOutputBytes"),
    )


def _json(text: str | None) -> dict[str, Any] | None:
    return None if text is None else json.loads(text)
