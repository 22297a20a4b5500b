"""A run: calls while all kinds of faults happen, then none; and what was lost by it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from infra.bundle import ROOT
from local.console import say
from local.deployment import LocalStack
from tests.campaigns.chaos.calls import calls
from tests.campaigns.chaos.clients import Honest, Life
from tests.campaigns.chaos.evidence import Evidence, Ledger
from tests.campaigns.chaos.faults import Faults
from tests.campaigns.chaos.proxy import Proxy
from tests.campaigns.chaos.tools._ledger import FOLDER
from tests.campaigns.chaos.verdict import Verdict, judge, unsettled
from tests.campaigns.chaos.workers import Killer
from tests.integration.support.aws import functions, variables

TOOLS: Final = ROOT / "tests" / "campaigns" / "chaos" / "tools"
CLIENTS: Final = 8
"""Requests at a time: the emulator has ten instances of each function."""
LISTENS: Final = 2
"""Listens at a time; each holds one of them for up to 25 seconds."""
LIVE: Final = 60
"""Tasks at a time."""
PACE: Final = 0.4
"""Seconds between two calls: all functions start their processes with the first ones."""
SENT: Final = 15.0
"""Seconds after which the call of a client of 2025-11-25 has begun, for whom it ends in a
response and not in a task."""
LARGE: Final = 150_000
"""Bytes of a large argument; the result is more than twice as large."""
LOOK_EVERY: Final = 2.0
STORIES: Final = 6
"""Lost tasks whose stories are told."""


@dataclass(slots=True)
class Outcome:
    """What came of a run."""

    faults: Faults
    lives: list[Life] = field(default_factory=list)
    killed: int = 0
    requests: int = 0
    repeated: int = 0
    faulty_seconds: float = 0.0
    settled_seconds: float | None = None
    """From the end of the faults until all tasks were over; None when they never were."""
    quiet_seconds: float | None = None
    """Until none of their executions ran any more."""
    verdict: Verdict = field(default_factory=Verdict)
    stories: dict[str, str] = field(default_factory=dict)


def redirect(stack: LocalStack, aws: Any, added: dict[str, str]) -> None:
    """Add variables to the environments of all functions, for good: nobody else needs the stack."""
    for name, function in functions(stack, aws("lambda")).items():
        aws("lambda").update_function_configuration(
            FunctionName=name, Environment={"Variables": variables(function) | added}
        )


def campaign(
    stack: LocalStack,
    aws: Any,
    folder: Path,
    *,
    tasks: int,
    seed: int,
    settle_seconds: float,
    faulty_seconds: float = float("inf"),
    clients: int = CLIENTS,
    without: Collection[str] = (),
    sweep: Callable[[], None] | None = None,
) -> Outcome:
    """Run it, without calls of some kinds.

    Faults stop when all calls are made, or after so many seconds. Then `sweep` is called again and
    again, for those who cannot wait for the stack's own sweeper, which comes every minute.
    """
    faults, ledger = Faults(seed), Ledger(folder)
    killer = Killer(stack.emulator, seed)
    outcome = Outcome(faults)
    outcome.lives = [Life(call) for call in calls(seed, tasks, LARGE, without)]
    proxy = Proxy(stack.emulator.port, faults, killer.kill_owner)
    with (
        ThreadPoolExecutor(clients) as pool,
        ThreadPoolExecutor(LISTENS) as listening,
        proxy,
    ):
        # From now on, they take the proxy for AWS.
        redirect(stack, aws, {"AWS_ENDPOINT_URL": proxy.url, FOLDER: str(folder)})
        honest = Honest(stack.url, pool, listening, seed)
        evidence = Evidence(stack, aws)
        run = _Run(outcome, honest, evidence, killer, sweep)
        try:
            asyncio.run(run.run(2 * clients, faulty_seconds, settle_seconds))
        finally:
            killer.stop()
        outcome.killed = killer.killed
        outcome.requests, outcome.repeated = honest.requests, honest.repeated
        _find_tasks(outcome.lives, evidence)
        outcome.verdict = judge(outcome.lives, evidence, ledger, proxy.ended)
        for name in [*outcome.verdict.lost, *outcome.verdict.twice][:STORIES]:
            calls_about = "\n".join(f"  {noted}" for noted in proxy.calls_about(name))
            outcome.stories[name] = f"{evidence.story(name)}\ncalls:\n{calls_about}"
    return outcome


def _find_tasks(lives: Sequence[Life], evidence: Evidence) -> None:
    """Find out which tasks the calls of clients became that do not know them."""
    by_mark = {life.call.mark: life for life in lives if life.call.handshake}
    for name, all_of in evidence.executions().items():
        if (life := by_mark.get(evidence.mark(all_of[0]) or 0)) is not None:
            life.task_ids.add(name)


def _has_waited(life: Life, began: float) -> bool:
    """Whether a client, who is told of no task, has waited long enough for its call to have one."""
    return life.call.handshake and time.monotonic() > began + SENT


@dataclass(slots=True)
class _Run:
    outcome: Outcome
    clients: Honest
    evidence: Evidence
    killer: Killer
    sweep: Callable[[], None] | None

    async def run(self, warm: int, faulty_seconds: float, settle_seconds: float) -> None:
        """Make all calls while faults happen; then wait until all is settled.

        So many requests come first, so that there are processes.
        """
        await asyncio.gather(*(self.clients.warm() for _ in range(warm)))
        telling = asyncio.create_task(self._tell())
        begin = time.monotonic()
        self.outcome.faults.start()
        self.killer.start()
        living, known = self._begin()
        with suppress(TimeoutError):
            async with asyncio.timeout(faulty_seconds):
                await known
        self.outcome.faults.stop()
        await asyncio.to_thread(self.killer.stop)
        stopped = time.monotonic()
        self.outcome.faulty_seconds = stopped - begin
        say(f"no faults any more, after {stopped - begin:.0f} s")
        self.outcome.settled_seconds = await self._settle(living, stopped, settle_seconds)
        self.outcome.quiet_seconds = await self._quieten(stopped, settle_seconds)
        telling.cancel()

    def _begin(self) -> tuple[list[asyncio.Task[None]], asyncio.Task[None]]:
        """Let all clients live; the second ends when each knows its task, or that there is none."""
        places = asyncio.Semaphore(LIVE)
        known = [asyncio.Event() for _ in self.outcome.lives]

        async def live(number: int, life: Life) -> None:
            await asyncio.sleep(number * PACE)
            async with places:
                doing = asyncio.create_task(self.clients.live(life))
                began = time.monotonic()
                while not (doing.done() or life.task_ids or _has_waited(life, began)):
                    await asyncio.wait([doing], timeout=PACE)
                known[number].set()
                try:
                    await doing
                except Exception as error:  # an answer that must not be
                    life.wrong.append(repr(error))

        async def all_known() -> None:
            for each in known:
                await each.wait()

        living = [asyncio.create_task(live(n, life)) for n, life in enumerate(self.outcome.lives)]
        return living, asyncio.create_task(all_known())

    async def _settle(
        self, living: Collection[asyncio.Task[None]], since: float, seconds: float
    ) -> float | None:
        """Wait until all tasks are over; returns how long it took, None when some never were."""
        waiting = set(living)
        while waiting and time.monotonic() < since + seconds:
            await self._sweep()
            _, waiting = await asyncio.wait(waiting, timeout=LOOK_EVERY)
        for each in waiting:
            each.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        return None if waiting else time.monotonic() - since

    async def _quieten(self, since: float, seconds: float) -> float | None:
        """Wait until no execution runs whose task is over; returns how long it took."""
        while await asyncio.to_thread(unsettled, self.evidence):
            if time.monotonic() > since + seconds:
                return None
            await self._sweep()
            await asyncio.sleep(LOOK_EVERY)
        return time.monotonic() - since

    async def _sweep(self) -> None:
        if self.sweep is not None:
            await asyncio.to_thread(self.sweep)

    async def _tell(self) -> None:
        """Say every now and then how far it is."""
        begin = time.monotonic()
        while True:
            await asyncio.sleep(30)
            lives = self.outcome.lives
            told = sum(bool(life.task_ids) for life in lives)
            over = sum(life.over_at is not None for life in lives)
            faults = self.outcome.faults.counts.total()
            say(
                f"{time.monotonic() - begin:4.0f} s: {told} of {len(lives)} tasks acknowledged, "
                f"{over} over, {faults} faults, {self.killer.killed} workers killed"
            )
