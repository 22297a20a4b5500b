"""A server to fuzz, which checks of every answer what has to hold of all of them."""

from __future__ import annotations

import json
import math
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from moto.dynamodb.models import dynamodb_backends

from mcp_tasks.deployment import Deployment
from mcp_tasks.limits import Limits
from mcp_tasks.protocol.jsonrpc import MAX_ID_CHARACTERS
from mcp_tasks.registry.catalogue import Catalogue
from mcp_tasks.server.http.api_gateway import from_api_gateway, to_api_gateway
from mcp_tasks.server.server import mcp_server
from mcp_tasks.server_identity import ServerIdentity
from mcp_tasks.tasks.questions import (
    FormQuestion,
    Question,
    RootsQuestion,
    SamplingQuestion,
    UrlQuestion,
    open_ask,
)
from mcp_tasks.tasks.state import Status
from mcp_tasks.tasks.task import ANYONE, Task, now_ms
from mcp_tasks.tasks.task_table import TaskTable
from tests import wire
from tests.campaigns.fuzz.requests import HANDSHAKE, HOST, VERSION_KEY, Json, Post
from tests.unit.support.aws import (
    ACCOUNT,
    MAILBOXES,
    REGION,
    TABLE,
    Calls,
    create_mailboxes,
    create_table,
    real,
)

ARN: Final = f"arn:aws:states:{REGION}:{ACCOUNT}:stateMachine:fuzz-"
ENVIRONMENT: Final = {
    "TASKS_TABLE": TABLE,
    "MAILBOXES_TABLE": MAILBOXES,
    "CALLERS_TABLE": "callers",
    "PAYLOADS_BUCKET": "payloads",
    "AUTH": "none",
    # One caller sends thousands of requests.
    "LIMITS": Limits(
        max_open_tasks=0,
        creations_per_minute=0,
        polls_per_second=0,
        max_open_subscriptions=0,
        new_subscriptions_per_minute=0,
        max_open_calls=0,
    ).to_json(),
    "STATE_MACHINE_PREFIX": ARN,
    "CELL": "c1",
    "ALLOWED_ORIGINS": "https://app.example.com",
    "ALLOWED_HOSTS": HOST,
    "REQUEST_STATE_KEY_SECRET": f"arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret:fuzz",
}

SOMEBODY: Final = f"arn:aws:iam::{ACCOUNT}:user/somebody"
NAMES: Final = (
    *("working", "asking", "asking twice", "completed", "failed", "cancelled"),
    *("expired", "theirs"),
)
TASKS: Final = {name: f"c1-{number:032x}" for number, name in enumerate(NAMES)}
GONE: Final = ("expired", "theirs")
"""What does not exist to those who do not say who they are."""
FORM: Final = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
QUESTIONS: Final[dict[str, Question]] = {
    "form": FormQuestion("Who?", FORM),
    "page": UrlQuestion("Pay", "https://pay.example.com"),
    "model": SamplingQuestion(
        {"messages": [{"role": "user", "content": {"type": "text", "text": "?"}}], "maxTokens": 9}
    ),
    "roots": RootsQuestion(),
    "essay": FormQuestion("At length?", FORM),
}

READING: Final = ("get_item", "batch_get_item", "query", "get_secret_value")

KEYS: Final = sorted(open_ask("token", QUESTIONS).questions)
"""What the task that asks is to be answered under."""

STATUSES: Final = {
    -32700: {400},
    -32600: {200, 400, 403, 404, 405, 406, 413},
    -32601: {200, 404},
    -32602: {200, 400},
    -32020: {400},
    -32021: {400},
    -32022: {400},
    -32002: {200},
}
"""Code -> HTTP statuses; 200 is for clients of a handshake revision. No -32603, and no 5xx."""

SECRETS: Final = re.compile(
    r"""Traceback | \.py\b | File\ \\" | \b[A-Z]\w*(?:Error|Exception|Warning)\b""", re.VERBOSE
)
"""What tells of the server's inside."""

FRAMES: Final = 980
"""What is left of Python's 1000 when Lambda's runtime calls a handler."""

MAX_SECONDS: Final = 3
"""Of computing: nothing that somebody sends keeps the function busy."""

MAX_ROW: Final = 400 * 1024
"""Bytes of an item (DynamoDB developer guide, "Quotas"); moto does not mind larger ones."""

MAX_PAYLOAD: Final = 256 * 1024
"""Bytes of an execution's input and of a task's output (Step Functions, "Quotas")."""

UNREADABLE: Final = object()


