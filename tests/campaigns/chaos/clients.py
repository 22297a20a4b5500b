"""Honest clients: they repeat what got no answer, or one that says to come back, and nothing else.

Each call has a client of its own, which follows the task to its end.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import defaultdict
from collections.abc import Mapping
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPException
from itertools import count
from typing import Any, Final, Literal

from tests import wire
from tests.campaigns.chaos.calls import Call
from tests.campaigns.chaos.tools._ledger import HOLDING
from tests.integration.support.client import Client, HttpResponse, accept

OVER: Final = frozenset({"completed", "failed", "cancelled"})
COME_BACK: Final = frozenset({409, 429})
"""Besides what is above 499."""
PAUSES: Final = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Seconds between two attempts of the same request, less up to a half of them."""
PATIENCE: Final = 100.0
"""Seconds after which a client gives up a request that is never answered."""
GRACE: Final = 2.0
"""Seconds that an answer may be on its way."""
HOLD: Final = 40.0
"""Seconds that a client waits for its task to hold, which is then to be cancelled."""
UNKNOWN: Final = "Task not found"
NO_TASK: Final = ("The task could not be ", "You have ", "You create ", "Too many calls ")
"""How the server says that there is no task, and will be none."""

Fate = Literal["completed", "failed", "cancelled", "expired", "refused", "lost"]
"""`refused`: there is no task, and nobody was told that there is."""


class GaveUp(Exception):
    """A request was never answered; the message says what came instead."""


@dataclass(slots=True)
class Life:
    """What the client of a call has seen."""

    call: Call
    task_ids: set[str] = field(default_factory=set)
    """Those that it was told of; one."""
    sent_at: float = 0.0
    """Seconds since the epoch at which the call was first sent."""
    told_at: float = 0.0
    """And at which the task was acknowledged."""
    tries: int = 0
    """How often the creation was sent."""
    unknown_tries: int = 0
    """Of these, how many may have made a task without an acknowledgement."""
    answers: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """What may have been taken as an answer, by question."""
    accepted: int = 0
    """Asks that were answered."""
    holds: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the task was seen to hold, to ask, or to be over."""
    last: dict[str, Any] | None = None
    """The task in its final state."""
    over_at: float | None = None
    """When that was seen."""
    expired: bool = False
    refusal: str | None = None
    given_up: list[str] = field(default_factory=list)
    """What other requests were never answered with."""
    wrong: list[str] = field(default_factory=list)
    """What must not be."""

    @property
    def task_id(self) -> str | None:
        """The task's id."""
        return min(self.task_ids, default=None)

    @property
    def fate(self) -> Fate:
        """What became of the call."""
        if not self.task_ids:
            return "refused"
        if self.expired:
            return "expired"
        if self.last is None:
            return "lost"
        fate: Fate = self.last["status"]
        return fate


