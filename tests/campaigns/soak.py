"""Many listens for a while, on the emulator: `make soak`.

50 clients follow 10 tasks each over the streaming endpoint, for two minutes. The tasks mostly wait,
and end one by one, in random order. In the end every row says by its revision how many changes
there were, and every client what it heard of.

Exit code 1 when anything was missed or came twice.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from infra.bundle import ROOT
from local import emulator as emulators
from local.console import say, step
from local.deployment import LocalStack, deploy
from local.gateway import FUNCTION_TIMEOUT_SECONDS, DeployedApi, Gateway
from tests.integration.support.aws import client_of, rows
from tests.integration.support.client import Client
from tests.integration.support.listening import Listen
from tests.limits import RAISED

TOOLS = ROOT / "tests" / "integration" / "tools"
CREATED = 1
"""The revision of a new task, in which the listens find it."""
CREATORS = 4
WARM = 6
BEGIN, BACK = 40, 20
"""Seconds after which a task may take its first step, when all listens have begun; and how long
each goes on after it."""
OVER = ("completed", "failed", "cancelled")


def revisions(stack: LocalStack, dynamodb: Any) -> dict[str, int]:
    """The revision of every task."""
    found = rows(stack, dynamodb).items()
    return {task_id: int(row["revision"]["N"]) for task_id, row in found}


def walking(client: Client, count: int, seconds: int) -> list[str]:
    """Tasks that end within the time."""

    def start(number: int) -> str:
        out = BEGIN + (seconds - BEGIN - BACK) * number // count
        return client.start("walk", out=out, back=BACK)

    numbers = list(range(count))
    random.shuffle(numbers)
    with ThreadPoolExecutor(CREATORS) as pool:
        # The emulator falls behind when it has to start many workers at once.
        for task_id in list(pool.map(lambda _: client.start("walk", out=0, back=0), range(WARM))):
            client.end(task_id)
        return list(pool.map(start, numbers))


def report(listens: Sequence[Listen], rows: dict[str, int]) -> int:
    """Print what came of it; returns how much went wrong."""
    sent = delivered = missed = duplicates = terminal_missed = 0
    delays: list[float] = []
    for listen in listens:
        for task_id in listen.task_ids:
            changes = rows[task_id] - CREATED
            states = listen.states(task_id)
            told = [(s["status"], s.get("statusMessage"), s["lastUpdatedAt"]) for s in states]
            distinct = len(set(told)) - 1  # the first is the state in which it was found
            sent += changes
            delivered += distinct
            missed += changes - distinct
            duplicates += len(told) - len(set(told))
            terminal_missed += states[-1]["status"] not in OVER
        told_after = [heard.delay for heard in listen.heard if heard.delay is not None]
        delays += told_after[len(listen.task_ids) :]
    ungraceful = sum(not listen.graceful for listen in listens)
    say(f"\n{len(listens)} listens, {sum(len(listen.task_ids) for listen in listens)} tasks")
    for name, value in {
        "changes sent": sent,
        "delivered": delivered,
        "missed": missed,
        "final states missed": terminal_missed,
        "duplicates": duplicates,
        "streams without their result": ungraceful,
        "delay, median (ms)": round(statistics.median(delays) * 1000),
        "delay, 95 % (ms)": round(statistics.quantiles(delays, n=20)[-1] * 1000),
        "delay, longest (ms)": round(max(delays) * 1000),
        "acknowledged after, median (ms)": round(
            statistics.median(listen.acknowledged_after for listen in listens) * 1000
        ),
    }.items():
        say(f"{name:34}{value:8}")
    return missed + duplicates + terminal_missed + ungraceful


def soak(stack: LocalStack, aws: Any, listens: int, tasks: int, seconds: int) -> int:
    """Run it; returns how much went wrong."""
    with Gateway(DeployedApi.read(stack, aws)) as gateway, ThreadPoolExecutor(listens) as pool:
        client = Client(gateway.url)
        start = time.monotonic()
        with step(f"{listens * tasks} tasks"):
            task_ids = walking(client, listens * tasks, seconds)
        followed = [task_ids[n * tasks : (n + 1) * tasks] for n in range(listens)]
        running = [
            pool.submit(Listen(client, ids, FUNCTION_TIMEOUT_SECONDS).run) for ids in followed
        ]
        say(f"{listens} listens after {time.monotonic() - start:.0f} s")
        ended = [future.result() for future in running]
        say(f"all ended after {time.monotonic() - start:.0f} s")
    return report(ended, revisions(stack, aws("dynamodb")))


def main() -> int:
    """Print the figures; the exit code tells whether anything was missed."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.soak")
    parser.add_argument("--listens", type=int, default=50)
    parser.add_argument("--tasks", type=int, default=10, help="of each listen")
    parser.add_argument("--seconds", type=int, default=120)
    options = parser.parse_args()
    running = emulators.start("soak")
    try:
        stack = deploy(running, Path(TOOLS), "mcp-soak", {**RAISED, "max_tasks": "0"})
        aws = client_of(running)
        return 1 if soak(stack, aws, options.listens, options.tasks, options.seconds) else 0
    finally:
        running.stop()


if __name__ == "__main__":
    sys.exit(main())
