"""Many subscriptions for a while, on the emulator: `make soak`.

50 clients subscribe to 10 tasks each at the streaming endpoint, for two minutes. The tasks mostly
wait, and end one by one, in random order. At the end the revision of each row says how many changes
there were, and each client says how many it received.

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
from tests.integration.support.subscriptions import Subscription
from tests.limits import RAISED

TOOLS = ROOT / "tests" / "integration" / "tools"
CREATED = 1
"""The revision of a new task's row."""
CREATORS = 4
WARM = 6
BEGIN_SECONDS, BACK_SECONDS = 40, 20
"""When the first task takes its step, after all subscriptions are open; and how long each task goes
on after its step."""
TERMINAL = ("completed", "failed", "cancelled")


def revisions(stack: LocalStack, dynamodb: Any) -> dict[str, int]:
    """The revision of every task."""
    found = rows(stack, dynamodb).items()
    return {task_id: int(row["revision"]["N"]) for task_id, row in found}


def walking(client: Client, count: int, seconds: int) -> list[str]:
    """Start tasks that end within `seconds`. Returns their ids."""

    def start(number: int) -> str:
        out = BEGIN_SECONDS + (seconds - BEGIN_SECONDS - BACK_SECONDS) * number // count
        return client.start("walk", out=out, back=BACK_SECONDS)

    numbers = list(range(count))
    random.shuffle(numbers)
    with ThreadPoolExecutor(CREATORS) as pool:
        # The emulator falls behind when it has to start many workers at once.
        for task_id in list(pool.map(lambda _: client.start("walk", out=0, back=0), range(WARM))):
            client.end(task_id)
        return list(pool.map(start, numbers))


def report(subscriptions: Sequence[Subscription], rows: dict[str, int]) -> int:
    """Print the figures. Returns the number of failures."""
    sent = delivered = missed = duplicates = terminal_missed = 0
    delays: list[float] = []
    for subscription in subscriptions:
        for task_id in subscription.task_ids:
            changes = rows[task_id] - CREATED
            states = subscription.changes(task_id)
            seen = [(s["status"], s.get("statusMessage"), s["lastUpdatedAt"]) for s in states]
            distinct = len(set(seen)) - 1  # the first is the state when the subscription began
            sent += changes
            delivered += distinct
            missed += changes - distinct
            duplicates += len(seen) - len(set(seen))
            terminal_missed += states[-1]["status"] not in TERMINAL
        found = [received.delay for received in subscription.received if received.delay is not None]
        delays += found[len(subscription.task_ids) :]
    ungraceful = sum(not subscription.graceful for subscription in subscriptions)
    tasks = sum(len(subscription.task_ids) for subscription in subscriptions)
    acknowledged = [subscription.acknowledged_after for subscription in subscriptions]
    say(f"\n{len(subscriptions)} subscriptions, {tasks} tasks")
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
        "acknowledged after, median (ms)": round(statistics.median(acknowledged) * 1000),
    }.items():
        say(f"{name:34}{value:8}")
    return missed + duplicates + terminal_missed + ungraceful


def soak(stack: LocalStack, aws: Any, subscriptions: int, tasks: int, seconds: int) -> int:
    """Run the campaign. Returns the number of failures."""
    with (
        Gateway(DeployedApi.read(stack, aws)) as gateway,
        ThreadPoolExecutor(subscriptions) as pool,
    ):
        client = Client(gateway.url)
        start = time.monotonic()
        with step(f"{subscriptions * tasks} tasks"):
            task_ids = walking(client, subscriptions * tasks, seconds)
        followed = [task_ids[n * tasks : (n + 1) * tasks] for n in range(subscriptions)]
        running = [
            pool.submit(Subscription(client, ids, FUNCTION_TIMEOUT_SECONDS).run) for ids in followed
        ]
        say(f"{subscriptions} subscriptions after {time.monotonic() - start:.0f} s")
        ended = [future.result() for future in running]
        say(f"all ended after {time.monotonic() - start:.0f} s")
    return report(ended, revisions(stack, aws("dynamodb")))


def main() -> int:
    """Print the figures; the exit code tells whether anything was missed."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.soak")
    parser.add_argument("--subscriptions", type=int, default=50)
    parser.add_argument("--tasks", type=int, default=10, help="the tasks of each subscription")
    parser.add_argument("--seconds", type=int, default=120)
    options = parser.parse_args()
    running = emulators.start("soak")
    try:
        stack = deploy(running, Path(TOOLS), "mcp-soak", {**RAISED, "max_tasks": "0"})
        aws = client_of(running)
        return 1 if soak(stack, aws, options.subscriptions, options.tasks, options.seconds) else 0
    finally:
        running.stop()


if __name__ == "__main__":
    sys.exit(main())
