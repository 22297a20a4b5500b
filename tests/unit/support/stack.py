"""A server as a client sees it: proxy events in, checked answers out."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from aws_lambda_powertools import Logger

from mcp_tasks.deployment import Deployment
from mcp_tasks.registry.catalogue import Catalogue
from mcp_tasks.server.http.api_gateway import from_api_gateway, to_api_gateway
from mcp_tasks.server.http.endpoint import Endpoint
from mcp_tasks.server.http.messages import HttpRequest
from mcp_tasks.server.server import mcp_server
from mcp_tasks.server_identity import ServerIdentity
from tests import wire
from tests.unit.support.aws import (
    ACCOUNT,
    CALLERS,
    JOURNAL,
    MAILBOXES,
    PAYLOADS,
    REGION,
    SESSIONS,
    TABLE,
    Calls,
    create_callers,
    create_mailboxes,
    create_sessions,
    create_table,
    raw_rows,
    real,
)
from tests.unit.support.listening import events

REVISION: Final = wire.MODERN
TASKS: Final = "io.modelcontextprotocol/tasks"
VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY: Final = "io.modelcontextprotocol/clientCapabilities"
WITH_TASKS: Final[dict[str, Any]] = {"elicitation": {}, "extensions": {TASKS: {}}}
STATE_KEY: Final = "the key of request states in unit tests"

PREFIX: Final = f"arn:aws:states:{REGION}:{ACCOUNT}:stateMachine:unit-"
ENVIRONMENT: Final = {
    "TASKS_TABLE": TABLE,
    "MAILBOXES_TABLE": MAILBOXES,
    "CALLERS_TABLE": CALLERS,
    "SESSIONS_TABLE": SESSIONS,
    "JOURNAL_TABLE": JOURNAL,
    "PAYLOADS_BUCKET": PAYLOADS,
    "AUTH": "none",
    "STATE_MACHINE_PREFIX": PREFIX,
    "CELL": "c1",
    "POWERTOOLS_METRICS_NAMESPACE": "unit",
    "REQUEST_STATE_KEY_SECRET": f"arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret:unit-state-key",
    "ALLOWED_ORIGINS": "https://app.example.com http://localhost:*",
}
IDENTITY: Final = ServerIdentity("unit", "1.2.3", "Unit tests", "Call echo.")
NAMED: Final = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}

LOGGER: Final = Logger()
"""The function's own logger; the library's loggers are its children and cannot log without it."""

WITHIN_THE_REQUEST: Final[dict[str, Any]] = {
    "tools/call": {"name": "echo", "arguments": {"text": "a"}},
    "resources/read": {"uri": "docs://handbook"},
    "prompts/get": {"name": "review", "arguments": {"text": "a"}},
    "completion/complete": {
        "ref": {"type": "ref/prompt", "name": "review"},
        "argument": {"name": "language", "value": "F"},
    },
}
"""Method -> params of a request that runs an example tool's, resource's or prompt's code."""


@dataclass(frozen=True)
class Answer:
    """An HTTP answer, and the JSON-RPC messages in it."""

    status: int
    message: dict[str, Any]
    """The response, or the first of a batch's."""
    notifications: list[dict[str, Any]] = field(default_factory=list)
    """What came before it, when the answer is an event stream."""
    headers: dict[str, str] = field(default_factory=dict)
    batch: list[dict[str, Any]] | None = None
    """All responses, when the answer is a list of them."""

    @property
    def result(self) -> dict[str, Any]:
        """The result; a test that wanted one and got an error sees the error."""
        assert "result" in self.message, self.message
        result: dict[str, Any] = self.message["result"]
        return result

    @property
    def error(self) -> dict[str, Any]:
        """The error; a test that wanted one and got a result sees the result."""
        assert "error" in self.message, self.message
        error: dict[str, Any] = self.message["error"]
        return error

    @property
    def code(self) -> int:
        """The error's code."""
        code: int = self.error["code"]
        return code


Way = Callable[[Endpoint, HttpRequest], Mapping[str, Any]]
"""How a server is asked: returns the status, the headers and the body of its answer."""


def buffered(server: Endpoint, http: HttpRequest) -> Mapping[str, Any]:
    """The function whose answers come as a whole."""
    return to_api_gateway(server.answer(http))


