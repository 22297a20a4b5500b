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
    headers: Any
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
        called, last_id = Called({}, 0), None
        sent = self._open("POST", self.encoded(request), None)
        while True:
            called.connections += 1
            with sent as response:
                for event in self._events(response):
                    last_id = event.id or last_id
                    if event.message is not None and self._take(event.message, called, answer):
                        wire.check(request["method"], called.response, self.version)
                        assert called.response["id"] == request["id"], called
                        return called
            assert time.monotonic() < until, called
            time.sleep(0.1)
            sent = self._again(request, last_id)

    def encoded(self, message: Any) -> bytes:
        """A message as it is sent."""
        return json.dumps(message).encode()

    def _again(self, request: Mapping[str, Any], last_id: str | None) -> Any:
        """Go on with the stream of a request."""
        assert last_id is not None, request
        return self._open("GET", None, {"Last-Event-ID": last_id})

    def _events(self, response: Any) -> Iterator[Event]:
        return _events(response)

    def _take(self, message: dict[str, Any], called: Called, answer: AnswerQuestion | None) -> bool:
        """Take one message, while the stream may go on; whether it is the response."""
        if "method" not in message:
            called.response = message
            return True
        if "id" not in message:
            called.progress.append(message)
            return False
        wire.check_request(message, self.version)
        called.requests.append(message)
        assert answer is not None, message
        taken = self.post({"jsonrpc": "2.0", "id": message["id"], "result": answer(message)})
        assert taken.status == 202, taken
        return False

    def _open(
        self, method: str, body: bytes | None, headers: Mapping[str, str | None] | None
    ) -> Any:
        sent: dict[str, str | None] = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            **self._more,
        }
        if self.session_id is not None:
            sent |= {"Mcp-Session-Id": self.session_id, "MCP-Protocol-Version": self.version}
        kept = {k: v for k, v in {**sent, **(headers or {})}.items() if v is not None}
        request = urllib.request.Request(self.url, body, kept, method=method)
        return urllib.request.urlopen(request, timeout=REQUEST_SECONDS)

    def _http(
        self, method: str, body: bytes | None, headers: Mapping[str, str | None] | None
    ) -> Reply:
        try:
            with self._open(method, body, headers) as response:
                return Reply(response.status, response.headers, list(self._events(response)))
        except urllib.error.HTTPError as error:
            with error:
                return Reply(error.code, error.headers, list(_events(error)))


def _events(response: Any) -> Iterator[Event]:
    """The events of a response, as they come."""
    if response.headers.get_content_type() != "text/event-stream":
        body = response.read().strip()
        if body:
            yield Event(json.loads(body), None, None)
        return
    lines: list[str] = []
    for line in response:
        text = line.decode().rstrip("\n")
        if text:
            lines.append(text)
        elif lines:
            yield _event(lines)
            lines = []


def _event(lines: list[str]) -> Event:
    fields = dict(line.split(": ", 1) for line in lines if not line.startswith(":"))
    data = fields.get("data", "").strip()
    retry = fields.get("retry")
    return Event(
        json.loads(data) if data else None, fields.get("id"), None if retry is None else int(retry)
    )
