"""Many listens for a while, on the emulator: `make soak`.

50 clients follow 10 tasks each over the streaming endpoint. All tasks wait for an answer when the
listens begin; for two minutes they are answered or cancelled one by one, in random order. In the
end every row says by its revision how many changes there were, and every client what it heard of.

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
from infra.local import emulator as emulators
from infra.local.console import say, step
from infra.local.deployment import LocalStack, deploy
from infra.local.gateway import Gateway, deployed
from tests.integration.aws import client_of
from tests.integration.client import Client, accept
from tests.integration.listening import Listen

TOOLS = ROOT / "tests" / "integration" / "tools"
ASKED = 2
"""The revision of a task that waits for its first answer: it was created, and it asked."""
CREATORS = 3
OVER = ("completed", "failed", "cancelled")


def revisions(stack: LocalStack, dynamodb: Any) -> dict[str, int]:
    """The revision of every task."""
    pages = dynamodb.get_paginator("scan").paginate(
        TableName=stack.outputs["TasksTable"], ConsistentRead=True
    )
    return {
        item["taskId"]["S"]: int(item["revision"]["N"]) for page in pages for item in page["Items"]
    }


def waiting(client: Client, count: int) -> list[str]:
    """Tasks that wait for an answer."""
    with ThreadPoolExecutor(CREATORS) as pool:
        task_ids = list(pool.map(lambda _: client.start("ask_choice"), range(count)))
        list(pool.map(lambda task_id: client.until_status(task_id, "input_required"), task_ids))
    return task_ids


def end_one(client: Client, task_id: str) -> None:
    """Answer a task's question, or cancel it."""
    if random.random() < 0.2:
        client.cancel(task_id)
        return
    (key,) = client.get(task_id)["inputRequests"]
    client.update(task_id, {key: accept(name="soak", colour="blue")})


def report(listens: Sequence[Listen], rows: dict[str, int]) -> int:
    """Print what came of it; returns how much went wrong."""
    sent = delivered = missed = duplicates = terminal_missed = 0
    delays: list[float] = []
    for listen in listens:
        for task_id in listen.task_ids:
            changes = rows[task_id] - ASKED
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
    say(f"\n{len(listens)} listens, {len(rows)} tasks")
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


def soak(stack: LocalStack, aws: Any, listens: int, tasks: int, seconds: float) -> int:
    """Run it; returns how much went wrong."""
    direct = Client(stack.url)
    with step(f"{listens * tasks} tasks that wait for an answer"):
        task_ids = waiting(direct, listens * tasks)
    followed = [task_ids[n * tasks : (n + 1) * tasks] for n in range(listens)]
    with Gateway(deployed(stack, aws)) as gateway, ThreadPoolExecutor(listens) as pool:
        client = Client(gateway.url)
        say(f"{listens} listens for {seconds:.0f} s")
        running = [pool.submit(Listen(client, ids).run) for ids in followed]
        random.shuffle(task_ids)
        start = time.monotonic()
        for number, task_id in enumerate(task_ids):
            due = start + 10 + (seconds - 20) * number / len(task_ids)
            time.sleep(max(0.0, due - time.monotonic()))
            end_one(direct, task_id)
        ended = [future.result() for future in running]
        say(f"all ended after {time.monotonic() - start:.0f} s")
    return report(ended, revisions(stack, aws("dynamodb")))


def main() -> int:
    """Print the figures; the exit code tells whether anything was missed."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak")
    parser.add_argument("--listens", type=int, default=50)
    parser.add_argument("--tasks", type=int, default=10, help="of each listen")
    parser.add_argument("--seconds", type=float, default=120)
    options = parser.parse_args()
    running = emulators.start("soak")
    try:
        stack = deploy(running, Path(TOOLS), "mcp-soak")
        aws = client_of(running)
        return 1 if soak(stack, aws, options.listens, options.tasks, options.seconds) else 0
    finally:
        running.stop()


if __name__ == "__main__":
    sys.exit(main())