@dataclass(frozen=True)
class Answer:
    """An HTTP answer that has passed all checks."""

    status: int
    message: Any
    """The response; a list of them for a batch; None for a notification."""
    notifications: list[dict[str, Any]]

    @property
    def result(self) -> Any:
        """The result, if it is one."""
        return self.message.get("result") if isinstance(self.message, dict) else None

    @property
    def code(self) -> int | None:
        """The error's code, if it is one."""
        if not isinstance(self.message, dict) or "error" not in self.message:
            return None
        code: int = self.message["error"]["code"]
        return code


@dataclass
class Server:
    """A server with tasks in every state, which are put back after each request."""

    catalogue: Catalogue
    calls: Calls = field(default_factory=Calls)
    checked: int = 0
    """How many answers have passed all checks."""
    codes: Counter[int | None] = field(default_factory=Counter)
    """How often each error code came; None for results."""

    def __post_init__(self) -> None:
        create_table()
        create_mailboxes()
        self.calls.instead["put_object"] = lambda **arguments: {}
        self.calls.instead["start_execution"] = _takes("input")
        self.calls.instead["send_task_success"] = _takes("output")
        self.calls.instead["stop_execution"] = lambda **arguments: {}
        self.calls.instead["get_secret_value"] = lambda **arguments: {"SecretString": "s" * 64}
        deployment = Deployment(
            ENVIRONMENT, self.calls.client, self.catalogue, ServerIdentity("fuzz", "1.2.3")
        )
        self._endpoint = mcp_server(deployment)
        _fill(deployment.task_table)
        self._rows = _rows()

    def send(self, post: Post) -> Answer:
        """Send a request, and check the answer. Raises AssertionError."""
        self.calls.forget()
        began = time.thread_time()
        with _stack_of_lambda():
            http = from_api_gateway(post.event, "iam" if post.caller else "none")
            response = to_api_gateway(self._endpoint.answer(http))
        assert time.thread_time() - began < MAX_SECONDS
        answer = _read(response)
        document = UNREADABLE if answer.code == -32700 and _deep(http.body) else _decoded(http.body)
        assert_safe(post, response)
        assert_answered(document, post, answer)
        self._assert_written(document, answer)
        self.checked += 1
        self.codes[answer.code] += 1
        return answer

    def _assert_written(self, document: Json, answer: Answer) -> None:
        """Whoever is refused has changed nothing, and reading writes nothing."""
        made = Counter(self.calls.operations)
        for reading in READING:
            del made[reading]
        if not made:
            return
        rows = _rows()
        try:
            for row in rows:
                assert _size({"M": row}) < MAX_ROW, "the row is too large"
            if answer.result is None:
                assert set(made) <= {"update_item", "put_object"}, made
                assert rows == self._rows, "a request that was refused has changed a row"
                assert not _mailboxes(), "a request that was refused has a mailbox"
            elif is_listen(document):
                assert set(made) <= {"batch_write_item", "put_item", "update_item"}, made
                assert rows == self._rows, "whoever only listens has changed a row"
            elif answer.result.get("resultType") == "task":
                assert made.pop("put_object", 0) <= 1
                assert made == {"put_item": 1, "start_execution": 1}
                assert len(rows) == len(self._rows) + 1
            else:
                assert isinstance(document, dict)
                assert document["method"] in ("tasks/update", "tasks/cancel")
                assert set(made) <= {"update_item", "stop_execution", "send_task_success"}, made
                assert len(rows) == len(self._rows)
        finally:
            self._put_back(rows)

    def _put_back(self, rows: list[dict[str, Any]]) -> None:
        requests: list[dict[str, Any]] = [
            {"PutRequest": {"Item": row}} for row in self._rows if row not in rows
        ]
        kept = [row["taskId"] for row in self._rows]
        requests += [
            {"DeleteRequest": {"Key": {"taskId": row["taskId"]}}}
            for row in rows
            if row["taskId"] not in kept
        ]
        if requests:
            real("dynamodb").batch_write_item(RequestItems={TABLE: requests})
        _mailboxes().clear()


def assert_safe(post: Post, response: dict[str, Any]) -> None:
    """The gateway can pass the response on, and it tells nothing of the server's inside."""
    json.dumps(response, allow_nan=False).encode()
    assert isinstance(response["body"], str)
    sent = None
    for found in SECRETS.findall(response["body"]):
        sent = sent or f"{post.body!r} {list(post.headers)}"
        assert found in sent, f"the answer tells {found!r}"