class Honest:
    """Sends the requests of all clients of a run, a few at a time."""

    def __init__(self, url: str, pool: Executor, listening: Executor, seed: int) -> None:
        self.requests = 0
        self.repeated = 0
        self._client = Client(url)
        self._pool = pool
        self._listening = listening
        self._seed = seed
        self._dice = random.Random(f"{seed} clients")

    async def warm(self) -> None:
        """Ask for something that changes nothing."""
        await self._ask("tools/list", {})

    async def live(self, life: Life) -> None:
        """Make a call, and follow its task to its end."""
        if life.call.handshake:
            await self._live_by_handshake(life)
            return
        try:
            await self.create(life)
        except GaveUp as gave_up:
            life.refusal = str(gave_up)
        if life.task_ids:
            await self.follow(life)

    async def _live_by_handshake(self, life: Life) -> None:
        from tests.campaigns.chaos.handshake import Handshake

        def run() -> None:
            Handshake(self._client.url, f"{self._seed} {life.call.mark}").live(life)

        try:
            await asyncio.get_running_loop().run_in_executor(self._listening, run)
        except GaveUp as gave_up:
            life.refusal = str(gave_up)

    async def create(self, life: Life) -> None:
        """Make the task. Raises GaveUp."""
        life.sent_at = time.time()
        sending = [self._create(life) for _ in range(1 + life.call.doubled)]
        ended = await asyncio.gather(*sending, return_exceptions=True)
        failed = [end for end in ended if isinstance(end, BaseException)]
        if failed and (not life.task_ids or not isinstance(failed[0], GaveUp)):
            raise failed[0]
        life.told_at = time.time()

    async def follow(self, life: Life) -> None:
        """Do what is to be done with the task, until it is over."""
        async with asyncio.TaskGroup() as doing:
            if life.call.cancelled_after is not None:
                doing.create_task(self._cancel(life))
            if life.call.again:
                doing.create_task(self._again(life))
            doing.create_task(self._watch(life))

    async def _again(self, life: Life) -> None:
        try:
            await self._create(life)
        except GaveUp as gave_up:
            life.given_up.append(f"repeated call: {gave_up}")

    async def _create(self, life: Life) -> None:
        call = life.call
        headers = {} if call.key is None else {"Idempotency-Key": call.key}
        params = {"name": call.kind.tool, "arguments": dict(call.arguments)}
        answer = await self._ask("tools/call", params, headers, life)
        result = answer.get("result", {})
        if result.get("resultType") != "task":
            raise GaveUp(f"refused: {str(answer)[:300]}")
        life.task_ids.add(result["taskId"])

    async def _cancel(self, life: Life) -> None:
        if life.call.held:
            with suppress(TimeoutError):
                async with asyncio.timeout(HOLD):
                    await life.holds.wait()
        await asyncio.sleep(life.call.cancelled_after or 0)
        try:
            answer = await self._ask("tasks/cancel", {"taskId": life.task_id})
        except GaveUp as gave_up:
            life.given_up.append(f"tasks/cancel: {gave_up}")
        else:
            if "error" in answer:
                life.wrong.append(f"could not be cancelled: {answer['error']}")

    async def _watch(self, life: Life) -> None:
        if life.call.listened:
            await self._listen(life)
        try:
            await self._poll(life)
        finally:
            life.holds.set()

    async def _poll(self, life: Life) -> None:
        answered: set[str] = set()
        ttl = float("inf") if life.call.kind.ttl_ms is None else life.call.kind.ttl_ms / 1000
        while True:
            asked_at = time.time()
            try:
                answer = await self._ask("tasks/get", {"taskId": life.task_id})
            except GaveUp:
                continue
            if "error" in answer:
                self._unknown(life, answer["error"], ttl)
                return
            task = answer["result"]
            if asked_at > life.told_at + ttl + GRACE:
                life.wrong.append(f"known {asked_at - life.told_at:.0f} s after it was made")
                return
            if task["status"] in OVER:
                life.last, life.over_at = task, time.time()
                return
            if task.get("statusMessage") == HOLDING or task["status"] == "input_required":
                life.holds.set()
            asked = set(task.get("inputRequests", ())) - answered
            if asked and life.call.answering != "never":
                if await self._answer(life, asked):
                    answered |= asked
                continue
            await asyncio.sleep(task["pollIntervalMs"] / 1000 * self._dice.uniform(0.9, 1.1))

    def _unknown(self, life: Life, error: Mapping[str, Any], ttl: float) -> None:
        """The task is not known any more: right when its time is over."""
        if not error["message"].startswith(UNKNOWN):
            life.wrong.append(f"tasks/get says {error}")
        elif time.time() > life.sent_at + ttl:
            life.expired, life.over_at = True, time.time()
        else:
            life.wrong.append("unknown before its time is over")

    async def _listen(self, life: Life) -> None:
        """Listen, and listen again, until a final state is told."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                told = await loop.run_in_executor(self._listening, self._listen_once, life)
            except (OSError, HTTPException, GaveUp):
                await asyncio.sleep(1)
                continue
            if told is None or told["status"] in OVER:
                life.last = told
                return

    def _listen_once(self, life: Life) -> dict[str, Any] | None:
        """The last state that one listen tells of; None when the task is not known to it."""
        params = {"notifications": {"taskIds": [life.task_id]}}
        body, headers = self._client.compose(wire.LISTEN, params)
        answer = self._client.send(body, headers)
        if answer.status != 200:
            raise GaveUp(str(answer.status))
        wire.check_listen(json.loads(body)["id"], answer.events, [str(life.task_id)])
        told = [event["params"] for event in answer.notifications if "taskId" in event["params"]]
        return told[-1] if told else None

    async def _answer(self, life: Life, keys: set[str]) -> bool:
        """Answer some questions. Returns whether the server received the answers."""
        second = life.call.answering == "both at once"
        sending = [
            self._update(life, keys, late) for late in ({False, True} if second else [False])
        ]
        if not all(await asyncio.gather(*sending)):
            return False
        life.accepted += 1
        if life.call.answering == "twice":
            await self._update(life, keys, late=True, counts=False)
        return True

    async def _update(self, life: Life, keys: set[str], late: bool, counts: bool = True) -> bool:
        # A key is its question's name and a hash.
        names = {key: key.rpartition("-")[0] for key in keys}
        texts = {key: life.call.answer(name, late) for key, name in names.items()}
        if counts:
            for key, name in names.items():
                life.answers[name].add(texts[key])
        responses = {key: accept(text=text) for key, text in texts.items()}
        try:
            answer = await self._ask(
                "tasks/update", {"taskId": life.task_id, "inputResponses": responses}
            )
        except GaveUp:
            return False
        if "error" in answer and not answer["error"]["message"].startswith(UNKNOWN):
            life.wrong.append(f"an answer was refused: {answer['error']}")
        return True

    async def _ask(
        self,
        method: str,
        params: Mapping[str, Any],
        headers: Mapping[str, str] | None = None,
        creating: Life | None = None,
    ) -> dict[str, Any]:
        """Send a request until it is answered: with a result, or with an error that stays.

        Raises GaveUp.
        """
        started = time.monotonic()
        came = ""
        for attempt in count():
            self.requests += 1
            self.repeated += attempt > 0
            answer = await self._send(method, params, headers)
            if creating is not None:
                creating.tries += 1
                creating.unknown_tries += not _says_no(answer)
            retry_after = 0.0
            if isinstance(answer, HttpResponse):
                if answer.status < 500 and answer.status not in COME_BACK:
                    wire.check(method, answer.message)
                    return answer.message
                came = f"{answer.status} {answer.body[:200]!r}"
                retry_after = float(answer.headers.get("Retry-After") or 0)
            else:
                came = answer
            if time.monotonic() - started > PATIENCE:
                raise GaveUp(came)
            pause = PAUSES[min(attempt, len(PAUSES) - 1)] * self._dice.uniform(0.5, 1)
            await asyncio.sleep(max(pause, retry_after))
        raise AssertionError

    async def _send(
        self, method: str, params: Mapping[str, Any], headers: Mapping[str, str] | None
    ) -> HttpResponse | str:
        """An answer, or why there is none."""
        body, sent = self._client.compose(method, params, headers)
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._pool, self._client.send, body, sent)
        except (OSError, HTTPException) as error:
            return f"{type(error).__name__}: {error}"


def _says_no(answer: HttpResponse | str) -> bool:
    """Whether an answer is the server's own word that there is no task."""
    if isinstance(answer, str):
        return False
    try:
        error: Mapping[str, Any] = answer.message.get("error", {})
    except ValueError:  # it is not the server's
        return False
    return str(error.get("message")).startswith(NO_TASK)
