"""A client of the revisions with sessions, whose requests a server in this process answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import pytest

from mcp_tasks.limits import Limits
from mcp_tasks.notifications.clock import Clock
from mcp_tasks.server.http.api_gateway import from_api_gateway
from mcp_tasks.server.methods.call_stream import CallStream
from mcp_tasks.server.methods.session_stream import SessionStream
from mcp_tasks.server.methods.task_stream import TaskStream
from tests import wire
from tests.unit.support.listening import Time
from tests.unit.support.stack import Stack

ALL_KINDS: Final[dict[str, Any]] = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {},
    "roots": {},
}


CLOCKS: Final = ("server.revisions.session_revision",)
"""More modules that read the clock."""


def time_of(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> Time:
    """A clock that only the waiting of event streams moves. Calls are not counted in quotas."""
    time = Time()
    time.rule(monkeypatch)
    for module in ("server.sessions", "server.http.endpoint", *CLOCKS):
        monkeypatch.setattr(f"mcp_tasks.{module}.now_ms", time.read)
    for made in (TaskStream, CallStream, SessionStream):
        patient = partial(made, clock=Clock(time.read, time.wait))
        monkeypatch.setattr(f"mcp_tasks.server.server.{made.__name__}", patient)
    stack.environment["LIMITS"] = Limits(
        max_open_calls=0, max_open_tasks=0, creations_per_minute=0
    ).to_json()
    stack.serve()
    return time


@dataclass(frozen=True)
class StreamEvent:
    """A server-sent event as the client reads it."""

    message: dict[str, Any] | None
    id: str | None = None
    retry_ms: int | None = None


@dataclass(frozen=True)
class Reply:
    """An HTTP response."""

    status: int
    headers: Mapping[str, str]
    events: list[StreamEvent]
    """With the only message of a JSON response as an event."""

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages, in their order."""
        return [event.message for event in self.events if event.message is not None]

    @property
    def response(self) -> dict[str, Any]:
        """The JSON-RPC response, which comes last."""
        last = self.messages[-1]
        assert "method" not in last, self
        return last

    @property
    def result(self) -> dict[str, Any]:
        """The result; a test that wanted one and got an error sees the error."""
        assert "result" in self.response, self
        result: dict[str, Any] = self.response["result"]
        return result

    @property
    def code(self) -> int:
        """The error's code."""
        assert "error" in self.response, self
        code: int = self.response["error"]["code"]
        return code

    @property
    def last_id(self) -> str:
        """The id of the last event that has one."""
        ids = [event.id for event in self.events if event.id is not None]
        assert ids, self
        return ids[-1]


@dataclass
class SessionClient:
    """One session with a server."""

    stack: Stack
    version: str = "2025-11-25"
    capabilities: Mapping[str, Any] = field(default_factory=lambda: ALL_KINDS)
    name: str = "unit"
    user_arn: str | None = None
    session_id: str | None = None

    def __post_init__(self) -> None:
        if self.session_id is None:
            self.begin()

    def begin(self) -> Reply:
        """`initialize`, and the session that it gives."""
        params = {
            "protocolVersion": self.version,
            "capabilities": dict(self.capabilities),
            "clientInfo": {"name": self.name, "version": "1"},
        }
        reply = self.request("initialize", params)
        self.session_id = reply.headers["Mcp-Session-Id"]
        return reply

    def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        request_id: Any = 1,
        headers: Mapping[str, str | None] | None = None,
    ) -> Reply:
        """Send a request; a response to it is checked by the revision's schema."""
        body = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": dict(params or {})}
        reply = self.post(body, headers)
        self.check(method, reply)
        return reply

    def call(self, tool: str, arguments: Any = None, request_id: Any = 1, **meta: Any) -> Reply:
        """`tools/call`."""
        params = {"name": tool, "arguments": arguments or {}, **({"_meta": meta} if meta else {})}
        return self.request("tools/call", params, request_id)

    def notify(self, method: str, **params: Any) -> Reply:
        """Send a notification."""
        return self.post({"jsonrpc": "2.0", "method": method, "params": params})

    def respond(self, request_id: Any, result: Any) -> Reply:
        """Send the response to a request of the server's."""
        return self.post({"jsonrpc": "2.0", "id": request_id, "result": result})

    def post(self, body: Any, headers: Mapping[str, str | None] | None = None) -> Reply:
        """Send any JSON."""
        return self._http("POST", json.dumps(body), headers)

    def resume(
        self, last_event_id: str | None, headers: Mapping[str, str | None] | None = None
    ) -> Reply:
        """GET after an event."""
        last = {"Last-Event-ID": last_event_id} if last_event_id is not None else {}
        return self._http("GET", "", {**last, **(headers or {})})

    def end(self) -> Reply:
        """End the session."""
        return self._http("DELETE", "", None)

    def check(self, method: str, reply: Reply) -> None:
        """Check the response to a request by the revision's schema."""
        for message in reply.messages:
            if "method" not in message:
                wire.check(method, message, self.version)

    def _http(self, method: str, body: str, headers: Mapping[str, str | None] | None) -> Reply:
        sent: dict[str, str | None] = {"Accept": "application/json, text/event-stream"}
        if self.session_id is not None:
            sent["Mcp-Session-Id"] = self.session_id
            if self.version != "2025-03-26":
                sent["MCP-Protocol-Version"] = self.version
        sent |= dict(headers or {})
        event = {
            "httpMethod": method,
            "path": "/mcp",
            "multiValueHeaders": {k: [v] for k, v in sent.items() if v is not None},
            "requestContext": {"identity": {"userArn": self.user_arn}},
            "body": body,
            "isBase64Encoded": False,
        }
        http = from_api_gateway(event, "iam" if self.user_arn else "none")
        response = self.stack.way(self.stack.server, http)
        return Reply(response["statusCode"], response.get("headers", {}), list(_events(response)))


def _events(response: Mapping[str, Any]) -> list[StreamEvent]:
    body = response["body"]
    if not body:
        return []
    if response["headers"]["Content-Type"] == "application/json":
        return [StreamEvent(json.loads(body))]
    blocks = [block for block in body.split("\n\n") if block and not block.startswith(":")]
    return [_event(block) for block in blocks]


def _event(block: str) -> StreamEvent:
    fields = {
        name: value for name, _, value in (line.partition(": ") for line in block.split("\n"))
    }
    data, retry = fields.get("data", ""), fields.get("retry")
    return StreamEvent(
        json.loads(data) if data else None, fields.get("id"), None if retry is None else int(retry)
    )
