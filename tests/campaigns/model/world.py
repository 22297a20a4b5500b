"""The task core over moto's DynamoDB and a double of Step Functions, and what must hold of it.

Every write to the tasks table is looked at as it happens, and every answer that a client gets.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import BytesIO
from typing import Any, ClassVar, Final, Generic, Literal, TypeVar, cast

import pytest

from mcp_tasks.limits import Limits
from mcp_tasks.notifications.clock import Clock
from mcp_tasks.payloads.pointer import payload_prefix
from mcp_tasks.payloads.s3_store import PayloadStore
from mcp_tasks.protocol.errors import ErrorCode, ProtocolError, Unavailable
from mcp_tasks.registry.catalogue import Catalogue, ToolEntry
from mcp_tasks.registry.context import TaskCancelled
from mcp_tasks.server.call import Call, Complete, Outcome
from mcp_tasks.server.methods.call_quota import CallQuota
from mcp_tasks.server.methods.idempotent_creation import IdempotentCreation
from mcp_tasks.server.methods.poll_rate_limit import PollRateLimit
from mcp_tasks.server.methods.result_links import ResultLinks
from mcp_tasks.server.methods.stream_connection import MAX_ERROR_RESPONSES
from mcp_tasks.server.methods.task_creation import TaskCreation, WriteOutcomeUnknown
from mcp_tasks.server.methods.task_operations import TaskOperations
from mcp_tasks.server.methods.task_wire_format import detailed_task
from mcp_tasks.server.methods.tasks import TaskMethods
from mcp_tasks.server.methods.tasks_sep_1686 import CLIENT_TASK_ID, REQUEST_ID, TasksSep1686
from mcp_tasks.server.scopes import ScopeCheck
from mcp_tasks.server.sealed import DerivedIds
from mcp_tasks.server.stream_position import LIFETIME_MS, UnknownEventId
from mcp_tasks.server.task_access import TASK_NOT_FOUND, TaskAccess
from mcp_tasks.tasks.idempotency import IdempotencyKeys
from mcp_tasks.tasks.questions import Kind
from mcp_tasks.tasks.quotas import CallerQuotas
from mcp_tasks.tasks.state import TRANSITIONS, Status
from mcp_tasks.tasks.task import Task, now_ms
from mcp_tasks.tasks.task_item import task_of
from mcp_tasks.tasks.task_table import TaskTable
from mcp_tasks.workflows.ask import ask
from mcp_tasks.workflows.end_task import TaskEnds
from mcp_tasks.workflows.execution_names import task_of_execution
from mcp_tasks.workflows.execution_outcome import NOT_STARTED
from mcp_tasks.workflows.executions import Executions
from mcp_tasks.workflows.finish import finish
from mcp_tasks.workflows.reconcile import (
    EXECUTION_NOT_FOUND,
    EXPIRED,
    ID_USED_BEFORE,
    Reconciler,
)
from mcp_tasks.workflows.step_reports import status_reporter, tool_error_reporter
from mcp_tasks.workflows.sweep import sweep
from tests.campaigns.model import dynamodb
from tests.campaigns.model.actors import (
    CALLERS,
    CALM,
    OBJECTS,
    STATES,
    TASKS,
    Actor,
    Plan,
    Violation,
)
from tests.campaigns.model.dynamodb import Item
from tests.campaigns.model.history import (
    DAY,
    HOUR,
    MINUTE,
    OWNER,
    SECRET,
    History,
    begin,
    clock_of_histories,
    current,
)
from tests.campaigns.model.step_functions import (
    Account,
    Execution,
    Invocation,
    Script,
    StepFunctions,
    Token,
    Waits,
)
from tests.campaigns.model.streams import (
    CONNECTION_MS,
    Connection,
    Streams,
    Waiter,
    received,
)
from tests.unit.support.aws import ACCOUNT, PAYLOADS, REGION, TABLE
from tests.unit.support.aws import CALLERS as CALLERS_TABLE

SKEW_MS: Final = 30_000
"""How much a clock may be ahead or behind."""
ROOM: Final = 2_000
"""Bytes of arguments and of results that a row keeps, here."""
LOOKS: Final = 12
"""So many looks of the sweeper end every task, once nothing fails any more."""

START_REFUSED: Final = "The task could not be started; "


MACHINE: Final = f"arn:aws:states:{REGION}:{ACCOUNT}:stateMachine:"


def _tool(name: str, ttl_ms: int) -> ToolEntry:
    return ToolEntry(
        name=name,
        definition={},
        module="",
        attribute="",
        kind="function",
        task_support="required",
        without_tasks="task",
        asks_first=False,
        ttl_ms=ttl_ms,
        poll_interval_ms=1000,
        timeout_ms=MINUTE,
        sequential=True,
        mirrored=(),
        state_machine_arn=None,
    )


TOOLS: Final = (_tool("quick", 30 * MINUTE), _tool("slow", 200 * DAY))


class Bucket:
    """An S3 bucket, as far as `Payloads` needs one."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}

    def put_object(self, *, Key: str, Body: bytes, **_: Any) -> None:
        self.objects[Key] = Body

    def get_object(self, *, Key: str, Range: str, **_: Any) -> dict[str, Any]:
        first, last = map(int, Range.removeprefix("bytes=").split("-"))
        return {"Body": BytesIO(self.objects[Key][first : last + 1])}

    def copy_object(self, *, Key: str, CopySource: dict[str, str], **_: Any) -> None:
        self.objects[Key] = self.objects[CopySource["Key"]]


