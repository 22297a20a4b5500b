"""Idempotency keys: a call that is repeated with one gives the same task (IETF draft, "The
Idempotency-Key HTTP Header Field").

Each condition of each write, and the test that fails without it (checked by removing the condition
from a copy of the library and running this file):

    find     ConsistentRead                    test_a_key_is_read_consistently
    find     not free                          test_a_key_is_good_until_its_task_has_expired
    claim    attribute_not_exists(pk)          test_a_key_stands_for_its_first_task
    claim    expiresAtMs <= expired            test_an_expired_key_is_free_though_it_is_still_there
    both     the same call                     test_a_key_does_not_stand_for_another_call
    release  taskId = task                     test_a_key_that_stands_for_a_newer_task_is_kept
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any, Final

import pytest
from botocore.exceptions import ClientError

from mcp_tasks.limits import Limits
from mcp_tasks.registry.catalogue import Catalogue
from mcp_tasks.server.methods import idempotent_creation
from mcp_tasks.server.methods.idempotent_creation import (
    CLAIM_MS,
    START_AGAIN_MS,
    WAITS_SECONDS,
    IdempotentCreation,
)
from mcp_tasks.tasks.idempotency import (
    FREE_AFTER_MS,
    ITEM_KEPT_MS,
    IdempotencyKeyReused,
    IdempotencyKeys,
    KeyedTask,
)
from mcp_tasks.tasks.questions import FormQuestion, open_ask
from mcp_tasks.tasks.reconcile_schedule import SILENCE_MARGIN_MS
from mcp_tasks.tasks.task_table import TaskTable
from tests.unit.support.aws import CALLERS, TABLE, Calls, create_callers, real, refusing
from tests.unit.support.example_task import HOUR, NOW
from tests.unit.support.listening import Time
from tests.unit.support.stack import WITH_TASKS, Answer, Stack

ALICE, BOB = "arn:aws:iam::1:user/alice", "arn:aws:iam::1:user/bob"
HEADER: Final = "Idempotency-Key"
META: Final = "mcp-tasks/idempotencyKey"
PARAMS, INTERNAL, MISMATCH = -32602, -32603, -32020
REFUSED: Final = (422, PARAMS)
WAITED_MS: Final = sum(round(pause * 1000) for pause in WAITS_SECONDS)
FREE: Final = NOW + HOUR + FREE_AFTER_MS
LAST_STEP_MS: Final = 60_000 + SILENCE_MARGIN_MS
"""How long a step of a cancelled task may run."""
THOUSAND: Final = {"seats": 1000}
LARGE_HALL: Final = {"action": "accept", "content": {"hall": "large"}}


# keys


@pytest.fixture
def keys(aws: Calls) -> IdempotencyKeys:
    return IdempotencyKeys(aws.client("dynamodb"), create_callers())


def wanted(n: int, call: str = "call", now: int = NOW) -> KeyedTask:
    """A task that a key is to stand for."""
    return KeyedTask(f"c1-{n:032x}", call, now, now + HOUR)


def items(kind: str = "key") -> list[dict[str, Any]]:
    """What the callers' table holds of a kind."""
    found: list[dict[str, Any]] = real("dynamodb").scan(TableName=CALLERS)["Items"]
    return [item for item in found if item["pk"]["S"].startswith(f"{kind}#")]


def test_a_key_stands_for_its_first_task(keys: IdempotencyKeys) -> None:
    assert keys.find("alice", "k", "call", NOW) is None
    assert keys.claim("alice", "k", wanted(1), NOW) == wanted(1)
    assert keys.claim("alice", "k", wanted(2), NOW + 1) == wanted(1)
    assert keys.find("alice", "k", "call", NOW + 1) == wanted(1)


def test_a_claim_that_is_repeated_is_one_claim(keys: IdempotencyKeys, aws: Calls) -> None:
    """botocore repeats a write whose answer was lost."""

    def twice(**arguments: Any) -> Any:
        real("dynamodb").put_item(**arguments)
        return real("dynamodb").put_item(**arguments)

    aws.instead["put_item"] = twice
    assert keys.claim("alice", "k", wanted(1), NOW) == wanted(1)


