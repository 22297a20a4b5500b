"""Who is there: doors, callers who are hostile, and a victim with a task in every state."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from tests.integration.support.client import Client, HttpResponse, accept
from tests.integration.support.issuer import Issuer

SCOPE: Final = "mcp"
"""What every token has to be good for."""
CALLERS: Final = ("mallory", "eve", "trudy", "oscar")
COLD_SECONDS: Final = 120
EXPIRED_SECONDS: Final = 2
"""The `ttl` of the tool `short_lived`."""


@dataclass(frozen=True, slots=True)
class Door:
    """A way in: the emulator's API Gateway, or the local one that streams."""

    name: str
    url: str

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens."""
        parts = urlsplit(self.url)
        return str(parts.hostname), int(parts.port or 80)

    @property
    def host(self) -> str:
        """The right `Host`."""
        return urlsplit(self.url).netloc

    @property
    def path(self) -> str:
        """Where the endpoint is."""
        return urlsplit(self.url).path

    @property
    def stage(self) -> str:
        """What the endpoint's path begins with."""
        return self.path.removesuffix("/mcp")


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody with a good token, and with what is theirs."""

    name: str
    token: str
    principal: str
    finished: str
    """A task that is over."""
    asking: str
    """A task that waits for an answer."""
    key: str
    """What it is to be answered under."""
    round: Mapping[str, Any]
    """Params of a call that has asked, which answer it: `requestState` and `inputResponses`."""


@dataclass(frozen=True, slots=True)
class Scene:
    """All of it."""

    issuer: Issuer
    doors: Sequence[Door]
    callers: Sequence[Caller]
    victim: Caller
    victims: Mapping[str, str]
    """State -> the victim's task in it."""
    canary: str
    """A word that is in the victim's tasks, and that nobody else may read."""
    bad_tokens: Mapping[str, str]
    weak_tokens: Sequence[str]
    """Good ones, but for the scope."""
    cell: str

    def close(self, acknowledged: Mapping[str, Caller]) -> None:
        """Leave nothing that waits. `acknowledged` are the tasks that came of it."""
        url = self.doors[0].url
        own = [(caller, caller.asking) for caller in self.callers]
        theirs = [(self.victim, task_id) for task_id in self.victims.values()]
        made = [(caller, task_id) for task_id, caller in acknowledged.items()]
        for caller, task_id in (*own, *theirs, *made):
            client = Client(url, token=caller.token)
            client.send(*client.compose("tasks/cancel", {"taskId": task_id}))


def prepare(issuer: Issuer, urls: Iterable[tuple[str, str]], workers: int) -> Scene:
    """Wake what sleeps, and make what there is to attack."""
    doors = [Door(name, url) for name, url in urls]
    _warm_up([Client(door.url, token=issuer.mint(scope=SCOPE)) for door in doors], workers)
    url, canary = doors[0].url, f"canary{secrets.token_hex(8)}"
    with ThreadPoolExecutor(workers) as pool:
        people = pool.map(lambda name: _caller(issuer, url, name, "mine"), CALLERS)
        victim = _caller(issuer, url, "victim", canary)
        callers = list(people)
    client = Client(url, token=victim.token)
    victims = {
        "expired": client.start("short_lived"),
        "working": client.start("walk", out=3600, back=0),
        "input_required": victim.asking,
        "completed": victim.finished,
        "failed": client.start("crash", text=canary),
        "cancelled": client.start("interview", text=canary),
    }
    expires = time.monotonic() + EXPIRED_SECONDS
    client.until_asked(victims["cancelled"], "answer")
    client.cancel(victims["cancelled"])
    client.end(victims["failed"])
    while time.monotonic() < expires:
        time.sleep(0.1)
    return Scene(
        issuer=issuer,
        doors=doors,
        callers=callers,
        victim=victim,
        victims=victims,
        canary=canary,
        bad_tokens=issuer.bad_tokens(),
        weak_tokens=[issuer.mint(scope=scope, sub="weak") for scope in (None, "", "mcpx", "admin")],
        cell=victim.finished.partition("-")[0],
    )


def _warm_up(clients: Sequence[Client], workers: int) -> None:
    """Start the functions' instances before they are needed: the emulator starts them slowly."""

    def first(client: Client) -> HttpResponse:
        return client.send(*client.compose("tools/call", {"name": "say"}))

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(first, [client for client in clients for _ in range(5 * workers)]))
    for _ in range(2):
        _wait_for(clients[0], clients[0].start("note", text="a"))


def _wait_for(client: Client, task_id: str) -> None:
    """Until a task is over, which takes long while its first worker starts."""
    deadline = time.monotonic() + COLD_SECONDS
    while client.get(task_id)["status"] == "working":
        assert time.monotonic() < deadline, "no worker has started"
        time.sleep(0.2)


def _caller(issuer: Issuer, url: str, name: str, text: str) -> Caller:
    token = issuer.mint(scope=SCOPE, sub=name)
    client = Client(url, token=token)
    finished, asking = client.start("note", text=text), client.start("interview", text=text)
    call: dict[str, Any] = {"name": "whoever", "arguments": {}}
    asked = client.request("tools/call", call).result
    (asked_key,) = asked["inputRequests"]
    answer = {asked_key: accept(name=text)}
    client.end(finished)
    (key,) = client.until_asked(asking, "answer").values()
    return Caller(
        name=name,
        token=token,
        principal=f"{issuer.url}|{name}",
        finished=finished,
        asking=asking,
        key=key,
        round={**call, "requestState": asked["requestState"], "inputResponses": answer},
    )
