"""A task, its execution, and a reconciler; for tests that break something between them."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Final

from moto.dynamodb.models import dynamodb_backends
from moto.s3.models import s3_backends

from mcp_tasks.durable.journal_table import JournalTable
from mcp_tasks.payloads.s3_store import PayloadStore
from mcp_tasks.registry.catalogue import Catalogue
from mcp_tasks.tasks.questions import Ask, FormQuestion, open_ask
from mcp_tasks.tasks.task import Task
from mcp_tasks.tasks.task_table import TaskTable
from mcp_tasks.workflows.end_task import TaskEnds
from mcp_tasks.workflows.executions import execution_arn
from mcp_tasks.workflows.reconcile import Reconciled, Reconciler
from tests.unit.support.aws import (
    TABLE,
    Mortal,
    create_journal,
    create_payloads,
    create_table,
    raw_rows,
    real,
)
from tests.unit.support.example_task import ID, NOW, a_task
from tests.unit.support.states import States

MACHINE: Final = a_task().state_machine_arn
ARN: Final = execution_arn(MACHINE, ID)
YES: Final = {"action": "accept", "content": {}}


@dataclass
class World:
    """The table, Step Functions, the bucket, and a function that reconciles tasks."""

    catalogue: Catalogue
    calls: Mortal = field(default_factory=Mortal)
    states: States = field(default_factory=States)

    def __post_init__(self) -> None:
        dynamodb_backends.reset()
        s3_backends.reset()
        self.rows = TaskTable(self.calls.client("dynamodb"), create_table())
        self.executions = self.states.serve(self.calls)
        self.payloads = PayloadStore(lambda: self.calls.client("s3"), create_payloads())
        self.ends = TaskEnds(
            self.rows,
            self.executions,
            self.catalogue,
            self.payloads,
            JournalTable(self.calls.client("dynamodb"), create_journal()),
        )
        self.reconciler = Reconciler(self.ends, lambda entry: MACHINE)

    @property
    def row(self) -> Task:
        """The task, expired or not."""
        task = self.rows.find(ID)
        assert task is not None
        return task

    @property
    def reconcile_at(self) -> int:
        """When the task is reconciled; it has to be at some time."""
        assert self.row.reconcile_at is not None
        return self.row.reconcile_at

    def reconcile(self, now: int | None = None) -> Reconciled | None:
        """Reconcile the task, at its time unless another is given."""
        return self.reconciler.reconcile(self.row, self.reconcile_at if now is None else now)

    def kept(self) -> tuple[dict[str, Any], States]:
        """The task and its execution as they are."""
        (row,) = raw_rows()
        return row, deepcopy(self.states)

    def put_back(self, kept: tuple[dict[str, Any], States]) -> None:
        """The task and its execution as they were."""
        row, states = kept
        real("dynamodb").put_item(TableName=TABLE, Item=row)
        vars(self.states).update(vars(deepcopy(states)))

    # what happens before

    def written(self, **changes: Any) -> None:
        """A task that was written, and not started."""
        self.rows.create(a_task(**changes))

    def started(self, **changes: Any) -> None:
        """A task whose execution runs."""
        self.written(**changes)
        task = a_task(**changes)
        self.states.run(task.state_machine_arn, ID, task.input or "")

    def to_be_undone(self, **changes: Any) -> None:
        """A task whose execution runs, and which has done what has to be undone if it fails."""
        self.started(**changes)
        self.rows.set_undo(ID, True, NOW)

    def ended(self, output: Any = None, status: str = "SUCCEEDED", **changes: Any) -> None:
        """A task whose execution has ended, and whose event was lost."""
        self.started(**changes)
        machine = a_task(**changes).state_machine_arn
        self.states.end(execution_arn(machine, ID), output or {"content": []}, status)

    def asked(self, *tokens: str) -> list[Ask]:
        """Questions that were asked by a task that runs, each by a state of its own."""
        asks = [open_ask(token, {"sure": FormQuestion("Sure?", {})}) for token in tokens]
        for ask in asks:
            self.states.wait(ask.token)
            self.rows.ask(ID, ask, NOW)
        return asks

    def answered(self, ask: Ask) -> None:
        """An answer that was stored, and not sent."""
        self.rows.answer(self.row, {ask.id: dict.fromkeys(ask.questions, YES)}, NOW + 1)
