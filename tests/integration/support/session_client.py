"""A client of the revisions with sessions, which resumes event streams and answers questions.

It sends exactly what a test tells it, one HTTP request per connection, and checks every message by
the revision's schema.
"""

from __future__ import annotations

import itertools
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tests import wire

EVERYTHING: Final[dict[str, Any]] = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {},
    "roots": {},
}
REQUEST_SECONDS: Final = 60.0
CALL_SECONDS: Final = 180.0

AnswerQuestion = Callable[[dict[str, Any]], dict[str, Any]]
"""From a request of the server's to the result of the response to it."""


@dataclass(frozen=True, slots=True)
class Event:
    """One server-sent event."""

    message: dict[str, Any] | None
    id: str | None
    retry_ms: int | None


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP response: a JSON-RPC message, or events."""

    status: int
    headers: Mapping[str, str]
    events: list[Event]

    @property
    def message(self) -> dict[str, Any]:
        """The last message."""
        found = [event.message for event in self.events if event.message is not None]
        assert found, self
        return found[-1]

    @property
    def last_id(self) -> str | None:
        """The id to resume after."""
        ids = [event.id for event in self.events if event.id is not None]
        return ids[-1] if ids else None


@dataclass
class Called:
    """What one call brought, over all its connections."""

    response: dict[str, Any]
    connections: int
    requests: list[dict[str, Any]] = field(default_factory=list)
    progress: list[dict[str, Any]] = field(default_factory=list)

    @property
    def result(self) -> dict[str, Any]:
        """The result. Raises AssertionError when the response is an error."""
        assert "result" in self.response, self.response
        result: dict[str, Any] = self.response["result"]
        return result


class SessionClient:
    """One session with one endpoint."""

    def __init__(
        self,
        url: str,
        version: str = "2025-11-25",
        capabilities: Mapping[str, Any] = EVERYTHING,
        name: str = "test",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.url = url
        self.version = version
        self._more = dict(headers or {})
        self._ids = itertools.count(1)
        self.session_id: str | None = None
        params = {
            "protocolVersion": version,
            "capabilities": dict(capabilities),
            "clientInfo": {"name": name, "version": "1"},
        }
        reply = self.post(self.compose("initialize", params))
        self.initialized = reply.message["result"]
        self.session_id = reply.headers.get("Mcp-Session-Id")
        assert self.post({"jsonrpc": "2.0", "method": "notifications/initialized"}).status == 202

    def compose(
        self, method: str, params: Mapping[str, Any] | None = None, request_id: Any = None
    ) -> dict[str, Any]:
        """A request."""
        request_id = next(self._ids) if request_id is None else request_id
        return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": dict(params or {})}

    def post(self, message: Any, headers: Mapping[str, str | None] | None = None) -> Reply:
        """Send one message."""
        return self._http("POST", json.dumps(message).encode(), headers)

    def get(
        self, last_event_id: str | None, headers: Mapping[str, str | None] | None = None
    ) -> Reply:
        """Resume a stream, or open the session's own without an id."""
        last = {} if last_event_id is None else {"Last-Event-ID": last_event_id}
        return self._http("GET", None, {**last, **(headers or {})})

    def end(self) -> Reply:
        """End the session."""
        return self._http("DELETE", None, None)

    def request(self, method: str, params: Mapping[str, Any] | None = None) -> Reply:
        """Send a request, and check the response by the schema."""
        reply = self.post(self.compose(method, params))
        if reply.status == 200:
            wire.check(method, reply.message, self.version)
        return reply

    def call(
        self,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        answer: AnswerQuestion | None = None,
        progress_token: Any = None,
    ) -> Called:
        """`tools/call`, on as many connections as it takes."""
        params: dict[str, Any] = {"name": tool, "arguments": dict(arguments or {})}
        if progress_token is not None:
            params["_meta"] = {"progressToken": progress_token}
        return self.follow(self.compose("tools/call", params), answer)

    def follow(self, request: dict[str, Any], answer: AnswerQuestion | None = None) -> Called:
        """Send a request and wait for its response as the official SDKs do."""
        until = time.monotonic() + CALL_SECONDS
        reply = self.post(request)
        called = Called({}, 0)
        while True:
            called.connections += 1
            for message in _messages(reply):
                if "method" not in message:
                    wire.check(request["method"], message, self.version)
                    assert message["id"] == request["id"], message
                    called.response = message
                    return called
                if "id" in message:
                    called.requests.append(message)
                    assert answer is not None, message
                    response = {"jsonrpc": "2.0", "id": message["id"], "result": answer(message)}
                    taken = self.post(response)
                    assert taken.status == 202, taken
                else:
                    called.progress.append(message)
            assert reply.last_id is not None, reply
            assert time.monotonic() < until, called
            time.sleep(0.1)
            reply = self.get(reply.last_id)

    def _http(
        self, method: str, body: bytes | None, headers: Mapping[str, str | None] | None
    ) -> Reply:
        sent: dict[str, str | None] = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            **self._more,
        }
        if self.session_id is not None:
            sent |= {"Mcp-Session-Id": self.session_id, "MCP-Protocol-Version": self.version}
        kept = {k: v for k, v in {**sent, **(headers or {})}.items() if v is not None}
        request = urllib.request.Request(self.url, body, kept, method=method)
        try:
            with urllib.request.urlopen(request, timeout=REQUEST_SECONDS) as response:
                return _reply(response.status, response.headers, response.read())
        except urllib.error.HTTPError as error:
            with error:
                return _reply(error.code, error.headers, error.read())


def _reply(status: int, headers: Any, body: bytes) -> Reply:
    if not body:
        return Reply(status, headers, [])
    if headers.get_content_type() != "text/event-stream":
        return Reply(status, headers, [Event(json.loads(body), None, None)])
    blocks = body.decode().split("\n\n")
    return Reply(status, headers, [_event(block) for block in blocks if block])


def _event(block: str) -> Event:
    fields = dict(line.split(": ", 1) for line in block.split("\n") if not line.startswith(":"))
    data = fields.get("data", "").strip()
    retry = fields.get("retry")
    return Event(
        json.loads(data) if data else None, fields.get("id"), None if retry is None else int(retry)
    )


def _messages(reply: Reply) -> Iterator[dict[str, Any]]:
    for event in reply.events:
        if event.message is not None:
            yield event.message
