"""Creating tasks while AWS throttles: acknowledged tasks start, refused ones do not exist.

The place is taken, the row written, the execution started; each of them may be refused for the
moment, or have no answer. `early` and `late` faults are those before and after it took effect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest
from botocore.exceptions import ConnectTimeoutError, ReadTimeoutError

from mcp_tasks.limits import Limits
from mcp_tasks.server.methods.idempotent_creation import CLAIM_MS
from mcp_tasks.tasks.reconcile_schedule import FIRST_RECONCILE_MS
from mcp_tasks.tasks.task import now_ms
from mcp_tasks.workflows.executions import execution_arn
from mcp_tasks.workflows.sweep import sweep
from tests.unit.support.aws import CALLERS, TABLE, real, refusing
from tests.unit.support.listening import Time
from tests.unit.support.stack import PREFIX, Answer, Stack
from tests.unit.support.states import States

INTERNAL: Final = -32603
KEY: Final = {"Idempotency-Key": "k"}
KEYS: Final[dict[str, dict[str, Any]]] = {"no key": {}, "key": {"headers": KEY}}
SIGNED: Final[dict[str, Any]] = {"user_arn": "arn:aws:iam::1:user/alice"}

each_call = pytest.mark.parametrize("options", KEYS.values(), ids=KEYS)


class Busy:
    """A server, and an AWS that throttles."""

    def __init__(self, stack: Stack, time: Time) -> None:
        self.stack, self.time = stack, time
        self.states = States()
        self.states.serve(stack.calls)
        self.limit()

    def limit(self, **limits: int) -> None:
        """Serve with these limits."""
        self.stack.environment["LIMITS"] = Limits(**{"polls_per_second": 0, **limits}).to_json()
        self.stack.serve()
        self.stack.calls.forget()

    def call(self, **options: Any) -> Answer:
        """A call that becomes a task."""
        return self.stack.call("count", {"upto": 3}, **SIGNED, **options)

    @contextmanager
    def fault(
        self, operation: str, error: Callable[[], Any], *, table: str = "", late: bool = False
    ) -> Iterator[None]:
        """Let every such call to a table fail, before or after it takes effect."""
        before = self.stack.calls.instead.get(operation)

        def call(**arguments: Any) -> Any:
            concerned = arguments.get("TableName", "") == table
            if late or not concerned:
                (before or getattr(real("dynamodb"), operation))(**arguments)
            return error() if concerned else {}

        self.stack.calls.instead[operation] = call
        yield
        del self.stack.calls.instead[operation]
        if before:
            self.stack.calls.instead[operation] = before

    def sweep(self) -> dict[str, int]:
        """What a run of the sweeper finds, once a task that is new now is due."""
        self.time.now += FIRST_RECONCILE_MS
        deployment = self.stack.deployment
        return dict(sweep(deployment.task_table, deployment.reconciler, self.time.read, 60).counts)

    @property
    def executions(self) -> list[str]:
        return list(self.states.executions)

    def assert_nothing_left(self) -> None:
        """No row, no quota, no key, no execution; and nothing for the sweeper to find."""
        assert self.stack.rows == []
        items = real("dynamodb").scan(TableName=CALLERS)["Items"]
        assert not [item for item in items if item["pk"]["S"].startswith("key#")]
        assert not [item for item in items if item.get("open", {}).get("M")]
        assert self.executions == []
        assert self.sweep() == {}


@pytest.fixture
def busy(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> Busy:
    time = Time()
    time.rule(monkeypatch)
    return Busy(stack, time)


def raising(error: Exception) -> Callable[[], Any]:
    def fail() -> Any:
        raise error

    return fail


URL: Final = "https://service"
THROTTLED: Final = refusing("dynamodb", "ProvisionedThroughputExceededException")
PASSING: Final[dict[str, Callable[[], Any]]] = {
    "throttled": THROTTLED,
    "its own fault": refusing("dynamodb", "InternalServerError"),
    "unreachable": raising(ConnectTimeoutError(endpoint_url=URL)),
}

# Step Functions is busy

NO_START: Final[dict[str, tuple[Callable[[], Any], bool]]] = {
    "throttled": (refusing("stepfunctions", "ThrottlingException"), False),
    "too many executions": (refusing("stepfunctions", "ExecutionLimitExceeded"), False),
    "unreachable": (raising(ConnectTimeoutError(endpoint_url=URL)), False),
    "no answer": (raising(ReadTimeoutError(endpoint_url=URL)), True),
    "its own fault": (refusing("stepfunctions", "InternalServerError"), True),
}

each_no_start = pytest.mark.parametrize(("error", "late"), NO_START.values(), ids=NO_START)


@each_call
@each_no_start
def test_a_task_whose_start_is_throttled_is_acknowledged_and_started_by_the_sweeper(
    busy: Busy, error: Callable[[], Any], late: bool, options: dict[str, Any]
) -> None:
    """Once, whether the first start arrived or not."""
    with busy.fault("start_execution", error, late=late):
        created = busy.call(**options).result
    assert (created["resultType"], created["status"]) == ("task", "working")
    assert busy.sweep() in ({"started": 1}, {"running": 1})
    assert busy.executions == [execution_arn(f"{PREFIX}count", created["taskId"])]
    assert busy.stack.task(created["taskId"], **SIGNED)["status"] == "working"


@each_no_start
def test_a_task_whose_start_is_throttled_is_acknowledged_and_started_by_a_poll(
    busy: Busy, error: Callable[[], Any], late: bool
) -> None:
    with busy.fault("start_execution", error, late=late):
        task_id = busy.call().result["taskId"]
    busy.time.now += FIRST_RECONCILE_MS
    assert busy.stack.task(task_id, **SIGNED)["status"] == "working"
    assert busy.executions == [execution_arn(f"{PREFIX}count", task_id)]


def test_an_execution_that_ended_before_its_start_was_known_is_finished(busy: Busy) -> None:
    with busy.fault("start_execution", raising(ReadTimeoutError(endpoint_url=URL)), late=True):
        task_id = busy.call().result["taskId"]
    busy.states.end(execution_arn(f"{PREFIX}count", task_id), {"content": []})
    assert busy.sweep() == {"ended": 1}
    assert busy.stack.task(task_id, **SIGNED)["status"] == "completed"


# the row cannot be written


@each_call
@pytest.mark.parametrize("error", PASSING.values(), ids=PASSING)
def test_a_task_whose_row_cannot_be_written_is_refused_and_leaves_nothing(
    busy: Busy, error: Callable[[], Any], options: dict[str, Any]
) -> None:
    """RFC 9110, section 15.6.4: HTTP 503, and when to try again."""
    with busy.fault("put_item", error, table=TABLE):
        answer = busy.call(**options)
    assert (answer.status, answer.code) == (503, INTERNAL)
    assert answer.headers["Retry-After"] == "1"
    assert answer.error["data"] == {"retryAfterSeconds": 1}
    busy.assert_nothing_left()


@each_call
def test_a_call_that_was_refused_may_be_repeated_at_once(
    busy: Busy, options: dict[str, Any]
) -> None:
    """Its quota and its key are free."""
    busy.limit(max_open_tasks=1)
    with busy.fault("put_item", THROTTLED, table=TABLE):
        assert busy.call(**options).status == 503
    task_id = busy.call(**options).result["taskId"]
    assert busy.executions == [execution_arn(f"{PREFIX}count", task_id)]
    assert busy.time.waits == []


@each_call
@pytest.mark.parametrize(
    "error",
    [raising(ReadTimeoutError(endpoint_url=URL)), refusing("dynamodb", "InternalServerError")],
    ids=["no answer", "its own fault"],
)
def test_a_row_that_was_written_all_the_same_is_acknowledged(
    busy: Busy, error: Callable[[], Any], options: dict[str, Any]
) -> None:
    """It would run anyway; better that its client knows."""
    with busy.fault("put_item", error, table=TABLE, late=True):
        task_id = busy.call(**options).result["taskId"]
    (row,) = busy.stack.rows
    assert row["taskId"] == {"S": task_id}
    assert busy.executions == [execution_arn(f"{PREFIX}count", task_id)]
    if options:
        assert busy.call(**options).result["taskId"] == task_id


@pytest.mark.parametrize("late", [False, True], ids=["not written", "written"])
def test_a_row_that_may_be_written_keeps_its_key(busy: Busy, late: bool) -> None:
    """If it was written, it runs: a repeated call with the key gets that task, and never a second
    one."""
    lost = raising(ReadTimeoutError(endpoint_url=URL))
    with (
        busy.fault("put_item", lost, table=TABLE, late=late),
        busy.fault("get_item", lost, table=TABLE),
    ):
        answer = busy.call(headers=KEY)
    assert (answer.status, answer.code) == (503, INTERNAL)
    assert answer.headers["Retry-After"] == "1"
    assert busy.executions == []
    busy.time.now += CLAIM_MS + 1
    task_id = busy.call(headers=KEY).result["taskId"]
    assert [row["taskId"]["S"] for row in busy.stack.rows] == [task_id]
    assert busy.sweep().keys() <= {"running", "started"}
    assert busy.executions == [execution_arn(f"{PREFIX}count", task_id)]


def test_a_row_that_may_still_arrive_keeps_its_key(busy: Busy) -> None:
    """It is not there yet. Were its key free, the repeated call would make a second task."""
    lost = raising(ReadTimeoutError(endpoint_url=URL))
    with busy.fault("put_item", lost, table=TABLE):
        assert busy.call(headers=KEY).status == 503
    keys = real("dynamodb").scan(TableName=CALLERS)["Items"]
    assert [item for item in keys if "call" in item]


def test_a_row_that_may_be_written_keeps_its_quota(busy: Busy) -> None:
    """A caller that has a task which runs has one task fewer."""
    lost = raising(ReadTimeoutError(endpoint_url=URL))
    busy.limit(max_open_tasks=1)
    with (
        busy.fault("put_item", lost, table=TABLE, late=True),
        busy.fault("get_item", lost, table=TABLE),
    ):
        assert busy.call().status == 503
    assert busy.sweep() == {"started": 1}
    assert busy.call().status == 429


def test_a_row_that_was_refused_for_good_is_an_error_of_the_server(busy: Busy) -> None:
    """Not one that may be repeated: it would be refused again."""
    refuse = refusing("dynamodb", "ValidationException")
    with busy.fault("put_item", refuse, table=TABLE):
        answer = busy.call()
    assert (answer.status, answer.code) == (500, INTERNAL)
    assert "Retry-After" not in answer.headers
    assert busy.executions == []


# the callers' table is busy


@each_call
@pytest.mark.parametrize("error", PASSING.values(), ids=PASSING)
def test_a_task_that_gets_no_quota_is_refused_and_leaves_nothing(
    busy: Busy, error: Callable[[], Any], options: dict[str, Any]
) -> None:
    with busy.fault("update_item", error, table=CALLERS):
        answer = busy.call(**options)
    assert (answer.status, answer.code) == (503, INTERNAL)
    assert answer.headers["Retry-After"] == "1"
    busy.assert_nothing_left()


@each_call
def test_a_quota_that_was_acquired_without_an_answer_is_released(
    busy: Busy, options: dict[str, Any]
) -> None:
    """When the release fails, too, it is free again after a minute."""
    faults = iter([raising(ReadTimeoutError(endpoint_url=URL))])
    with busy.fault("update_item", lambda: next(faults, dict)(), table=CALLERS, late=True):
        answer = busy.call(**options)
    assert (answer.status, answer.code) == (503, INTERNAL)
    busy.assert_nothing_left()


def test_a_key_that_cannot_be_claimed_is_no_task(busy: Busy) -> None:
    with busy.fault("put_item", THROTTLED, table=CALLERS):
        answer = busy.call(headers=KEY)
    assert (answer.status, answer.code) == (503, INTERNAL)
    busy.assert_nothing_left()


def test_a_key_that_was_claimed_without_an_answer_is_free(busy: Busy) -> None:
    """Or else it is after a minute, when nobody has made its task."""
    lost = raising(ReadTimeoutError(endpoint_url=URL))
    with busy.fault("put_item", lost, table=CALLERS, late=True):
        answer = busy.call(headers=KEY)
    assert (answer.status, answer.code) == (503, INTERNAL)
    busy.assert_nothing_left()


def test_a_key_that_cannot_be_released_is_free_later(busy: Busy) -> None:
    """The call is refused all the same, and may be repeated; with its key, after a minute."""
    with (
        busy.fault("put_item", THROTTLED, table=TABLE),
        busy.fault("delete_item", THROTTLED, table=CALLERS),
    ):
        answer = busy.call(headers=KEY)
    assert (answer.status, answer.code) == (503, INTERNAL)
    assert busy.stack.rows == []
    busy.time.now += CLAIM_MS + 1
    task_id = busy.call(headers=KEY).result["taskId"]
    assert busy.executions == [execution_arn(f"{PREFIX}count", task_id)]


# every other request


@pytest.mark.parametrize("error", PASSING.values(), ids=PASSING)
@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
def test_a_request_to_a_busy_table_may_be_repeated(
    busy: Busy, method: str, error: Callable[[], Any]
) -> None:
    task_id = busy.call().result["taskId"]
    params: dict[str, Any] = {"taskId": task_id}
    if method == "tasks/update":
        params["inputResponses"] = {}
    operation = "update_item" if method == "tasks/cancel" else "get_item"
    with busy.fault(operation, error, table=TABLE):
        answer = busy.stack.post(method, params, **SIGNED)
    assert (answer.status, answer.code) == (503, INTERNAL)
    assert answer.headers["Retry-After"] == "1"
    assert busy.stack.post(method, params, **SIGNED).status == 200


def test_an_error_that_is_not_transient_is_not_called_busy(busy: Busy) -> None:
    """A client that repeats it for ever helps nobody."""
    task_id = busy.call().result["taskId"]
    with busy.fault("get_item", refusing("dynamodb", "AccessDeniedException"), table=TABLE):
        answer = busy.stack.post("tasks/get", {"taskId": task_id}, **SIGNED)
    assert (answer.status, answer.code) == (500, INTERNAL)
    assert "Retry-After" not in answer.headers


TRACE: Final = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1"


@pytest.mark.parametrize(("tracing", "kept"), [("on", {"xray": TRACE}), ("off", {}), (None, {})])
def test_a_task_keeps_the_trace_of_its_call_where_calls_are_traced(
    stack: Stack, monkeypatch: pytest.MonkeyPatch, tracing: str | None, kept: dict[str, str]
) -> None:
    """`publish` puts it into the task's events. Without tracing, a client's own header for it is
    none of ours."""
    monkeypatch.setenv("_X_AMZN_TRACE_ID", TRACE)
    if tracing is not None:
        stack.environment["TRACING"] = tracing
    stack.serve()
    task_id = stack.call("count", {"upto": 3}, **SIGNED).result["taskId"]
    row = stack.deployment.task_table.get(task_id, now_ms())
    assert row.client_context == kept
    assert "xray" not in (row.input or "")
