"""A client that sends exactly what a test gives it, and checks every response by the schemas."""

from __future__ import annotations

import itertools
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.message import Message
from typing import Any

from tests import wire

REVISION = "2026-07-28"
TASKS = "io.modelcontextprotocol/tasks"
WITH_TASKS: dict[str, Any] = {"elicitation": {}, "extensions": {TASKS: {}}}
REQUEST_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """An HTTP response, and the JSON-RPC messages in it."""

    status: int
    headers: Message
    body: bytes

    @property
    def events(self) -> list[dict[str, Any]]:
        """The messages of an event stream, or the only message of a JSON response."""
        if self.headers.get_content_type() != "text/event-stream":
            return [json.loads(self.body)]
        blocks = self.body.decode().split("\n\n")
        assert blocks.pop() == "", self.body
        data = [block.removeprefix("event: message\ndata: ") for block in blocks]
        return [json.loads(text) for text in data]

    @property
    def notifications(self) -> list[dict[str, Any]]:
        """The notifications before the JSON-RPC response."""
        return self.events[:-1]

    @property
    def message(self) -> dict[str, Any]:
        """The JSON-RPC response, which is a stream's last message."""
        return self.events[-1]

    @property
    def result(self) -> dict[str, Any]:
        """The result. Raises AssertionError when the response is an error."""
        assert "result" in self.message, self.message
        result: dict[str, Any] = self.message["result"]
        return result

    @property
    def error(self) -> dict[str, Any]:
        """The error. Raises AssertionError when the response is a result."""
        assert "error" in self.message, self.message
        error: dict[str, Any] = self.message["error"]
        return error


class Client:
    """One caller of one endpoint. Each request has a connection of its own."""

    def __init__(
        self,
        url: str,
        capabilities: Mapping[str, Any] = WITH_TASKS,
        token: str | None = None,
    ) -> None:
        self.url = url
        self._capabilities = capabilities
        self._token = token
        self._ids = itertools.count(1)

    def post(
        self, body: bytes, headers: Mapping[str, str] | None = None, method: str = "POST"
    ) -> HttpResponse:
        """Send bytes as they are, and check the response by the schemas."""
        response = self.send(body, headers, method)
        if response.body.strip():
            wire.check((headers or {}).get("Mcp-Method", ""), response.message)
        return response

    def send(
        self, body: bytes, headers: Mapping[str, str] | None = None, method: str = "POST"
    ) -> HttpResponse:
        """Send bytes as they are, and do not check the response."""
        request = urllib.request.Request(
            self.url,
            body if method == "POST" else None,
            {
                "Content-Type": "application/json",
                "Accept": "application/json, text/event-stream",
                **(headers or {}),
            },
            method=method,
        )
        try:
            with urllib.request.urlopen(request, timeout=REQUEST_SECONDS) as response:
                return HttpResponse(response.status, response.headers, response.read())
        except urllib.error.HTTPError as error:
            with error:
                return HttpResponse(error.code, error.headers, error.read())

    def compose(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str | None] | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> tuple[bytes, dict[str, str]]:
        """The body and the headers of a well-formed request.

        `headers` replace the correct ones; None removes one. `meta` adds to the required `_meta`.
        """
        required = {
            "io.modelcontextprotocol/protocolVersion": REVISION,
            "io.modelcontextprotocol/clientCapabilities": self._capabilities,
        }
        params = {**(params or {}), "_meta": {**required, **(meta or {})}}
        right: dict[str, str | None] = {"MCP-Protocol-Version": REVISION, "Mcp-Method": method}
        if self._token is not None:
            right["Authorization"] = f"Bearer {self._token}"
        name = params.get("name") or params.get("taskId") or params.get("uri")
        if isinstance(name, str):
            right["Mcp-Name"] = name
        sent = {k: v for k, v in {**right, **(headers or {})}.items() if v is not None}
        message = {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": params}
        return json.dumps(message).encode(), sent

    def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str | None] | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> HttpResponse:
        """Send the request that `compose` makes, and check all messages by the schemas."""
        body, sent = self.compose(method, params, headers, meta)
        response = self.send(body, sent)
        for notification in response.notifications:
            wire.check_notification(notification)
        wire.check(method, response.message)
        assert response.message["id"] == json.loads(body)["id"]
        return response

    def call(self, tool: str, **arguments: Any) -> HttpResponse:
        """`tools/call`."""
        return self.request("tools/call", {"name": tool, "arguments": arguments})

    def start(self, tool: str, **arguments: Any) -> str:
        """`tools/call` of a tool that becomes a task. Returns the task's id."""
        result = self.call(tool, **arguments).result
        assert result["resultType"] == "task", result
        task_id: str = result["taskId"]
        return task_id

    def get(self, task_id: str) -> dict[str, Any]:
        """`tasks/get`."""
        return self.request("tasks/get", {"taskId": task_id}).result

    def update(self, task_id: str, responses: Mapping[str, Any]) -> HttpResponse:
        """`tasks/update`."""
        return self.request("tasks/update", {"taskId": task_id, "inputResponses": responses})

    def cancel(self, task_id: str) -> HttpResponse:
        """`tasks/cancel`."""
        return self.request("tasks/cancel", {"taskId": task_id})

    def until(
        self,
        task_id: str,
        reached: Callable[[dict[str, Any]], bool],
        seconds: float = REQUEST_SECONDS,
    ) -> dict[str, Any]:
        """Poll until `reached` is true of the task.

        Raises AssertionError when the task ends before, and after so many seconds.
        """
        deadline = time.monotonic() + seconds
        while True:
            task = self.get(task_id)
            if reached(task):
                return task
            assert task["status"] in ("working", "input_required"), task
            assert time.monotonic() < deadline, task
            time.sleep(0.05)

    def until_status(self, task_id: str, status: str) -> dict[str, Any]:
        """Poll until the task has a status."""
        return self.until(task_id, lambda task: task["status"] == status)

    def until_asked(self, task_id: str, *names: str) -> dict[str, str]:
        """Poll until all of these questions are open. Returns their keys by name."""
        task = self.until(task_id, lambda task: len(task.get("inputRequests", {})) == len(names))
        keys = task["inputRequests"]
        return {name: next(k for k in keys if k.startswith(f"{name}-")) for name in names}

    def end(self, task_id: str, seconds: float = REQUEST_SECONDS) -> dict[str, Any]:
        """Poll until the task has ended."""
        terminal = ("completed", "failed", "cancelled")
        return self.until(task_id, lambda task: task["status"] in terminal, seconds)


def accept(**content: Any) -> dict[str, Any]:
    """The answer that accepts a form with this content."""
    return {"action": "accept", "content": content}