@dataclass
class Stack:
    """A server with its table, and a client of it."""

    calls: Calls
    catalogue: Catalogue
    environment: dict[str, str] = field(default_factory=lambda: dict(ENVIRONMENT))
    way: Way = buffered
    identity: ServerIdentity = IDENTITY
    deployment: Deployment = field(init=False)
    server: Endpoint = field(init=False)

    def __post_init__(self) -> None:
        create_table()
        create_mailboxes()
        create_callers()
        create_sessions()
        # Whether these calls are right is for test_executions and the end-to-end tests to say.
        self.calls.instead["start_execution"] = lambda **arguments: {}
        self.calls.instead["stop_execution"] = lambda **arguments: {}
        self.calls.instead["get_secret_value"] = lambda **arguments: {"SecretString": STATE_KEY}
        self.serve()

    def serve(self) -> None:
        """Start the server, as a new instance of its function does."""
        self.deployment = Deployment(
            self.environment, self.calls.client, self.catalogue, self.identity
        )
        self.server = mcp_server(self.deployment)

    def post(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        capabilities: Any = WITH_TASKS,
        headers: dict[str, str | list[str] | None] | None = None,
        user_arn: str | None = None,
        request_id: Any = 1,
        revision: str = REVISION,
    ) -> Answer:
        """Send a request as a correct client of `revision` does.

        `headers` replaces some of them (None leaves one out, a list repeats one). A `_meta` in
        `params` is added to the one that the revision requires.
        """
        params = dict(params or {})
        if revision == REVISION:
            params["_meta"] = {**meta(capabilities), **params.get("_meta", {})}
        body = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
        sent = {**mirrored(method, params, revision), **(headers or {})}
        return self.send(
            json.dumps(body), sent, method=method, user_arn=user_arn, revision=revision
        )

    def repeat(
        self,
        method: str,
        params: dict[str, Any],
        asked: Answer,
        responses: Mapping[str, Any],
        **options: Any,
    ) -> Answer:
        """Send a request again, with answers to what it asked (mrtr.mdx, "Basic Workflow")."""
        assert asked.result["resultType"] == "input_required", asked.result
        again = {"inputResponses": responses, "requestState": asked.result["requestState"]}
        return self.post(method, {**params, **again}, **options)

    def send(
        self,
        body: str | bytes,
        headers: dict[str, Any],
        *,
        method: str = "",
        user_arn: str | None = None,
        revision: str = REVISION,
    ) -> Answer:
        """Send a body as it is; bytes travel in Base64, as API Gateway passes what is not text.

        `revision` is the one whose messages the answer has to consist of. A batch is a request of
        no method in particular.
        """
        binary = isinstance(body, bytes)
        event = {
            "httpMethod": "POST",
            "path": "/mcp",
            "multiValueHeaders": {
                name: value if isinstance(value, list) else [value]
                for name, value in headers.items()
                if value is not None
            },
            "requestContext": {"identity": {"userArn": user_arn}},
            "body": base64.b64encode(body).decode() if isinstance(body, bytes) else body,
            "isBase64Encoded": binary,
        }
        response = self.way(self.server, from_api_gateway(event, "iam" if user_arn else "none"))
        if not response["body"]:
            return Answer(response["statusCode"], {}, headers=response.get("headers", {}))
        *notifications, message = messages_of(response)
        if method != wire.LISTEN:
            wire.check_notifications(notifications, revision)
        elif "result" in message or notifications:
            request = json.loads(body)
            wanted = request["params"]["notifications"].get("taskIds")
            wire.check_heard(request["id"], notifications, wanted)
        if isinstance(message, list):
            sent = [request for request in json.loads(body) if isinstance(request, dict)]
            methods = {request.get("id"): request.get("method", "") for request in sent}
            for one in message:
                wire.check(methods.get(one.get("id"), ""), one, revision)
            first, batch = message[0], message
        else:
            wire.check(method, message, revision)
            first, batch = message, None
        return Answer(response["statusCode"], first, notifications, response["headers"], batch)

    def listen(self, task_ids: Sequence[str] | None, **options: Any) -> Answer:
        """`subscriptions/listen` to tasks; to nothing when None."""
        notifications = {} if task_ids is None else {"taskIds": list(task_ids)}
        return self.post(wire.LISTEN, {"notifications": notifications}, **options)

    def call(self, tool: str, arguments: dict[str, Any] | None = None, **options: Any) -> Answer:
        """`tools/call`."""
        return self.post("tools/call", {"name": tool, "arguments": arguments or {}}, **options)

    def created(self, tool: str, arguments: dict[str, Any] | None = None, **options: Any) -> str:
        """The id of a task that a `tools/call` created."""
        result = self.call(tool, arguments, **options).result
        assert result["resultType"] == "task", result
        task_id: str = result["taskId"]
        return task_id

    def task(self, task_id: str, **options: Any) -> dict[str, Any]:
        """The task, as `tasks/get` shows it."""
        return self.post("tasks/get", {"taskId": task_id}, **options).result

    def update(self, task_id: str, responses: Any, **options: Any) -> Answer:
        """`tasks/update`."""
        return self.post(
            "tasks/update", {"taskId": task_id, "inputResponses": responses}, **options
        )

    def cancel(self, task_id: str, **options: Any) -> Answer:
        """`tasks/cancel`."""
        return self.post("tasks/cancel", {"taskId": task_id}, **options)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """What the table holds."""
        return raw_rows()


def create_state_machine(name: str, definition: dict[str, Any]) -> str:
    """A state machine in moto; returns its ARN."""
    arn: str = real("stepfunctions").create_state_machine(
        name=name,
        definition=json.dumps(definition),
        roleArn=f"arn:aws:iam::{ACCOUNT}:role/states",
    )["stateMachineArn"]
    return arn


def meta(capabilities: Any = WITH_TASKS, version: str = REVISION) -> dict[str, Any]:
    """A request's `_meta`."""
    return {VERSION_KEY: version, CAPABILITIES_KEY: capabilities}


def mirrored(method: str, params: dict[str, Any], revision: str = REVISION) -> dict[str, Any]:
    """The headers that a correct client of `revision` sends with a request."""
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    }
    if revision != REVISION:
        # The header came with 2025-06-18, and says what `initialize` has agreed on.
        if revision != "2025-03-26" and method != "initialize":
            headers["MCP-Protocol-Version"] = revision
        return headers
    headers |= {"MCP-Protocol-Version": REVISION, "Mcp-Method": method}
    parameter = NAMED.get(method)
    if parameter and isinstance(params.get(parameter), str):
        headers["Mcp-Name"] = params[parameter]
    return headers


def messages_of(response: Mapping[str, Any]) -> list[Any]:
    """The messages of a response's body: one as JSON, or those of an event stream."""
    kind = response["headers"]["Content-Type"]
    if kind == "application/json":
        return [json.loads(response["body"])]
    assert kind == "text/event-stream", kind
    return [json.loads(data) for data in events(response["body"])]
