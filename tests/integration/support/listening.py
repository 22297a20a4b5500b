"""Listens over real HTTP: each message with the moment of its arrival."""

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

SILENCE: Final = 45.0
"""Seconds after which a stream that says nothing at all, no comment either, counts as broken."""
LONGEST: Final = 90.0
"""Seconds after which a stream has to have ended. Those that work last a few."""


@dataclass(frozen=True, slots=True)
class Heard:
    """A message, and when it came."""

    message: dict[str, Any]
    at: float
    """Seconds since the request was sent."""
    clock: float
    """Seconds since the epoch."""

    @property
    def delay(self) -> float | None:
        """Seconds from the change that it tells of, by the server's clock; None for the others."""
        changed = self.message.get("params", {}).get("lastUpdatedAt")
        return changed and self.clock - datetime.fromisoformat(changed).timestamp()


class Stream:
    """A request that is answered with an event stream, and its messages as they come."""

    def __init__(
        self, url: str, body: bytes, headers: Mapping[str, str], seconds: float = LONGEST
    ) -> None:
        parts = urlsplit(url)
        self._seconds, self._start = seconds, time.monotonic()
        self._connection = http.client.HTTPConnection(
            parts.hostname or "", parts.port, timeout=SILENCE
        )
        self._connection.connect()
        self._socket = self._connection.sock
        types = "application/json, text/event-stream"
        sent = {**headers, "Content-Type": "application/json", "Accept": types}
        self._connection.request("POST", parts.path, body, sent)

    def __iter__(self) -> Iterator[Heard]:
        """Until it ends. Raises AssertionError when it takes too long."""
        try:
            response = self._connection.getresponse()
            assert response.status == 200, response.read()
            assert response.headers.get_content_type() == "text/event-stream", response.read()
            while line := response.readline():
                at = time.monotonic() - self._start
                if line.startswith(b"data: "):  # all else is an empty line, a type, or a comment
                    yield Heard(json.loads(line.removeprefix(b"data: ")), at, time.time())
                assert at < self._seconds, f"a stream has not ended after {at:.0f} s"
        finally:
            self._connection.close()

    def hang_up(self) -> None:
        """End it from another thread, which then stops to wait for what comes."""
        with suppress(OSError):  # it has ended
            self._socket.shutdown(socket.SHUT_RDWR)


@dataclass
class Listen:
    """One `subscriptions/listen`, as its messages come in."""

    client: Client
    task_ids: Sequence[str]
    seconds: float = LONGEST
    """After which it fails if it has not ended."""
    heard: list[Heard] = field(default_factory=list)
    _stream: Stream | None = None

    def run(self, stop: Callable[[Heard], bool] | None = None) -> Listen:
        """Read until the stream ends, or `stop` says so, which hangs up."""
        params = {"notifications": {"taskIds": list(self.task_ids)}}
        body, headers = self.client.compose("subscriptions/listen", params)
        self._stream = Stream(self.client.url, body, headers, self.seconds)
        for heard in self._stream:
            self.heard.append(heard)
            if stop is not None and stop(heard):
                return self
        messages = [heard.message for heard in self.heard]
        wire.check_listen(json.loads(body)["id"], messages, self.task_ids)
        return self

    def hang_up(self) -> None:
        """End it from another thread."""
        if self._stream is not None:
            self._stream.hang_up()

    @property
    def acknowledged_after(self) -> float:
        """Seconds from the request to its acknowledgement."""
        first = self.heard[0]
        assert first.message["method"] == "notifications/subscriptions/acknowledged"
        return first.at

    @property
    def accepted(self) -> list[str]:
        """The ids of the acknowledgement."""
        ids: list[str] = self.heard[0].message["params"]["notifications"]["taskIds"]
        return ids

    @property
    def graceful(self) -> bool:
        """Whether the stream ended with the result."""
        return "result" in self.heard[-1].message

    def states(self, task_id: str | None = None) -> list[dict[str, Any]]:
        """What was told of a task, or of all, in order; without `_meta`, which names the listen."""
        told = [heard.message["params"] for heard in self.heard if "method" in heard.message]
        return [
            {name: value for name, value in params.items() if name != "_meta"}
            for params in told
            if "taskId" in params and task_id in (None, params["taskId"])
        ]
