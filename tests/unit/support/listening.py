"""Listens that take no time, and answers that are streamed to nobody."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import pytest

from mcp_tasks.aws.streaming_runtime import Response
from mcp_tasks.notifications.clock import Clock
from mcp_tasks.notifications.subscription import Subscription
from mcp_tasks.server.http.endpoint import Endpoint
from mcp_tasks.server.http.event_stream import NO_MESSAGE, end_stream, streamed_channel
from mcp_tasks.server.http.messages import HttpRequest
from mcp_tasks.tasks.task import now_ms

READ_THE_CLOCK: Final = (
    "mcp_tasks.server.methods.tasks",
    "mcp_tasks.server.methods.task_operations",
    "mcp_tasks.server.methods.task_creation",
    "mcp_tasks.server.methods.idempotent_creation",
    "mcp_tasks.server.methods.subscriptions",
    "mcp_tasks.server.methods.call_quota",
)


@dataclass
class Time:
    """A clock that only waiting moves; each wait lets the next thing happen meanwhile."""

    now: int = field(default_factory=now_ms)
    meanwhile: list[Callable[[], object]] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    """Seconds."""

    def read(self) -> int:
        """Milliseconds since the epoch."""
        return self.now

    def wait(self, seconds: float) -> None:
        """Instead of `time.sleep`."""
        self.waits.append(seconds)
        self.now += max(1, round(seconds * 1000))
        if self.meanwhile:
            self.meanwhile.pop(0)()

    def rule(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let the server, and what a test does to it, go by this clock."""
        for module in READ_THE_CLOCK:
            monkeypatch.setattr(f"{module}.now_ms", self.read)
        monkeypatch.setattr(
            "mcp_tasks.server.methods.subscriptions.Subscription",
            partial(Subscription, clock=Clock(self.read, self.wait)),
        )


class Taken(Response):
    """An answer as the runtime loop takes it, kept piece by piece."""

    def __init__(self) -> None:
        self.status: int | None = None
        self.headers: dict[str, str] = {}
        self.pieces: list[bytes] = []

    @property
    def started(self) -> bool:
        return self.status is not None

    def start(self, status: int, headers: Mapping[str, str]) -> None:
        assert not self.started, "an answer starts once"
        self.status, self.headers = status, dict(headers)

    def write(self, data: bytes) -> None:
        assert self.started, "the status comes before the first piece"
        self.pieces.append(data)

    @property
    def text(self) -> str:
        """What has arrived."""
        return b"".join(self.pieces).decode()


@dataclass
class Streamed:
    """The streaming function, as `Stack.way`: an instance that has so much time left."""

    time: Time
    remaining_ms: int = 60_000
    taken: Taken = field(default_factory=Taken)
    """The last answer, while it is written and afterwards."""

    def __call__(self, server: Endpoint, http: HttpRequest) -> dict[str, Any]:
        self.taken = Taken()
        channel = streamed_channel(self.taken, self.time.now + self.remaining_ms)
        end_stream(server.answer(http, channel), self.taken)
        assert self.taken.status is not None
        return {
            "statusCode": self.taken.status,
            "headers": self.taken.headers,
            "body": "" if self.taken.pieces == [NO_MESSAGE] else self.taken.text,
        }


def events(text: str) -> list[str]:
    """The data of every whole event (WHATWG HTML, 9.2.6, "Interpreting an event stream")."""
    found: list[str] = []
    kind, data = "", list[str]()
    for line in re.split(r"\r\n|\n|\r", text)[:-1]:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            if data:
                assert kind in ("", "message"), kind
                found.append("\n".join(data))
            kind, data = "", []
        elif name == "event":
            kind = value
        elif name == "data":
            data.append(value)
        else:
            assert name == "", f"neither an event's nor a comment: {line}"
    assert not data, "an event ends with an empty line"
    return found