def assert_answered(document: Json, post: Post, answer: Answer) -> None:
    """The answer fits the request, and the specification."""
    assert answer.status in (200, 202, 400, 403, 404, 406, 413)
    if answer.status == 202:
        messages = document if isinstance(document, list) else [document]
        assert messages
        assert all(isinstance(m, dict) and "id" not in m for m in messages)
        assert answer.message is None
        return
    revision = spoken(document, post)
    if is_listen(document) and answer.result is not None:
        wanted = document["params"]["notifications"].get("taskIds")
        wire.check_listen(_id(document), [*answer.notifications, answer.message], wanted)
        assert (answer.status, revision) == (200, wire.MODERN)
        return
    for notification in answer.notifications:
        wire.check_notification(notification, revision or wire.MODERN)
    if not isinstance(answer.message, list):
        wire.check_notifications(answer.notifications, revision or wire.MODERN)
        assert_response(document, answer.message, answer, revision)
        return
    assert (revision, answer.status) == (HANDSHAKE[-1], 200), "batches are in one revision only"
    assert answer.message, "a batch of notifications has no answer"
    asked = [_key(_id(message)) for message in document if _id(message) is not None]
    assert [_key(message["id"]) for message in answer.message if "id" in message] == asked
    for message in answer.message:
        requests = [m for m in document if _key(_id(m)) == _key(message.get("id"))]
        # One id may have been used for several requests, and none for several others.
        request = requests[0] if "id" in message and len(requests) == 1 else message
        assert_response(request, message, answer, revision)


def assert_response(
    document: Json, message: dict[str, Any], answer: Answer, revision: str | None
) -> None:
    """One response to one message."""
    if answer.status in (403, 413):
        assert "id" not in message, "the body was not read"
    else:
        assert _key(message.get("id")) == _key(_id(document)), "the id is not the request's"
    if "error" in message:
        code = message["error"]["code"]
        assert code in STATUSES, f"the code {code}: {message['error']}"
        if not answer.notifications and not isinstance(answer.message, list):
            assert answer.status in STATUSES[code]
            assert (answer.status, revision) != (200, wire.MODERN), "it is an HTTP error there"
        if revision is None or code in (-32020, -32022):
            revision = wire.MODERN
    else:
        assert answer.status == 200
        assert revision is not None, "a result in no revision"
    if document is message:
        return
    method = document.get("method") if isinstance(document, dict) else None
    # The id was checked; errors of notifications have none (streamable-http.mdx, "Sending
    # Messages"), and the schemas are of what answers requests.
    with_id = json.dumps(message | {"id": 1})
    _assert_conforms(method if isinstance(method, str) else "", revision, with_id)


@cache
def _assert_conforms(method: str, revision: str, message: str) -> None:
    """Most answers come more than once, but for their ids."""
    wire.check(method, json.loads(message), revision)


def spoken(document: Json, post: Post) -> str | None:
    """The revision that a request is of; None when it is of none (versioning.mdx)."""
    named = [
        value.strip(" \t") for name, value in post.headers if name.lower() == "mcp-protocol-version"
    ]
    params = document.get("params") if isinstance(document, dict) else None
    about = params.get("_meta") if isinstance(params, dict) else None
    if (isinstance(about, dict) and VERSION_KEY in about) or wire.MODERN in named:
        return wire.MODERN if len(named) == 1 else None
    if isinstance(params, dict) and document.get("method") == "initialize":
        wanted = params.get("protocolVersion")
        return wanted if wanted in HANDSHAKE else HANDSHAKE[0]
    if named:
        return named[0] if len(named) == 1 and named[0] in HANDSHAKE else None
    return None if any(name.lower() == "mcp-method" for name, _ in post.headers) else HANDSHAKE[-1]


def is_listen(document: Json) -> bool:
    """Whether a body asks to listen."""
    return isinstance(document, dict) and document.get("method") == wire.LISTEN


def _id(message: Json) -> Any:
    """A message's id, if it can be read."""
    found = message.get("id") if isinstance(message, dict) else None
    readable = len(found) <= MAX_ID_CHARACTERS if isinstance(found, str) else type(found) is int
    return found if readable else None


def _key(found: Any) -> tuple[str, Any]:
    return type(found).__name__, found


