"""One request of a run: what is sent, by whom, and what must come of it.

And those that are correct, from which the others are made.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from tests.campaigns.fuzz.requests import OLD_CALLS, TRACED, Json, mirrored, request
from tests.campaigns.hostile.http1 import Pairs, Sent
from tests.campaigns.hostile.scene import Caller, Door, Scene
from tests.wire import LISTEN, MODERN

Expectation = Literal["answered", "refused", "any", "broken"]
"""`answered` with success, for it is correct; `refused`, for success would be a hole; `any`: it may
happen to be valid; `broken`: not even HTTP, so that whoever reads HTTP may answer or hang up."""

PART: Final = 12
"""Characters from which on a part of a token tells something of it."""

READ, SHOWN = 100_000, 1200
"""How much of a request is looked at for a token, and how much of it is printed."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One request."""

    family: str
    how: str
    door: Door
    caller: Caller
    """Whose token it has, if it has a good one."""
    sent: Sent
    expected: Expectation = "any"

    @property
    def secrets(self) -> set[str]:
        """The parts of the tokens in it."""
        head = self.sent.target + "".join(f"\n{name}: {value}" for name, value in self.sent.headers)
        credentials = re.findall(
            r"(?i)(?:authorization:|cookie:|access.{0,3}token=)(.*)$", head, re.M
        )
        return {
            part for text in credentials for part in re.split(r"[^\w-]", text) if len(part) >= PART
        }

    def redacted(self, data: bytes) -> str:
        """The beginning of what was sent or answered, without the tokens."""
        text = data[:READ].decode("utf-8", "backslashreplace")
        for part in sorted(self.secrets, key=len, reverse=True):
            text = text.replace(part, "<redacted>")
        return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."

    def __str__(self) -> str:
        shown = self.redacted(self.sent.data)
        size = len(self.sent.body)
        return f"{self.family}: {self.how}, through the {self.door.name}, {size} bytes:\n{shown!r}"


@dataclass(frozen=True, slots=True)
class Draft:
    """What a way to spoil a request gets: a correct one, and all there is to spoil it with."""

    rng: random.Random
    scene: Scene
    door: Door
    caller: Caller
    body: Json
    revision: str = MODERN
    headers: Pairs = field(default_factory=list)
    """In addition to those that a correct client sends with the body."""

    def post(self, body: bytes | None = None, headers: Pairs | None = None) -> Sent:
        """The request; with another body, or other headers that mirror it."""
        mirrors = mirrored(self.body, self.revision) if headers is None else headers
        return posted(
            self.door,
            f"Bearer {self.caller.token}",
            [*mirrors, *self.headers],
            json.dumps(self.body).encode() if body is None else body,
        )

    def of(self, method: str, params: Mapping[str, Any]) -> Draft:
        """The same with another request, of the newest revision."""
        return Draft(self.rng, self.scene, self.door, self.caller, request(method, params, MODERN))


def posted(door: Door, authorization: str | None, headers: Pairs, body: bytes) -> Sent:
    """A POST to the endpoint."""
    sent = [("Host", door.host), *headers, ("Content-Length", str(len(body)))]
    if authorization is not None:
        sent.append(("Authorization", authorization))
    return Sent("POST", door.path, [*sent, ("Connection", "close")], body)


Way = Callable[[Draft], Attempt]
"""A way to spoil a request."""

Call = tuple[str, Mapping[str, Any], str, Pairs]
"""Method, params, revision, and headers besides those that mirror the body."""


def harmless(caller: Caller) -> list[Call]:
    """Correct requests that make no task."""
    text = {"text": "hello"}
    listening = {"notifications": {"taskIds": [caller.finished]}}
    modern: list[tuple[str, dict[str, Any]]] = [
        ("server/discover", {}),
        ("tools/list", {}),
        ("resources/list", {}),
        ("prompts/list", {}),
        ("tools/call", {"name": "say", "arguments": text, "_meta": TRACED}),
        ("tools/call", {"name": "whoever", "arguments": {}}),
        ("tools/call", dict(caller.round)),
        ("tasks/get", {"taskId": caller.finished}),
        ("tasks/get", {"taskId": caller.asking}),
        ("tasks/update", {"taskId": caller.asking, "inputResponses": {}}),
        ("tasks/update", {"taskId": caller.finished, "inputResponses": {}}),
        ("tasks/cancel", {"taskId": caller.finished}),
        (LISTEN, listening),
    ]
    old = [
        *OLD_CALLS,
        ("tools/list", {}),
        ("tools/call", {"name": "note", "arguments": text}),
    ]
    return [
        *((method, params, MODERN, ()) for method, params in modern),
        *((method, params, "2025-06-18", ()) for method, params in old),
        ("tools/list", {}, "2025-11-25", ()),
    ]


def creating(rng: random.Random, keys: str) -> list[Call]:
    """Correct requests that make a task; `keys` is what their idempotency keys begin with."""
    note = {"name": "note", "arguments": {"text": "hello"}}
    key = ("Idempotency-Key", f"{keys}-{rng.randrange(20)}")
    return [
        ("tools/call", note, MODERN, ()),
        ("tools/call", note, MODERN, (key,)),
        ("tools/call", {"name": "crash", "arguments": {"text": "hello"}}, MODERN, ()),
    ]


def draft(rng: random.Random, scene: Scene, keys: str) -> Draft:
    """A correct request of somebody's, through one of the doors."""
    caller, door = rng.choice(scene.callers), rng.choice(scene.doors)
    calls: Sequence[Call] = harmless(caller)
    if rng.random() < 0.2:
        calls = creating(rng, keys)
    method, params, revision, headers = rng.choice(calls)
    body = request(method, params, revision)
    return Draft(rng, scene, door, caller, body, revision, headers)