def test_a_key_does_not_stand_for_another_call(keys: IdempotencyKeys) -> None:
    keys.claim("alice", "k", wanted(1), NOW)
    before = items()
    with pytest.raises(IdempotencyKeyReused):
        keys.claim("alice", "k", wanted(2, "another call"), NOW)
    with pytest.raises(IdempotencyKeyReused):
        keys.find("alice", "k", "another call", NOW)
    assert items() == before


@pytest.mark.parametrize("other", [("bob", "k"), ("alice", "K"), ("alic", "ek")])
def test_keys_are_of_one_principal_each(keys: IdempotencyKeys, other: tuple[str, str]) -> None:
    keys.claim("alice", "k", wanted(1), NOW)
    assert keys.find(*other, "call", NOW) is None
    assert keys.claim(*other, wanted(2, "another call"), NOW).task_id == wanted(2).task_id


def test_a_key_is_read_consistently(keys: IdempotencyKeys, aws: Calls) -> None:
    """Race: the call that claimed it was answered a moment ago."""
    keys.find("alice", "k", "call", NOW)
    (read,) = aws.made
    assert read.operation == "get_item"
    assert read.arguments["ConsistentRead"] is True


def test_a_key_is_good_until_its_task_has_expired(keys: IdempotencyKeys) -> None:
    """By every clock."""
    keys.claim("alice", "k", wanted(1), NOW)
    assert keys.find("alice", "k", "call", FREE - 1) == wanted(1)
    assert keys.find("alice", "k", "another call", FREE) is None
    (item,) = items()
    assert item["expiresAt"] == {"N": str((NOW + HOUR + ITEM_KEPT_MS) // 1000)}


def test_an_expired_key_is_free_though_it_is_still_there(keys: IdempotencyKeys) -> None:
    """DynamoDB removes it hours or days late."""
    keys.claim("alice", "k", wanted(1), NOW)
    assert keys.claim("alice", "k", wanted(2), FREE - 1) == wanted(1)
    new = wanted(3, "another call", FREE)
    assert keys.claim("alice", "k", new, FREE) == new
    assert keys.find("alice", "k", "another call", FREE) == new


def test_a_key_that_is_released_is_free(keys: IdempotencyKeys) -> None:
    keys.claim("alice", "k", wanted(1), NOW)
    keys.release("alice", "k", wanted(1).task_id)
    assert items() == []
    keys.release("alice", "k", wanted(1).task_id)
    assert items() == []
    assert keys.claim("alice", "k", wanted(2, "another call"), NOW) == wanted(2, "another call")


def test_a_key_that_stands_for_a_newer_task_is_kept(keys: IdempotencyKeys) -> None:
    """It expired before it was released, and was claimed again."""
    keys.claim("alice", "k", wanted(1), NOW)
    keys.claim("alice", "k", wanted(2, now=FREE), FREE)
    keys.release("alice", "k", wanted(1).task_id)
    assert keys.find("alice", "k", "call", FREE) == wanted(2, now=FREE)


@pytest.mark.parametrize("operation", ["put_item", "delete_item", "get_item"])
def test_an_error_of_dynamodb_is_not_taken_for_a_refusal(
    keys: IdempotencyKeys, aws: Calls, operation: str
) -> None:
    attempts: dict[str, Callable[[], object]] = {
        "put_item": lambda: keys.claim("alice", "k", wanted(1), NOW),
        "delete_item": lambda: keys.release("alice", "k", wanted(1).task_id),
        "get_item": lambda: keys.find("alice", "k", "call", NOW),
    }
    aws.instead[operation] = refusing("dynamodb", "InternalServerError")
    with pytest.raises(ClientError, match="InternalServerError"):
        attempts[operation]()


def test_a_key_is_kept_as_a_hash(keys: IdempotencyKeys) -> None:
    """It may be longer than DynamoDB's, and is nobody's business."""
    keys.claim("alice" * 1000, "private key", wanted(1), NOW)
    (item,) = items()
    assert len(item["pk"]["S"]) == len("key#") + 64
    assert "private" not in str(item)
    assert "alice" not in str(item)


# calls with keys


@pytest.fixture
def time(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> Time:
    """The server's clock, which its waits move."""
    clock = Time()
    clock.rule(monkeypatch)
    monkeypatch.setattr(
        "mcp_tasks.server.server.IdempotentCreation", partial(IdempotentCreation, wait=clock.wait)
    )
    stack.serve()
    return clock


def book(stack: Stack, key: str | None = "k", seats: int = 2, **options: Any) -> Answer:
    """Call a tool that runs as a task; it asks first for more than ten seats."""
    return stack.call("book", {"seats": seats}, headers={HEADER: key}, **options)


def booked(stack: Stack, key: str | None = "k", seats: int = 2, **options: Any) -> str:
    """The id of the task that a call gives."""
    result = book(stack, key, seats, **options).result
    assert result["resultType"] == "task", result
    task_id: str = result["taskId"]
    return task_id


def count_to(stack: Stack, upto: int = 3, key: str | None = "k", **options: Any) -> str:
    """The same for a tool that does not ask first."""
    return stack.created("count", {"upto": upto}, headers={HEADER: key}, **options)


def starts(stack: Stack) -> list[str]:
    """The names of the executions that were started, in the order of the calls."""
    return [
        call.arguments["name"] for call in stack.calls.made if call.operation == "start_execution"
    ]


def row_ids(stack: Stack) -> list[str]:
    return [row["taskId"]["S"] for row in stack.rows]


@pytest.mark.parametrize("make", [count_to, booked], ids=["count", "asks first"])
def test_a_call_that_is_repeated_gives_the_same_task(
    stack: Stack, make: Callable[[Stack], str]
) -> None:
    task_id = make(stack)
    stack.serve()
    assert {make(stack) for _ in range(3)} == {task_id}
    assert row_ids(stack) == [task_id]
    assert starts(stack) == [task_id]


@pytest.mark.parametrize("make", [count_to, booked], ids=["count", "asks first"])
def test_calls_without_a_key_are_calls_of_their_own(stack: Stack, make: Callable[..., str]) -> None:
    tasks = {make(stack, key=None), make(stack, key=None), make(stack)}
    assert len(tasks) == 3
    assert len(items()) == 1


def test_each_key_is_a_task(stack: Stack) -> None:
    assert count_to(stack, key="a") != count_to(stack, key="b")


def test_the_order_of_arguments_makes_no_other_call(stack: Stack) -> None:
    arguments = {"upto": 3, "ask": False}
    other_way = dict(reversed(arguments.items()))
    key = {HEADER: "k"}
    assert stack.created("count", arguments, headers=key) == stack.created(
        "count", other_way, headers=key
    )


@pytest.mark.parametrize("first", [count_to, booked], ids=["count", "asks first"])
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("count", {"upto": 4}),
        ("count", {"upto": 3, "ask": False}),
        ("book", {"seats": 3}),
        ("wait", {}),
        ("anything", {"upto": 3}),
        ("anything", {"seats": 2}),
    ],
)
def test_a_key_for_another_call_is_refused(
    stack: Stack, first: Callable[[Stack], str], tool: str, arguments: dict[str, Any]
) -> None:
    """The draft, section 2.7: 422."""
    task_id = first(stack)
    answer = stack.call(tool, arguments, headers={HEADER: "k"})
    assert (answer.status, answer.code) == REFUSED
    assert "idempotency key" in answer.error["message"]
    assert row_ids(stack) == starts(stack) == [task_id]
    assert first(stack) == task_id


def test_another_principals_key_is_another_key(stack: Stack) -> None:
    """Also with other arguments: nobody learns which keys others use."""
    alices = count_to(stack, user_arn=ALICE)
    bobs = count_to(stack, 4, user_arn=BOB)
    assert alices != bobs
    assert count_to(stack, user_arn=ALICE) == alices
    assert {row["principal"]["S"] for row in stack.rows} == {ALICE, BOB}


def test_a_key_never_gives_somebody_elses_task(stack: Stack, time: Time) -> None:
    """Not even when the table says so."""
    count_to(stack, user_arn=ALICE)
    bobs = count_to(stack, user_arn=BOB, key="another")
    for item in items():
        real("dynamodb").put_item(TableName=CALLERS, Item={**item, "taskId": {"S": bobs}})
    answer = stack.call("count", {"upto": 3}, headers={HEADER: "k"}, user_arn=ALICE)
    assert (answer.status, answer.code) == (409, INTERNAL)
    assert bobs not in json.dumps(answer.message)


# where a key is


WAYS: Final[dict[str, dict[str, Any]]] = {
    "header": {"headers": {HEADER: "k"}},
    "header in lower case": {"headers": {HEADER.lower(): "k"}},
    "header with space around it": {"headers": {HEADER: " k\t"}},
    "_meta": {"_meta": {META: "k"}},
    "both": {"headers": {HEADER: "k"}, "_meta": {META: "k"}},
    "header twice": {"headers": {HEADER: ["k", "k"]}},
}


def send(stack: Stack, headers: Any = None, _meta: Any = None) -> Answer:
    params = {"name": "count", "arguments": {"upto": 3}, "_meta": _meta or {}}
    return stack.post("tools/call", params, headers=headers)


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_key_is_a_header_or_in_meta(stack: Stack, way: dict[str, Any]) -> None:
    task_id = count_to(stack)
    assert send(stack, **way).result["taskId"] == task_id


NO_TEXT: Final[list[Any]] = [None, 5, True, ["k"], {}]
BAD: Final[dict[str, dict[str, Any]]] = {
    "both, and they differ": {"headers": {HEADER: "k"}, "_meta": {META: "l"}},
    "two headers that differ": {"headers": {HEADER: ["k", "l"]}},
    "three headers, the last differs": {"headers": {HEADER: ["k", "k", "l"]}},
    "empty header": {"headers": {HEADER: ""}},
    "header of spaces": {"headers": {HEADER: " \t"}},
    "too long a header": {"headers": {HEADER: "k" * 256}},
    "empty _meta": {"_meta": {META: ""}},
    "too long in _meta": {"_meta": {META: "ä" * 256}},
    **{f"{value!r} in _meta": {"_meta": {META: value}} for value in NO_TEXT},
    "a good header and null in _meta": {"headers": {HEADER: "k"}, "_meta": {META: None}},
}


@pytest.mark.parametrize("way", BAD.values(), ids=BAD)
def test_a_key_that_is_none_is_refused(stack: Stack, way: dict[str, Any]) -> None:
    answer = send(stack, **way)
    assert (answer.status, answer.code) == (400, PARAMS)
    assert HEADER in answer.error["message"]
    assert stack.calls.made == []


@pytest.mark.parametrize("key", ["k" * 255, "ä" * 255, '"quoted"', "{}", "\x7f"])
def test_a_key_may_be_any_text(stack: Stack, key: str) -> None:
    first = send(stack, _meta={META: key}).result["taskId"]
    assert send(stack, headers={HEADER: key}).result["taskId"] == first


@pytest.mark.parametrize(
    ("tool", "arguments", "capabilities"),
    [
        ("echo", {"text": "a"}, WITH_TASKS),
        ("echo", {}, WITH_TASKS),
        ("count", {"upto": "many"}, WITH_TASKS),
        ("count", {"upto": 3}, {}),
        ("book", {"seats": 1000}, WITH_TASKS),
        ("nothing", {}, WITH_TASKS),
        ("wait", {}, {}),
    ],
    ids=str,
)
def test_the_key_of_a_call_that_becomes_no_task_stands_for_nothing(
    unlimited: Stack, tool: str, arguments: dict[str, Any], capabilities: dict[str, Any]
) -> None:
    unlimited.call(tool, arguments, headers={HEADER: "k"}, capabilities=capabilities)
    assert real("dynamodb").scan(TableName=CALLERS)["Items"] == []
    assert unlimited.rows == []
    count_to(unlimited, 5)


@pytest.mark.parametrize("method", ["tools/list", "server/discover", "tasks/get"])
def test_a_key_with_another_method_stands_for_nothing(stack: Stack, method: str) -> None:
    task_id = count_to(stack)
    before = items()
    assert "result" in stack.post(method, {"taskId": task_id}, headers={HEADER: "k"}).message
    assert items() == before


# what is asked first


def hall_chosen(stack: Stack, asked: Answer, **options: Any) -> Answer:
    params = {"name": "book", "arguments": THOUSAND}
    key: dict[str, Any] = {"headers": {HEADER: "k"}}
    return stack.repeat("tools/call", params, asked, {"hall": LARGE_HALL}, **key, **options)


def test_each_round_of_a_call_that_is_repeated_gives_the_task(stack: Stack) -> None:
    """The rounds are one call, with one key: whichever answer was lost, there is one task."""
    asked = book(stack, seats=1000)
    assert asked.result["resultType"] == "input_required"
    assert stack.rows == []
    task_id = hall_chosen(stack, asked).result["taskId"]
    assert hall_chosen(stack, asked).result["taskId"] == task_id
    assert booked(stack, seats=1000) == task_id
    assert row_ids(stack) == starts(stack) == [task_id]
    refused = book(stack, seats=1001)
    assert (refused.status, refused.code) == REFUSED


def test_a_round_that_is_repeated_before_there_is_a_task_asks_again(stack: Stack) -> None:
    for _ in range(2):
        assert book(stack, seats=1000).result["resultType"] == "input_required"


# what became of the task


def test_a_key_expires_after_its_task(stack: Stack, time: Time) -> None:
    """Then it is free for any call, though DynamoDB keeps both for days."""
    task_id = count_to(stack)
    time.now += HOUR - 1
    assert count_to(stack) == task_id
    time.now += 1 + FREE_AFTER_MS
    again = count_to(stack, 4)
    assert again != task_id
    assert count_to(stack, 4) == again
    assert len(stack.rows) == 2


@pytest.mark.parametrize("late_ms", [0, FREE_AFTER_MS - 1])
@pytest.mark.parametrize(("tool", "arguments"), [("count", {"upto": 3}), ("book", {"seats": 2})])
def test_a_task_that_has_just_expired_is_not_made_once_more(
    stack: Stack, time: Time, tool: str, arguments: dict[str, Any], late_ms: int
) -> None:
    """Race: whoever's clock is behind may be told of it at this moment, or start it."""
    task_id = stack.created(tool, arguments, headers={HEADER: "k"})
    time.now += stack.catalogue.tools[tool].ttl_ms + late_ms
    answer = stack.call(tool, arguments, headers={HEADER: "k"})
    assert (answer.status, answer.code) == (409, INTERNAL)
    assert answer.error["data"] == {"retryAfterSeconds": FREE_AFTER_MS // 1000}
    assert answer.headers["Retry-After"] == str(FREE_AFTER_MS // 1000)
    assert "expired" in answer.error["message"]
    assert row_ids(stack) == starts(stack) == [task_id]
    assert len(items()) == 1
    assert time.waits == []


ENDS: Final[dict[str, Callable[[TaskTable, str, int], object]]] = {
    "completed": lambda rows, task_id, now: rows.complete(task_id, {"content": []}, now),
    "failed": lambda rows, task_id, now: rows.fail(
        task_id, {"code": INTERNAL, "message": "broken"}, now
    ),
    "cancelled": lambda rows, task_id, now: rows.cancel(task_id, now, "anonymous"),
}


@pytest.mark.parametrize("make", [count_to, booked], ids=["count", "asks first"])
@pytest.mark.parametrize("status", ENDS)
def test_a_task_that_is_over_is_given_again_as_it_is(
    stack: Stack, time: Time, status: str, make: Callable[[Stack], str]
) -> None:
    """And it is not started again."""
    task_id = make(stack)
    ENDS[status](stack.deployment.task_table, task_id, time.now)
    before = stack.rows
    time.now += START_AGAIN_MS + 1
    assert make(stack) == task_id
    assert stack.rows == before
    assert starts(stack) == [task_id]


def test_a_task_that_was_heard_of_is_not_started_again(stack: Stack, time: Time) -> None:
    task_id = count_to(stack)
    stack.deployment.task_table.report(task_id, "half-way", time.now)
    time.now += START_AGAIN_MS + 1
    assert count_to(stack) == task_id
    assert starts(stack) == [task_id]


def test_a_task_older_than_step_functions_memory_is_not_started_again(
    stack: Stack, time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have run, and ended unheard: its name is free again, and the start would be another
    (API reference, StartExecution: 90 days)."""
    monkeypatch.setattr(idempotent_creation, "MAX_START_AGE_MS", HOUR // 2)
    task_id = count_to(stack)
    time.now += HOUR // 2
    assert count_to(stack) == task_id
    assert starts(stack) == [task_id, task_id]
    time.now += 1
    assert count_to(stack) == task_id
    assert starts(stack) == [task_id, task_id]


def test_a_task_that_asks_is_not_started_again(stack: Stack, time: Time) -> None:
    task_id = count_to(stack)
    ask = open_ask("token", {"sure": FormQuestion("Sure?", {"type": "object", "properties": {}})})
    stack.deployment.task_table.ask(task_id, ask, time.now)
    time.now += START_AGAIN_MS + 1
    again = stack.call("count", {"upto": 3}, headers={HEADER: "k"}).result
    assert (again["taskId"], again["status"]) == (task_id, "input_required")
    assert starts(stack) == [task_id]


# what could not be made


def test_a_call_that_a_limit_refuses_leaves_its_key_free(stack: Stack, time: Time) -> None:
    stack.environment["LIMITS"] = Limits(max_open_tasks=1).to_json()
    stack.serve()
    first = count_to(stack, key="a")
    refused = book(stack, "b")
    assert (refused.status, refused.code) == (429, INTERNAL)
    assert len(items()) == 1
    assert count_to(stack, key="a") == first
    stack.cancel(first)
    time.now += LAST_STEP_MS
    assert count_to(stack, 9, key="b") != first


def test_a_task_that_could_not_be_started_keeps_its_key(stack: Stack) -> None:
    """Another call with the key may have been told of it, and started it: two would run."""
    started = stack.calls.instead["start_execution"]
    stack.calls.instead["start_execution"] = refusing("stepfunctions", "StateMachineDoesNotExist")
    refused = stack.call("count", {"upto": 3}, headers={HEADER: "k"})
    assert (refused.status, refused.code) == (500, INTERNAL)
    (failed,) = row_ids(stack)
    stack.calls.instead["start_execution"] = started
    again = stack.call("count", {"upto": 3}, headers={HEADER: "k"}).result
    assert (again["taskId"], again["status"]) == (failed, "failed")
    task_id = count_to(stack, key="another")
    assert starts(stack) == [failed, task_id]


def test_arguments_that_are_too_large_take_no_key(stack: Stack) -> None:
    stack.environment["LIMITS"] = Limits(max_argument_bytes=100).to_json()
    stack.serve()
    refused = stack.call("book", {"seats": 2, "name": "x" * 200}, headers={HEADER: "k"})
    assert (refused.status, refused.code) == (400, PARAMS)
    assert stack.calls.made == [] or items() == []
    booked(stack)


# whoever claimed the key died


class Died(BaseException):
    """An instance that ends in the middle of a request: nothing catches this."""


class Dying:
    """A server whose next request dies at one of the steps of a creation."""

    def __init__(self, stack: Stack, time: Time) -> None:
        self.stack = stack
        self.time = time

    def die_before(self, step: str) -> None:
        """Die when the place is taken, the row is written, or the execution is started."""
        instead = self.stack.calls.instead
        operation = {"place": "update_item", "row": "put_item", "start": "start_execution"}[step]
        before = dict(instead)

        def die(**arguments: Any) -> Any:
            if operation == "put_item" and arguments["TableName"] != TABLE:
                return real("dynamodb").put_item(**arguments)
            raise Died

        instead[operation] = die
        with pytest.raises(Died):
            count_to(self.stack)
        instead.clear()
        instead.update(before)
        self.stack.calls.forget()
        assert len(items()) == 1

    def places(self) -> list[str]:
        """What has a place."""
        return [task_id for item in items("tasks") for task_id in item["open"]["M"]]


@pytest.fixture
def dying(stack: Stack, time: Time) -> Dying:
    return Dying(stack, time)


def test_a_task_that_was_not_written_yet_is_waited_for(dying: Dying) -> None:
    """By then, its owner may still be at it; the client is told to repeat its call later."""
    dying.die_before("row")
    dying.time.now += CLAIM_MS - WAITED_MS
    answer = dying.stack.call("count", {"upto": 3}, headers={HEADER: "k"})
    assert (answer.status, answer.code) == (409, INTERNAL)
    assert "later" in answer.error["message"]
    assert tuple(dying.time.waits) == WAITS_SECONDS
    assert dying.stack.rows == []
    refused = dying.stack.call("count", {"upto": 4}, headers={HEADER: "k"})
    assert (refused.status, refused.code) == REFUSED


@pytest.mark.parametrize("make", [count_to, booked], ids=["count", "asks first"])
def test_a_task_that_is_being_written_is_waited_for(
    stack: Stack, time: Time, make: Callable[[Stack], str]
) -> None:
    """Two calls at once: the second finds the key taken, and then the row."""
    seconds: list[str] = []
    real_put, writes = real("dynamodb").put_item, count()

    def put(**arguments: Any) -> Any:
        if arguments["TableName"] == TABLE and next(writes) == 0:
            time.meanwhile.append(lambda: real_put(**arguments))
            seconds.append(make(stack))
        return real_put(**arguments)

    stack.calls.instead["put_item"] = put
    first = make(stack)
    assert seconds == [first]
    assert time.waits == [WAITS_SECONDS[0]]
    assert row_ids(stack) == starts(stack) == [first]


@pytest.mark.parametrize("step", ["place", "row"])
def test_a_task_whose_owner_died_before_its_row_is_made_by_another(
    dying: Dying, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It lives as long as its key does, whatever was deployed since."""
    stack, time = dying.stack, dying.time
    claimed = time.now
    dying.die_before(step)
    assert stack.rows == []
    time.now += CLAIM_MS + 1
    tools = stack.catalogue.tools
    monkeypatch.setitem(tools, "count", replace(tools["count"], ttl_ms=2 * HOUR))
    task_id = count_to(stack)
    assert row_ids(stack) == starts(stack) == dying.places() == [task_id]
    # Each start has the task's name, and one input: however many, there is one execution.
    assert count_to(stack) == task_id
    assert row_ids(stack) == dying.places() == [task_id]
    assert set(starts(stack)) == {task_id}
    (key,) = items()
    (row,) = stack.rows
    assert key["taskId"]["S"] == task_id
    assert row["createdAt"]["N"] == key["createdAt"]["N"] == str(claimed)
    assert row["expiresAtMs"]["N"] == key["expiresAtMs"]["N"]


def test_an_owner_has_its_time(dying: Dying) -> None:
    dying.die_before("row")
    dying.time.now += CLAIM_MS
    count_to(dying.stack)
    assert dying.time.waits == [WAITS_SECONDS[0]]


def test_a_task_whose_owner_died_before_its_start_is_started_by_another(dying: Dying) -> None:
    stack, time = dying.stack, dying.time
    dying.die_before("start")
    time.now += START_AGAIN_MS
    (task_id,) = row_ids(stack)
    assert count_to(stack) == task_id
    assert starts(stack) == [], "its owner may be at it"
    time.now += 1
    assert count_to(stack) == task_id
    assert starts(stack) == row_ids(stack) == dying.places() == [task_id]


def test_a_call_that_is_repeated_many_times_is_started_once_more(stack: Stack, time: Time) -> None:
    """Step Functions throttles StartExecution for all callers of an account together."""
    task_id = count_to(stack)
    for _ in range(6):
        time.now += START_AGAIN_MS + 1
        assert count_to(stack) == task_id
    assert starts(stack) == [task_id, task_id]


def test_a_start_that_is_repeated_carries_the_same_input(dying: Dying) -> None:
    """StartExecution is idempotent for the same name and input (API reference)."""
    dying.die_before("start")
    dying.time.now += START_AGAIN_MS + 1
    count_to(dying.stack)
    (row,) = dying.stack.rows
    (start,) = [c for c in dying.stack.calls.made if c.operation == "start_execution"]
    assert start.arguments["input"] == row["input"]["S"]
    assert start.arguments["stateMachineArn"] == row["stateMachineArn"]["S"]


def test_two_make_the_task_of_one_who_died(dying: Dying) -> None:
    """The other one's row is the task, also when it was asked for with other answers."""
    stack, time = dying.stack, dying.time
    dying.die_before("place")
    time.now += CLAIM_MS + 1
    real_put = real("dynamodb").put_item

    def put(**arguments: Any) -> Any:
        if arguments["TableName"] == TABLE:
            real_put(TableName=TABLE, Item={**arguments["Item"], "input": {"S": "{}"}})
        return real_put(**arguments)

    stack.calls.instead["put_item"] = put
    task_id = count_to(stack)
    assert row_ids(stack) == dying.places() == [task_id]
    (row,) = stack.rows
    assert row["input"] == {"S": "{}"}
    (start,) = [call for call in stack.calls.made if call.operation == "start_execution"]
    assert (start.arguments["name"], start.arguments["input"]) == (task_id, "{}")


def test_a_full_caller_gets_what_its_key_stands_for_later(dying: Dying) -> None:
    """The task of one who died needs a place, too."""
    stack, time = dying.stack, dying.time
    dying.die_before("place")
    stack.environment["LIMITS"] = Limits(max_open_tasks=1).to_json()
    stack.serve()
    time.now += CLAIM_MS + 1
    other = count_to(stack, key="another")
    assert refusal(stack) == (429, INTERNAL)
    stack.cancel(other)
    time.now += LAST_STEP_MS
    assert count_to(stack) == count_to(stack)


def refusal(stack: Stack) -> tuple[int, int]:
    answer = stack.call("count", {"upto": 3}, headers={HEADER: "k"})
    return answer.status, answer.code


def test_a_late_task_that_could_not_be_started_is_started_when_the_call_is_repeated(
    dying: Dying,
) -> None:
    """Others may have written the same row, and started it: it is not ended for one refusal."""
    stack, time = dying.stack, dying.time
    dying.die_before("place")
    time.now += CLAIM_MS + 1
    started = stack.calls.instead["start_execution"]
    stack.calls.instead["start_execution"] = refusing("stepfunctions", "StateMachineDoesNotExist")
    late = count_to(stack)
    stack.calls.instead["start_execution"] = started
    stack.calls.forget()
    time.now += START_AGAIN_MS + 1
    assert count_to(stack) == late
    assert starts(stack) == [late]
    assert stack.task(late)["status"] == "working"


@pytest.mark.parametrize("code", ["ExecutionLimitExceeded", "ThrottlingException"])
def test_a_task_that_runs_survives_a_start_that_is_repeated_in_vain(
    stack: Stack, time: Time, code: str
) -> None:
    """Its first start arrived; nothing was heard of it since, because it reports nothing."""
    task_id = count_to(stack)
    time.now += START_AGAIN_MS + 1
    stack.calls.instead["start_execution"] = refusing("stepfunctions", code)
    stack.call("count", {"upto": 3}, headers={HEADER: "k"})
    assert stack.task(task_id)["status"] == "working"
    assert "stop_execution" not in stack.calls.operations


# very many at once


class OneByOne(Calls):
    """Calls from many threads: moto checks a condition and writes in two steps."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()

    def client(self, service: str, **options: Any) -> Any:
        return _Locked(super().client(service, **options), self.lock)


class _Locked:
    def __init__(self, client: Any, lock: threading.Lock) -> None:
        self._client = client
        self._lock = lock

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._client, name)
        if name in ("exceptions", "meta"):
            return found

        def operation(**arguments: Any) -> Any:
            with self._lock:
                return found(**arguments)

        return operation


@pytest.mark.parametrize(("tool", "calls"), [("count", 200), ("book", 40)])
def test_very_many_calls_with_one_key_at_once_make_one_task(
    aws: Calls, catalogue: Catalogue, tool: str, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However slow the machine: whoever waits for the row waits until it is there."""
    written = threading.Event()
    Time().rule(monkeypatch)

    def wait(seconds: float) -> None:
        written.wait(60)

    monkeypatch.setattr(
        "mcp_tasks.server.server.IdempotentCreation", partial(IdempotentCreation, wait=wait)
    )
    stack = Stack(OneByOne(), catalogue)
    arguments = {"count": {"upto": 3}, "book": {"seats": 2}}[tool]
    catalogue.tools[tool].load()
    gate = threading.Barrier(calls)

    def put(**arguments: Any) -> Any:
        answer = real("dynamodb").put_item(**arguments)
        if arguments["TableName"] == TABLE:
            written.set()
        return answer

    def call(n: int) -> str:
        gate.wait()
        answer = stack.call(tool, arguments, headers={HEADER: "k"}, request_id=n)
        return json.dumps([answer.result["taskId"], answer.result["createdAt"]])

    stack.calls.instead["put_item"] = put
    with ThreadPoolExecutor(calls) as threads:
        answers = set(threads.map(call, range(calls)))
    assert len(answers) == 1
    ((task_id,), (start,)) = row_ids(stack), starts(stack)
    assert json.loads(answers.pop())[0] == task_id == start
    assert len(items()) == 1
    (open_,) = items("tasks")
    assert set(open_["open"]["M"]) == {task_id}
