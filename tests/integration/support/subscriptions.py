"""Subscriptions over HTTP: each message with the time of its arrival."""

from __future__ import annotations

import http.client
import json
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlsplit

from tests import wire
from tests.integration.support.client import Client

SILENCE_SECONDS: Final = 45.0
"""After this time without a message or a comment, a stream counts as broken."""
MAX_STREAM_SECONDS: Final = 90.0
"""The time after which a stream must have ended. Working streams last a few seconds."""


@dataclass(frozen=True, slots=True)
class Received:
    """A message, and when it arrived."""

    message: dict[str, Any]
    at: float
    """Seconds since the request was sent."""
    clock: float
    """Seconds since the epoch."""

    @property
    def delay(self) -> float | None:
        """Seconds from the change to its arrival; None for messages that are no change."""
        changed = self.message.get("params", {}).get("lastUpdatedAt")
        return changed and self.clock - datetime.fromisoformat(changed).timestamp()


class Stream:
    """A request whose response is an event stream, and the messages as they arrive."""

    def __init__(
        self, url: str, body: bytes, headers: Mapping[str, str], seconds: float = MAX_STREAM_SECONDS
    ) -> None:
        parts = urlsplit(url)
        self._seconds, self._start = seconds, time.monotonic()
        self._connection = http.client.HTTPConnection(
            parts.hostname or "", parts.port, timeout=SILENCE_SECONDS
        )
        self._connection.connect()
        self._socket = self._connection.sock
        types = "application/json, text/event-stream"
        sent = {**headers, "Content-Type": "application/json", "Accept": types}
        self._connection.request("POST", parts.path, body, sent)

    def __iter__(self) -> Iterator[Received]:
        """Yield messages until the stream ends. Raises AssertionError when it takes too long."""
        try:
            response = self._connection.getresponse()
            assert response.status == 200, response.read()
            assert response.headers.get_content_type() == "text/event-stream", response.read()
            while line := response.readline():
                at = time.monotonic() - self._start
                if line.startswith(b"data: "):  # other lines are empty, a type, or a comment
                    yield Received(json.loads(line.removeprefix(b"data: ")), at, time.time())
                assert at < self._seconds, f"a stream has not ended after {at:.0f} s"
        finally:
            self._connection.close()

    def disconnect(self) -> None:
        """End the stream from another thread. The thread that reads it stops waiting."""
        with suppress(OSError):  # the stream has ended
            self._socket.shutdown(socket.SHUT_RDWR)


@dataclass
class Subscription:
    """One subscription, and the messages that it has received."""

    client: Client
    task_ids: Sequence[str]
    seconds: float = MAX_STREAM_SECONDS
    """The time after which `run` fails if the stream has not ended."""
    received: list[Received] = field(default_factory=list)
    _stream: Stream | None = None

    def run(self, stop: Callable[[Received], bool] | None = None) -> Subscription:
        """Read until the stream ends, or until `stop` returns true, which disconnects."""
        params = {"notifications": {"taskIds": list(self.task_ids)}}
        body, headers = self.client.compose("subscriptions/listen", params)
        self._stream = Stream(self.client.url, body, headers, self.seconds)
        for received in self._stream:
            self.received.append(received)
            if stop is not None and stop(received):
                return self
        messages = [received.message for received in self.received]
        wire.check_listen(json.loads(body)["id"], messages, self.task_ids)
        return self

    def disconnect(self) -> None:
        """End the subscription from another thread."""
        if self._stream is not None:
            self._stream.disconnect()

    @property
    def acknowledged_after(self) -> float:
        """Seconds from the request to its acknowledgement."""
        first = self.received[0]
        assert first.message["method"] == "notifications/subscriptions/acknowledged"
        return first.at

    @property
    def accepted(self) -> list[str]:
        """The ids of the acknowledgement."""
        ids: list[str] = self.received[0].message["params"]["notifications"]["taskIds"]
        return ids

    @property
    def graceful(self) -> bool:
        """Whether the stream ended with the result."""
        return "result" in self.received[-1].message

    def changes(self, task_id: str | None = None) -> list[dict[str, Any]]:
        """The changes of a task, or of all tasks, in order and without `_meta`."""
        messages = [received.message for received in self.received]
        published = [message["params"] for message in messages if "method" in message]
        return [
            {name: value for name, value in params.items() if name != "_meta"}
            for params in published
            if "taskId" in params and task_id in (None, params["taskId"])
        ]
