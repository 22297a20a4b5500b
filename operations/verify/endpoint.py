"""One caller of the endpoint over HTTP: what it sends, and when each piece of the answer comes."""

from __future__ import annotations

import http.client
import itertools
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from .check import Problem, expect
from .credentials import Credentials, NoCredentials, Unsigned

REVISION: Final = "2026-07-28"
TASKS: Final = "io.modelcontextprotocol/tasks"
CAPABILITIES: Final[Mapping[str, Any]] = {"elicitation": {"form": {}}, "extensions": {TASKS: {}}}
SILENCE_SECONDS: Final = 60.0
"""A connection on which nothing comes for so long has failed: streams say something every 15 s."""
TERMINAL: Final = ("completed", "failed", "cancelled")


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a body, and how many seconds after the request it came."""

    data: bytes
    at: float


def messages_of(events: bytes) -> list[dict[str, Any]]:
    """The JSON-RPC messages of an event stream, without one whose line has not ended."""
    lines = events[: events.rfind(b"\n") + 1].decode().splitlines()
    data = [line.removeprefix("data:").strip() for line in lines if line.startswith("data:")]
    return [json.loads(text) for text in data if text]


@dataclass(frozen=True, slots=True)
class Response:
    """An HTTP response, whole."""

    status: int
    headers: Mapping[str, str]
    """By name in lower case."""
    pieces: list[Piece]
    seconds: float
    """From the request to the end of the body."""

    @property
    def body(self) -> bytes:
        """All pieces."""
        return b"".join(piece.data for piece in self.pieces)

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The JSON-RPC messages of an event stream, or the only one of a JSON body."""
        if not self.headers.get("content-type", "").startswith("text/event-stream"):
            return [json.loads(self.body)] if self.body else []
        return messages_of(self.body)

    @property
    def last_event_id(self) -> str | None:
        """The id after which the stream can be resumed."""
        lines = self.body.decode().splitlines()
        ids = [line.removeprefix("id:").strip() for line in lines if line.startswith("id:")]
        return ids[-1] if ids else None

    def raise_for_error(self) -> None:
        """Raise Problem when the answer is something else than a result."""
        messages = self.messages
        if self.status != 200 or not messages or "result" not in messages[-1]:
            error = messages[-1].get("error", {}) if messages else {}
            raise Problem(f"HTTP {self.status}, {error.get('code')}: {error.get('message')}")

    @property
    def result(self) -> dict[str, Any]:
        """The result. Raises Problem when the answer is something else."""
        self.raise_for_error()
        result: dict[str, Any] = self.messages[-1]["result"]
        return result


@dataclass
class Endpoint:
    """An MCP endpoint, as one caller sees it."""

    url: str
    credentials: Credentials = field(default_factory=NoCredentials)
    _ids: Iterator[int] = field(default_factory=lambda: itertools.count(1), repr=False)

    def send(
        self,
        method: str,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        url: str | None = None,
        on_piece: Callable[[Piece], None] = lambda _: None,
    ) -> Response:
        """Send one request on a connection of its own. `on_piece` gets each piece of the answer's
        body when it comes. Raises OSError.
        """
        url = url or self.url
        parts = urlsplit(url)
        kinds = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}
        connection = kinds[parts.scheme](parts.hostname or "", parts.port, timeout=SILENCE_SECONDS)
        begun = time.monotonic()
        try:
            path = parts.path + (f"?{parts.query}" if parts.query else "")
            signed = self.credentials.headers(Unsigned(method, url, headers or {}, body))
            connection.request(method, path or "/", body or None, signed)
            answer = connection.getresponse()
            pieces = []
            while data := answer.read1(1 << 16):
                pieces.append(Piece(data, time.monotonic() - begun))
                on_piece(pieces[-1])
            received = {name.lower(): value for name, value in answer.getheaders()}
            return Response(answer.status, received, pieces, time.monotonic() - begun)
        except http.client.HTTPException as error:
            raise OSError(f"{type(error).__name__}: {error}") from error
        finally:
            connection.close()

    def post(
        self,
        message: Mapping[str, Any],
        headers: Mapping[str, str] | None = None,
        on_piece: Callable[[Piece], None] = lambda _: None,
    ) -> Response:
        """Send one JSON-RPC message. Raises OSError."""
        types = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        body = json.dumps(message).encode()
        return self.send("POST", body, {**types, **(headers or {})}, on_piece=on_piece)

    def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        capabilities: Mapping[str, Any] = CAPABILITIES,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        """Send a request of revision 2026-07-28, with the headers that repeat its body, and with
        further ones.
        """
        meta = {
            "io.modelcontextprotocol/protocolVersion": REVISION,
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        }
        params = {**(params or {}), "_meta": meta}
        mirrored = {"MCP-Protocol-Version": REVISION, "Mcp-Method": method}
        name = params.get("name") or params.get("taskId") or params.get("uri")
        if isinstance(name, str):
            mirrored["Mcp-Name"] = name
        return self.post(self.message(method, params), {**mirrored, **(headers or {})})

    def message(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """A JSON-RPC request."""
        return {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": dict(params)}

    def call(self, tool: str, arguments: Mapping[str, Any]) -> Response:
        """`tools/call`."""
        return self.request("tools/call", {"name": tool, "arguments": dict(arguments)})

    def create(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """`tools/call` of a tool that becomes a task. Raises Problem for another result."""
        result = self.call(tool, arguments).result
        kind = result.get("resultType")
        expect(kind == "task", f"{tool} was to become a task, and the result is {kind}")
        return result

    def get(self, task_id: str) -> dict[str, Any]:
        """`tasks/get`."""
        return self.request("tasks/get", {"taskId": task_id}).result

    def until(self, task: Mapping[str, Any], seconds: float, *statuses: str) -> dict[str, Any]:
        """Poll a task, as often as it says, until it has one of the statuses.

        Raises Problem when it ends in another, and after so many seconds.
        """
        task_id, interval = str(task["taskId"]), int(task.get("pollIntervalMs") or 1_000) / 1_000
        deadline = time.monotonic() + seconds
        while True:
            found = self.get(task_id)
            status = found["status"]
            if status in statuses:
                return found
            wanted = " or ".join(statuses)
            said = found.get("statusMessage") or found.get("error")
            expect(status not in TERMINAL, f"the task is {status}, not {wanted}: {said}")
            late = f"still {status} after {seconds:.0f} s, not {wanted}"
            expect(time.monotonic() < deadline, late)
            time.sleep(interval)