def _read(response: dict[str, Any]) -> Answer:
    """Messages of a body: none, JSON, or an event stream of at least two."""
    status, body = response["statusCode"], response["body"]
    kind = response.get("headers", {}).get("Content-Type")
    if not body:
        assert (status, kind) == (202, None)
        return Answer(status, None, [])
    if kind == "application/json":
        return Answer(status, json.loads(body), [])
    assert (status, kind) == (200, "text/event-stream")
    *events, rest = body.split("\n\n")
    assert rest == ""
    found = [re.fullmatch(r"event: message\ndata: (.*)", event) for event in events]
    *notifications, message = [json.loads(event[1]) for event in found if event is not None]
    assert len(notifications) + 1 == len(events) > 1
    return Answer(status, message, notifications)


def _decoded(body: bytes) -> Json:
    """A body that is JSON (RFC 8259), of what can be written as UTF-8 again."""

    def refuse(number: str) -> float:
        raise ValueError(number)

    def finite(number: str) -> float:
        return float(number) if math.isfinite(float(number)) else refuse(number)

    try:
        document = json.loads(body.decode(), parse_constant=refuse, parse_float=finite)
        json.dumps(document, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return UNREADABLE
    return document


def _deep(body: bytes) -> bool:
    """Whether a server may say that this is nested too deeply for it (RFC 8259, section 9)."""
    return any(opening * 100 in body for opening in (b"[", b'{"a":'))


@contextmanager
def _stack_of_lambda() -> Iterator[None]:
    """As little room for recursion as in production; Hypothesis gives its tests more."""
    limit, depth, frame = sys.getrecursionlimit(), 0, sys._getframe()
    while frame.f_back is not None:
        depth, frame = depth + 1, frame.f_back
    sys.setrecursionlimit(depth + FRAMES)
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


def _rows() -> list[dict[str, Any]]:
    """Every row of the table. From moto's memory: a scan takes longer than all else together."""
    items: dict[Any, Any] = dynamodb_backends[ACCOUNT][REGION].tables[TABLE].items
    return [item.to_json()["Attributes"] for item in items.values()]


def _mailboxes() -> dict[Any, Any]:
    """What the mailboxes' table holds, in moto's memory."""
    items: dict[Any, Any] = dynamodb_backends[ACCOUNT][REGION].tables[MAILBOXES].items
    return items


def _takes(payload: str) -> Callable[..., dict[str, Any]]:
    """An operation of Step Functions with a payload, refused as AWS does when it is too large."""

    def operation(**arguments: str) -> dict[str, Any]:
        assert len(arguments[payload].encode()) <= MAX_PAYLOAD, f"the {payload} is too large"
        return {}

    return operation


def _size(attribute: Mapping[str, Any]) -> int:
    """Bytes of a value, as DynamoDB counts them (developer guide, "Item sizes and formats")."""
    ((kind, value),) = attribute.items()
    if kind == "M":
        return 3 + sum(len(name.encode()) + _size(child) + 1 for name, child in value.items())
    return len(value.encode()) if kind == "S" else 21


def _fill(rows: TaskTable) -> None:
    """Tasks in every state."""
    now = now_ms()
    for name, task_id in TASKS.items():
        rows.create(_task(task_id, now, name))
    rows.report(TASKS["working"], "half way", now)
    rows.ask(TASKS["asking"], open_ask("token", QUESTIONS), now)
    rows.ask(TASKS["asking twice"], open_ask("one", {"form": QUESTIONS["form"]}), now)
    rows.ask(TASKS["asking twice"], open_ask("two", {"roots": QUESTIONS["roots"]}), now)
    rows.complete(TASKS["completed"], {"content": [], "structuredContent": [1]}, now)
    rows.fail(TASKS["failed"], {"code": -32603, "message": "The tool failed"}, now)
    rows.cancel(TASKS["cancelled"], now, ANYONE)
    # A run takes longer than it takes until a task is looked after; polls are to write nothing.
    for task_id in TASKS.values():
        real("dynamodb").update_item(
            TableName=TABLE,
            Key={"taskId": {"S": task_id}},
            UpdateExpression="SET reconcileAt = :never",
            ExpressionAttributeValues={":never": {"N": str(now + 10**10)}},
        )


def _task(task_id: str, now: int, name: str) -> Task:
    ttl_ms = 3_600_000
    created = now - ttl_ms if name == "expired" else now
    return Task(
        task_id=task_id,
        tool="later",
        principal=SOMEBODY if name == "theirs" else ANYONE,
        status=Status.WORKING,
        created_at=created,
        last_updated_at=created,
        ttl_ms=ttl_ms,
        poll_interval_ms=2_000,
        state_machine_arn=f"{ARN}later",
        accepts=frozenset(question.kind for question in QUESTIONS.values()),
        input="{}",
    )