class Inline:
    """A ThreadPoolExecutor that does one thing after the other, in the actor's own thread."""

    def __init__(self, *_: Any) -> None: ...

    def __enter__(self) -> Inline:
        return self

    def __exit__(self, *_: object) -> None: ...

    def submit(self, work: Callable[..., Any], *arguments: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(work(*arguments))
        except Exception as error:
            future.set_exception(error)
        return future

    def map(self, work: Callable[[Any], Any], values: Any) -> Iterator[Any]:
        return map(work, values)


@dataclass
class Acknowledged:
    """A task whose creator has been told of it."""

    task_id: str
    expires_at: int
    key: str | None


@dataclass(frozen=True)
class Chosen:
    """What a client has chosen, and its task's id follows from."""

    who: str
    kind: Literal["client", "request"]
    """An id for the task (SEP-1686), or an id for the request in a session."""
    id: str


DUE: Final = ("reconcileAt", "reconcileShard")
DELETED: Final = frozenset({"ttlMs", "expiresAtMs", "expiresAt", "input", "result", "error"})
"""What `tasks/delete` changes of a task that is over."""

A = TypeVar("A", bound=Account[Any])


class TaskWorld(History, Generic[A]):
    """All there is in one run but the executions, which `World` has, or `durable.Durable`."""

    tools: ClassVar[tuple[ToolEntry, ...]] = TOOLS
    script: ClassVar = "script"
    """The argument that says what a tool does."""
    may_change: ClassVar[frozenset[str]] = frozenset(DUE)
    """What may change of a row that is over."""

    def __init__(self, statistics: Counter[str]) -> None:
        super().__init__(statistics)
        self.acknowledged: dict[str, Acknowledged] = {}
        self.deleted: set[str] = set()
        """Tasks whose rows DynamoDB has removed, long after their time."""
        dynamodb.empty(TABLE)
        dynamodb.empty(CALLERS_TABLE)
        self.step_functions = self._account()
        bucket = Bucket()
        self._whole = PayloadStore(lambda: cast(Any, bucket), PAYLOADS)
        self.rows = TaskTable(self.stage.client(TASKS, dynamodb.InProcess(), self._rows), TABLE)
        callers: Any = self.stage.client(CALLERS, dynamodb.InProcess())
        states: Any = self.stage.client(STATES, self.step_functions, self._states)
        self.executions = Executions(lambda: states)
        objects: Any = self.stage.client(OBJECTS, bucket)
        self.payloads = PayloadStore(lambda: objects, PAYLOADS)
        self.catalogue = Catalogue(self.tools)
        self.ends = TaskEnds(self.rows, self.executions, self.catalogue, self.payloads)
        self.repair = Reconciler(self.ends, lambda entry: MACHINE + entry.name)
        creation = TaskCreation(
            self.rows,
            self.executions,
            CallerQuotas(callers, CALLERS_TABLE),
            self.payloads,
            Limits(max_open_tasks=4, creations_per_minute=60),
            lambda entry: MACHINE + entry.name,
            "c1",
        )
        keys = IdempotencyKeys(callers, CALLERS_TABLE)
        self.creation = IdempotentCreation(creation, keys, self.wait)
        operations = TaskOperations(
            TaskAccess(self.rows, self.catalogue, ScopeCheck()),
            self.rows,
            self.executions,
            self.repair,
            self.payloads,
            "c1",
        )
        links, unlimited = ResultLinks(self.payloads), PollRateLimit(0)
        self.ids = DerivedIds(lambda: SECRET, "c1")
        clients = TasksSep1686(operations, links, unlimited, self.ids)
        self.methods = clients.beside(
            {**TaskMethods(operations, links, unlimited).table(), "tasks/result": clients.result}
        )
        clock = Clock(self.clock_ms, self.wait)
        self._links = ResultLinks(self._whole)
        self.streams = Streams(operations, links, CallQuota(CallerQuotas(callers, ""), 0), clock)
        self.waiters: list[Waiter] = []
        self._made: dict[Actor, str] = {}
        self._claimed: set[tuple[Actor | None, str]] = set()
        self._ids = 0
        self._numbers = 0
        self._called: dict[int, dict[str, Any]] = {}
        self.keyed: dict[str, dict[str, Any]] = {}
        self.chosen: dict[str, Chosen] = {}
        """What was chosen, by the id of the task that it gives."""
        self._asked_for: dict[Chosen, dict[str, Any]] = {}
        self._owners: dict[str, str] = {}
        self._sent: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self._accepted: dict[str, dict[str, Any]] = defaultdict(dict)
        self._ends: dict[str, dict[str, Any]] = {}
        self.questions: dict[str, list[str]] = defaultdict(list)
        """The keys of all that was ever asked, by task."""

    @abstractmethod
    def _account(self) -> A:
        """Step Functions, with the executions of these tasks."""

    @abstractmethod
    def _work_off(self, answering: bool) -> None:
        """What executions do when nothing is in their way, and a client that answers, or none."""

    # what the code under test finds in the place of the real thing

    def new_task_id(self, cell: str) -> str:
        """Ids in the order of the creations."""
        self._ids += 1
        task_id = f"{cell}-{self._ids:032x}"
        if self.stage.actor is not None:
            self._made[self.stage.actor] = task_id
        return task_id

    def _arguments_of(self, name: str, execution_input: str) -> dict[str, Any]:
        """The arguments of an execution, as its worker makes them whole."""
        task_id, given = task_of_execution(name)[0], json.loads(execution_input)
        row = dynamodb.item(TABLE, task_id)
        if row is None:
            raise Violation(f"an execution without a row: {task_id}")
        owner = payload_prefix(row["tool"]["S"], task_id)
        arguments: dict[str, Any] = self._whole.resolve(given["arguments"], owner)
        if arguments != self._called[arguments["call"]]:
            raise Violation(f"the arguments of {task_id} are not those of its call")
        return arguments

    # clients

    def create(
        self,
        script: list[dict[str, Any]],
        plan: Plan = CALM,
        *,
        entry: ToolEntry | None = None,
        key: str | None = None,
        can: frozenset[Kind] = frozenset({Kind.FORM}),
        data: str = "",
    ) -> None:
        """`tools/call`. With a key that was used before it is the same call, repeated."""
        entry = entry or self.tools[0]
        made = self.keyed.get(key or "") or self._new_call(script, entry, can, data)
        if key is not None:
            self.keyed[key] = made
        call = self._call("tools/call", OWNER, {}, made["can"], key)

        def after(actor: Actor) -> None:
            if actor.error is None:
                self._acknowledge(actor.result, key)
            elif isinstance(actor.error, ProtocolError) and actor in self._made and key is None:
                row = dynamodb.item(TABLE, self._made[actor])
                if (
                    isinstance(actor.error, Unavailable)
                    and type(actor.error) is not WriteOutcomeUnknown
                ):
                    self.require(row is None, "a create that was refused left a row behind")
                elif type(actor.error) is not WriteOutcomeUnknown:
                    over = row is None or task_of(row).status.terminal
                    self.require(over, "a create that was refused left a task behind")

        self.run("create", self._creating(call, made), plan, as_=OWNER, after=after)

    def create_chosen(
        self,
        chosen: Chosen,
        script: list[dict[str, Any]],
        plan: Plan = CALM,
        *,
        entry: ToolEntry | None = None,
        repeat: bool = False,
    ) -> None:
        """`tools/call` of a handshake client; `repeat` the one that it made with this id before."""
        earlier, entry = self._asked_for.get(chosen) if repeat else None, entry or self.tools[0]
        made = earlier or self._new_call(script, entry, frozenset({Kind.FORM}), "")
        self._asked_for[chosen] = made
        task_id = self.ids.derive(chosen.kind, chosen.who, chosen.id)
        self.chosen[task_id] = chosen
        self._numbers += 1
        about = {CLIENT_TASK_ID: chosen.id, REQUEST_ID: str(self._numbers)}
        call = replace(
            self._call("tools/call", chosen.who, {}, made["can"]),
            task_id=task_id,
            client_context=about if chosen.kind == "client" else {},
        )

        def after(actor: Actor) -> None:
            if actor.error is not None:
                return
            told = self.acknowledged.get(task_id)
            first = told is None or chosen.kind == "request"
            self.require(first, f"{task_id} was created twice")
            row = dynamodb.item(TABLE, task_id)
            if row is not None and task_of(row).input is not None:
                of = self._arguments_of(task_id, str(task_of(row).input))["call"]
                same = of == made["arguments"]["call"]
                self.require(same, f"call {made['arguments']['call']} got the task of call {of}")
            self._acknowledge(actor.result, None)

        name = f"create by {chosen.who} as {chosen.kind} {chosen.id}"
        self.run(name, self._creating(call, made), plan, as_=chosen.who, after=after)

    def _new_call(
        self, script: list[dict[str, Any]], entry: ToolEntry, can: frozenset[Kind], data: str
    ) -> dict[str, Any]:
        self._numbers += 1
        arguments = {self.script: script, "call": self._numbers, "data": data}
        self._called[self._numbers] = arguments
        return {"arguments": arguments, "entry": entry, "can": can}

    def _creating(self, call: Call, made: dict[str, Any]) -> Callable[[], Task]:
        def work() -> Task:
            own = {"schema": 2, "answers": {}, "client_can": [], "trace": {}}
            given = {**own, "arguments": made["arguments"]}
            return self.creation.create(call, made["entry"], made["arguments"], given)

        return work

    def delete(self, who: str, chosen: Chosen, plan: Plan = CALM) -> None:
        """`tasks/delete` of SEP-1686."""
        task_id = self.ids.derive(chosen.kind, who, chosen.id)

        def after(actor: Actor) -> None:
            row = dynamodb.item(TABLE, task_id)
            if actor.error is None and row is not None:
                gone = task_of(row).expired(self.ms + SKEW_MS)
                self.require(gone, f"{task_id} was deleted, and is there")

        self._method("tasks/delete", who, {"taskId": chosen.id}, plan, after)

    def get(self, who: str, task_id: str, plan: Plan = CALM) -> Any:
        """`tasks/get`."""
        over = task_id in self._ends

        def after(actor: Actor) -> None:
            if not self._known(actor, who, task_id):
                return
            view = self._seen(actor.result.result)
            if view["status"] in ("completed", "failed", "cancelled"):
                before = self._ends.setdefault(task_id, view)
                self.require(before == view, f"{task_id} ended as {before}, and now as {view}")
            else:
                self.require(not over, f"{task_id} was over, and is not any more")

        return self._method("tasks/get", who, {"taskId": task_id}, plan, after)

    def _seen(self, view: dict[str, Any]) -> dict[str, Any]:
        """What clients see of a task, as far as it stays the same when the task is over."""
        return view

    def update(self, who: str, task_id: str, keys: list[str], plan: Plan = CALM) -> None:
        """`tasks/update`, with an answer that nobody has given before."""
        answers = {}
        for key in keys:
            self._numbers += 1
            answers[key] = {"action": "accept", "content": {"n": self._numbers}}
            if who == self.owner(task_id):
                self._sent[key].append(answers[key])

        def after(actor: Actor) -> None:
            row = dynamodb.item(TABLE, task_id)
            if self._known(actor, who, task_id) and row is not None:
                left = task_of(row).outstanding.keys() & keys
                self.require(not left, f"an answer to {left} was acknowledged, and is not there")

        self._method(
            "tasks/update", who, {"taskId": task_id, "inputResponses": answers}, plan, after
        )

    def cancel(self, who: str, task_id: str, plan: Plan = CALM) -> None:
        """`tasks/cancel`."""

        def after(actor: Actor) -> None:
            row = dynamodb.item(TABLE, task_id)
            if self._known(actor, who, task_id) and row is not None:
                over = task_of(row).status.terminal
                self.require(over, f"{task_id}: its cancellation was acknowledged; it goes on")

        self._method("tasks/cancel", who, {"taskId": task_id}, plan, after)

    def _method(
        self, name: str, who: str, params: dict[str, Any], plan: Plan, after: Callable[..., None]
    ) -> Any:
        call, method = self._call(name, who, params), self.methods[name]
        return self.run(f"{name} by {who}", lambda: method(call), plan, as_=who, after=after)

    def _call(
        self,
        method: str,
        who: str,
        params: dict[str, Any],
        can: frozenset[Kind] = frozenset(),
        key: str | None = None,
    ) -> Call:
        none: Any = None
        return Call(method, params, who, none, none, 1, can, True, idempotency_key=key)

    def _known(self, actor: Actor, who: str, task_id: str) -> bool:
        """Whether the actor was told of the task; a stranger never is."""
        if who != self.owner(task_id):
            refused = (
                isinstance(actor.error, ProtocolError) and actor.error.message == TASK_NOT_FOUND
            )
            failed = bool(actor.hit)
            self.require(refused or failed, f"a stranger was told of {task_id}: {actor.result}")
            return False
        told = self.acknowledged.get(task_id)
        if isinstance(actor.error, ProtocolError) and actor.error.message == TASK_NOT_FOUND:
            there = told is None or self.ms + actor.plan.skew_ms >= told.expires_at
            self.require(there, f"{task_id} is lost")
        return actor.error is None

    def wait_for(self, task_id: str) -> Waiter:
        """A client begins to wait on its call's event stream."""
        self.waiters.append(self.streams.wait(self.owner(task_id), task_id, f"{self.ms}"))
        self.waiters[-1].heard_at = self.ms
        return self.waiters[-1]

    def follow(
        self, waiter: Waiter, plan: Plan = CALM, *, streamed: bool = False, lost: int = 0
    ) -> None:
        """The client resumes the stream, and does not get the last `lost` messages."""
        refused = self.streams.is_refused(waiter, self.ms)
        self.require(refused, "somebody else may resume the stream")
        connection, revision = Connection(), self._revision(waiter.task_id)
        waiter.connected = True

        def after(actor: Actor) -> None:
            waiter.connected = False
            if isinstance(actor.error, UnknownEventId):
                expired = self.ms >= waiter.heard_at + LIFETIME_MS - 2 * SKEW_MS
                self.require(expired, "an event id was not known")
                waiter.response = actor.error
                return
            died = actor.error is not None
            waiter.errors_lost += died and streamed  # it may have been about to send one
            got = 0 if died and not streamed else len(connection.events) + (not died) - lost
            if got > 0:
                waiter.heard_at = self.ms
            received(waiter, connection, got, self.require)
            if waiter.response is not None:
                self._check_response(waiter, waiter.response)
            elif not (lost or actor.hit) and revision == self._revision(waiter.task_id):
                self._check_asked(waiter)

        self.run(
            f"follow {waiter.task_id} by {waiter.who}",
            lambda: self.streams.connect(waiter, connection, streamed=streamed),
            plan,
            as_=waiter.who,
            after=after,
        )

    def _revision(self, task_id: str) -> int | None:
        row = dynamodb.item(TABLE, task_id)
        return None if row is None else task_of(row).revision

    def _check_response(self, waiter: Waiter, response: Outcome | ProtocolError) -> None:
        """The response is the task's end."""
        row = dynamodb.item(TABLE, waiter.task_id)
        task = None if row is None else task_of(row)
        if task is None or task.expired(self.ms + SKEW_MS):
            return
        if waiter.errors_lost >= MAX_ERROR_RESPONSES:
            return  # an error is sent so often, and no more
        status, end = task.status, f"{waiter.task_id} has ended as {task.status}"
        if isinstance(response, Complete):
            result = self._links.with_result(task, self.ms).result
            same = status is Status.COMPLETED and response.result == result
            self.require(same, f"{end}, and the response is {response.result}")
        else:
            error = task.error or {"message": "The task was cancelled"}
            message = getattr(response, "message", "")
            same = status in (Status.FAILED, Status.CANCELLED) and message == error["message"]
            self.require(same, f"{end}, and the response is {message}")

    def _check_asked(self, waiter: Waiter) -> None:
        row = dynamodb.item(TABLE, waiter.task_id)
        if row is not None and not task_of(row).expired(self.ms - SKEW_MS):
            questions = {f"{waiter.task_id}.{key}" for key in task_of(row).outstanding}
            missing = questions - waiter.asked
            self.require(not missing, f"the stream paused without the questions {missing}")

    def owner(self, task_id: str) -> str:
        """Whose task it is."""
        return self._owners.get(task_id, OWNER)

    def _acknowledge(self, task: Task, key: str | None) -> None:
        for other in self.acknowledged.values() if key else ():
            live = other.key == key and other.expires_at > self.ms
            same = other.task_id == task.task_id
            self.require(same or not live, f"key {key}: {task.task_id} and {other.task_id}")
        self.require(dynamodb.item(TABLE, task.task_id) is not None, f"no row: {task.task_id}")
        self.acknowledged.setdefault(task.task_id, Acknowledged(task.task_id, task.expires_at, key))

    # functions that AWS invokes

    def sweep(self, plan: Plan = CALM) -> None:
        """The schedule."""
        self.run("sweep", lambda: sweep(self.rows, self.repair, now_ms, 1e9), plan)

    def hear(self, event: dict[str, Any], plan: Plan = CALM) -> None:
        """An execution's status event."""

        def work() -> Any:
            return finish(event, self.ends, now_ms())

        def after(actor: Actor) -> None:
            if plan == CALM and actor.error is None:
                self._heard(event)

        self.run("finish", work, plan, after=after)

    def _heard(self, event: dict[str, Any]) -> None:
        """What holds once an execution's end was heard of, and nothing was in the way."""

    def _works(self, task: Task) -> bool:
        return not task.status.terminal and not task.expired(self.ms + SKEW_MS)

    def due_in_ms(self) -> int:
        """How long until the sweeper finds something."""
        due = [
            int(row["reconcileAt"]["N"]) for row in dynamodb.items(TABLE) if "reconcileAt" in row
        ]
        return max(0, min(due, default=self.ms) - self.ms)

    def expires_in_ms(self) -> int:
        """How long until the next task expires."""
        ends = [task.expires_at for task in self._live() if task.expires_at > self.ms]
        return min(ends, default=self.ms) - self.ms

    def delete_expired(self) -> None:
        """DynamoDB's time to live: a row that is over goes, long after its time."""
        for row in dynamodb.items(TABLE):
            if int(row["expiresAt"]["N"]) * 1000 < self.ms and "reconcileAt" not in row:
                task_id = row["taskId"]["S"]
                self.deleted.add(task_id)
                dynamodb.remove(TABLE, task_id)
                if task_id in self.chosen:  # it may be used again
                    self.acknowledged.pop(task_id, None)
                    self._ends.pop(task_id, None)

    # what must hold of every call to AWS

    def _rows(self, operation: str, arguments: dict[str, Any], real: Any) -> Any:
        if operation not in ("put_item", "update_item"):
            return real(**arguments)
        task_id = (arguments.get("Key") or arguments["Item"])["taskId"]["S"]
        before = dynamodb.item(TABLE, task_id)
        answer = real(**arguments)
        after = dynamodb.item(TABLE, task_id)
        self._written(task_id, before, after)
        if before and after and before.get("reconcileAt") != after.get("reconcileAt"):
            self._claimed.add((self.stage.actor, task_id))
        return answer

    def _written(self, task_id: str, before: Item | None, after: Item | None) -> None:
        def require(holds: bool, message: str) -> None:
            if not holds:
                by = self.stage.actor.name if self.stage.actor else "?"
                raise Violation(f"{task_id}, written by {by}: {message}")

        require(after is not None, "removed")
        assert after is not None
        require("schemaVersion" in after, f"no task: {after}")
        new = task_of(after)
        who = self._as.get(self.stage.actor) if self.stage.actor else None
        require(who in ("", None, new.principal), f"by {who}")
        self._check_index(new, after, require)
        asks = new.status is Status.INPUT_REQUIRED
        require(asks == bool(new.outstanding), f"{new.status} with {list(new.outstanding)}")
        old = None if before is None else task_of(before)
        if old is None:
            require(new.revision == 1, f"its first revision is {new.revision}")
            self._owners[task_id] = new.principal
            return
        assert before is not None
        if old.status.terminal:
            may_change = self.may_change
            if self.stage.actor and self.stage.actor.name.startswith("tasks/delete"):
                may_change |= DELETED
                self._forget(task_id, new.expires_at)
            self._check_after_end(old, new, require)
            kept = [
                {n: v for n, v in row.items() if n not in may_change} for row in (before, after)
            ]
            require(kept[0] == kept[1], f"it was over: {kept[0]} became {kept[1]}")
            return
        require(new.created_at == old.created_at, "created at another time")
        require(new.status in TRANSITIONS[old.status], f"from {old.status} to {new.status}")
        require(new.revision >= old.revision, "its revision went back")
        require(new.last_updated_at >= old.last_updated_at, "its last update went back")
        seen = [detailed_task(task, self.ms) for task in (old, new)]
        require(seen[0] == seen[1] or new.revision > old.revision, "changed without a revision")
        self._check_asks(old, new, require)
        if new.status.terminal:
            self._check_end(old, new, require)

    def _forget(self, task_id: str, expires_at: int) -> None:
        """A client has deleted its task."""
        if (told := self.acknowledged.get(task_id)) is not None:
            told.expires_at = min(told.expires_at, expires_at)

    def _check_after_end(self, old: Task, new: Task, require: Callable[..., None]) -> None:
        """What holds of a write to a task that is over."""

    def _executions_of(self, task: Task) -> list[Execution]:
        """The executions of a task, without those of an earlier one with its id."""
        found = self._named(task.task_id)
        return [e for e in found if e.started_at > task.created_at - HOUR]

    def _named(self, task_id: str) -> list[Any]:
        """The executions of all tasks with an id: those that go on with it, one after the other."""
        return self.step_functions.of(task_id)

    def _at_work(self, task_id: str) -> list[Any]:
        """The executions of a task that run, whatever they are for."""
        return [e for e in self.step_functions.of(task_id) if e.running]

    def _check_index(self, task: Task, row: Item, require: Callable[[bool, str], None]) -> None:
        due = [name in row for name in DUE]
        require(due[0] == due[1], "half in the index")
        if not due[0]:
            require(task.status.terminal, "not in the index, though it is not over")
            running = self._at_work(task.task_id)
            require(not running, "not in the index, though its execution runs")

    def _check_asks(self, old: Task, new: Task, require: Callable[[bool, str], None]) -> None:
        for ask_id, asked in new.asks.items():
            before = old.asks.get(ask_id)
            if before is None:
                again = [key for key in asked.questions if key in self.questions[new.task_id]]
                require(not again, f"asks {again} once more")
                self.questions[new.task_id] += list(asked.questions)
                token = self.step_functions.tokens[asked.token]
                asking = task_of_execution(token.execution.name)[0]
                require(asking == new.task_id, "asks with another task's token")
                require(not asked.answers, "asks what is answered")
            for key, answer in asked.answers.items():
                known = before is not None and key in before.answers
                if known:
                    assert before is not None
                    require(answer == before.answers[key], f"the answer to {key} changed")
                else:
                    require(answer in self._sent[key], f"{answer} was not given to {key}")
                    self._accepted[asked.token][asked.names[key]] = answer
        for ask_id, asked in old.asks.items():
            if ask_id not in new.asks and not new.status.terminal:
                token = self.step_functions.tokens[asked.token]
                waits = token.waits is Waits.WAITING
                require(not waits, "an ask was closed, and its state still waits")

    def _check_end(self, old: Task, new: Task, require: Callable[[bool, str], None]) -> None:
        if new.status is Status.COMPLETED:
            ended = [e for e in self._executions_of(new) if not e.running]
            require(bool(ended), "completed, though its execution did not end")
            error = ended[-1].error
            require(error in ("", "ToolError"), f"completed, though it ended with {error}")
            stored = new.result_payload
            result = json.loads(self._whole.get(stored)) if stored else new.result
            if not error:
                require(result == json.loads(ended[-1].output or "null"), "another result")
        if new.status is Status.FAILED:
            require(self._failed_with_reason(new), f"failed for no reason: {new.error}")

    def _failed_with_reason(self, task: Task) -> bool:
        executions, error = self._executions_of(task), task.error or {}
        if task.status_message == EXPIRED:
            return task.expires_at <= self.ms
        if error.get("code") == ErrorCode.MISSING_REQUIRED_CLIENT_CAPABILITY:
            return not task.accepts
        if (task.status_message or "").startswith((NOT_STARTED, START_REFUSED)):
            return self.stage.refused
        if task.status_message == EXECUTION_NOT_FOUND:
            return self.step_functions.find(task.state_machine_arn, task.task_id) is None
        if task.status_message == ID_USED_BEFORE:
            return executions != self._named(task.task_id)
        return any(e.status not in ("RUNNING", "SUCCEEDED") for e in executions)

    def _states(self, operation: str, arguments: dict[str, Any], real: Any) -> Any:
        self._check_claim(arguments)
        answer = real(**arguments)
        if operation == "start_execution":
            self._check_start(arguments["name"])
        if operation == "send_task_success":
            token = self.step_functions.tokens[arguments["taskToken"]]
            (output,) = token.outputs
            if output.keys() != token.names or output != self._accepted[token.value]:
                raise Violation(f"{token.execution.name} got {output} for its questions")
        return answer

    @abstractmethod
    def _check_start(self, name: str) -> None:
        """What holds of an execution that was started a moment ago."""

    def _check_claim(self, arguments: dict[str, Any]) -> None:
        """Of those who find a task due, one looks at it."""
        actor = self.stage.actor
        if actor is None or not actor.name.startswith(("sweep", "tasks/get", "follow")):
            return
        token = self.step_functions.tokens.get(arguments.get("taskToken", ""))
        arn = arguments.get("executionArn") or arguments.get("name") or ""
        name = token.execution.name if token else arn.rpartition(":")[2]
        task_id = task_of_execution(name)[0]
        if (actor, task_id) not in self._claimed:
            raise Violation(f"{actor.name} looked at {task_id}, which is another's to look at")

    # the end

    def settle(self, answering: bool) -> None:
        """Faults stop, and no event arrives. Every task ends, and so does its execution.

        Clients answer what they are asked, or never again; then time ends their tasks.
        """
        for actor in list(self.suspended):
            self.go_on(actor, finish=True)
        self.arrive()
        self.step_functions.lag_ms = 0
        self.advance(2 * SKEW_MS)
        tasks = self._live()
        in_time = [t.task_id for t in tasks if self.ms + 15 * MINUTE < t.expires_at]
        self._look_twice(answering)
        for task in self._live():
            if not task.expired(self.ms):
                self._check_asks_settled(task)
        for _ in range(LOOKS):
            self._work_off(answering)
            if not any("reconcileAt" in row for row in dynamodb.items(TABLE)):
                break
            ends = [task.expires_at + 3 * MINUTE for task in self._live()]
            self.ms = self.ms if answering else max(self.ms, *ends, 0)
            self.advance(max(MINUTE, self.due_in_ms()))
            self.sweep()
        self.check_settled()
        for waiter in self.waiters:
            for _ in range(3):
                if waiter.response is None:
                    self.follow(waiter)
            self.require(waiter.response is not None, f"no response for {waiter.task_id}")
        for task_id in in_time if answering else ():
            row = dynamodb.item(TABLE, task_id)
            expired = row is not None and task_of(row).status_message == EXPIRED
            self.require(not expired, f"{task_id} ran out of time, with nothing in its way")

    def _live(self) -> list[Task]:
        tasks = [task_of(row) for row in dynamodb.items(TABLE)]
        return [task for task in tasks if not task.status.terminal]

    def _look_twice(self, answering: bool) -> None:
        """Let the sweeper have two looks at every task."""
        looks: Counter[str] = Counter()
        for _ in range(5 * LOOKS):  # an old task is looked at each hour, a new one each minute
            self._work_off(answering)
            due = {task.task_id: task.reconcile_at for task in self._live()}
            if all(looks[task_id] >= 2 for task_id in due):
                return
            self.advance(max(MINUTE, self.due_in_ms()))
            self.sweep()
            looks.update(t.task_id for t in self._live() if t.reconcile_at != due.get(t.task_id))

    def _check_asks_settled(self, task: Task) -> None:
        for asked in task.asks.values():
            waits = self.step_functions.tokens[asked.token].waits is Waits.WAITING
            self.require(bool(asked.outstanding), f"{task.task_id}: an answer stays undelivered")
            self.require(waits, f"{task.task_id} asks what nothing waits for")

    def check_settled(self) -> None:
        """What holds once nothing fails any more, and the sweeper had its time."""
        rows = {row["taskId"]["S"]: row for row in dynamodb.items(TABLE)}
        for task_id in self.acknowledged:
            self.require(task_id in rows or task_id in self.deleted, f"{task_id} is lost")
        for task_id, row in rows.items():
            status = task_of(row).status
            self.require(status.terminal, f"{task_id} is {status}, and nothing happens any more")
            self.require("reconcileAt" not in row, f"{task_id} is over, and looked after for ever")
        for execution in self.step_functions.executions:
            self.require(not execution.running, f"{execution.name} runs on; its task is over")
        for token in self.step_functions.tokens.values():
            waits = token.waits is Waits.WAITING
            self.require(not waits, f"an answer to {token.execution.name} was not delivered")


class World(TaskWorld[StepFunctions]):
    """The world of tasks whose executions are scripts."""

    def __init__(self, statistics: Counter[str]) -> None:
        super().__init__(statistics)
        self.stale: list[Invocation] = []
        """Functions that may be invoked once more, by a late second delivery."""

    def _account(self) -> StepFunctions:
        return StepFunctions(lambda: self.ms, self._arguments_of)

    # what must hold

    def _check_start(self, name: str) -> None:
        """A task has one execution, and a call one task; a key is free when its task expired."""
        executions = self.step_functions.of(name)
        execution = executions[-1]
        if len(executions) > 1 and execution.name not in self.chosen:
            raise Violation(f"{execution.name} has {len(executions)} executions")
        for other in self.step_functions.executions:
            same = other.arguments["call"] == execution.arguments["call"]
            row = dynamodb.item(TABLE, other.name)
            live = row is not None and not task_of(row).expired(self.ms)
            live = live and row is not None and other in self._executions_of(task_of(row))
            if same and live and other is not execution:
                raise Violation(f"{other.name} and {execution.name} are tasks of one call")

    # what goes on

    def invoke(self, invocation: Invocation, plan: Plan = CALM) -> None:
        """A state's function."""
        event = invocation.event

        def work() -> None:
            match invocation.function:
                case "report":
                    status_reporter(self.rows, event["task"], now_ms)(event["message"], None)
                case "explain":
                    tool_error_reporter(self.rows, event["task"], now_ms)(event["message"])
                case "ask":
                    ask(event, self.rows, self.executions, now_ms())

        def after(actor: Actor) -> None:
            if actor.error is None:
                self.step_functions.returned(invocation)
            else:
                cancelled = isinstance(actor.error, TaskCancelled)
                row = dynamodb.item(TABLE, event["task"])
                over = row is None or not self._works(task_of(row))
                self.require(over or not cancelled, "a step was told that its task is over")
                self.step_functions.failed(invocation)

        self.run(invocation.function, work, plan, after=after)

    def _work_off(self, answering: bool) -> None:
        """What executions do when nothing is in their way, and a client that answers, or none."""
        for execution in self.step_functions.executions:
            while execution.running:
                if execution.invocations:
                    for invocation in execution.invocations:
                        self.invoke(invocation)
                elif execution.ready:
                    self.step_functions.enter(execution)
                else:
                    row = dynamodb.item(TABLE, execution.name)
                    task = None if row is None else task_of(row)
                    asks = task is not None and task.outstanding and not task.expired(self.ms)
                    if task is None or not asks or not answering:
                        break
                    owner = self.owner(execution.name)
                    self.update(owner, execution.name, list(task.outstanding))

    def come_late(self) -> None:
        """Whatever is left arrives after all; it changes nothing."""
        for event in self.step_functions.events:
            self.hear(event)
        for invocation in self.stale:
            self.invoke(invocation)
        for task_id, keys in self.questions.items():
            self.update(self.owner(task_id), task_id, keys)
            self.get(self.owner(task_id), task_id)
        self.advance(4 * MINUTE)
        self.sweep()
        self.check_settled()


@contextmanager
def patched() -> Iterator[pytest.MonkeyPatch]:
    """Time is a world's, pools have no threads of their own, and little is large."""
    with clock_of_histories() as patch:
        patch.setattr(
            "mcp_tasks.server.methods.task_creation.new_task_id",
            lambda cell: cast(TaskWorld[Any], current()).new_task_id(cell),
        )
        patch.setattr("mcp_tasks.tasks.reconcile_schedule.SHARDS", 1)
        patch.setattr("mcp_tasks.workflows.sweep.SHARDS", 1)
        patch.setattr("mcp_tasks.workflows.sweep.ThreadPoolExecutor", Inline)
        patch.setattr("concurrent.futures.ThreadPoolExecutor", Inline)
        patch.setattr("mcp_tasks.workflows.execution_input.MAX_INLINE_INPUT_BYTES", ROOM)
        patch.setattr("mcp_tasks.workflows.end_task.MAX_ROW_RESULT_BYTES", ROOM)
        patch.setattr("mcp_tasks.server.methods.task_stream.BUFFERED_MS", CONNECTION_MS)
        patch.setattr("mcp_tasks.server.methods.stream_connection.BUFFERED_MS", CONNECTION_MS)
        yield patch


def new_world(statistics: Counter[str]) -> World:
    """An empty world, whose clock is the one that counts from now on."""
    world = World(statistics)
    begin(world)
    return world


def running(world: World) -> list[Script]:
    """The executions that run, the newest first."""
    return [e for e in reversed(world.step_functions.executions) if e.running]


def waiting(world: World) -> list[Token]:
    """The tokens that states wait on."""
    return [t for t in world.step_functions.tokens.values() if t.waits is Waits.WAITING]
