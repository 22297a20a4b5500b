"""How fast the deployed stack answers on the emulator: `make bench`.

It measures warm requests over one kept-alive connection, one after the other; the time from a
change of a row to a client with a subscription; and the cold start of the API function as the CPU
time of its imports. The machine is noisy: compare figures of one run only. The first line is a
request that no function answers: the emulator's own overhead.
"""

from __future__ import annotations

import http.client
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

from infra.bundle import bundled
from infra.deployment_profiles import LOCAL
from infra.tool_discovery import discover
from local import emulator as emulators
from local.deployment import LocalStack, deploy
from local.emulator import Emulator
from local.gateway import DeployedApi, Gateway
from mcp_tasks.durable.journal import Journal
from mcp_tasks.durable.journal_table import JournalTable
from mcp_tasks.durable.operations import DurableOperations
from mcp_tasks.durable.run import Run
from mcp_tasks.registry.durable_operations import StepOptions
from mcp_tasks.server_identity import ServerIdentity
from mcp_tasks.tasks.task import now_ms
from tests.integration.support.aws import client_of
from tests.integration.support.client import Client, accept
from tests.integration.support.subscriptions import Subscription
from tests.limits import RAISED
from tests.paths import PLATFORM_TOOLS

TOOLS = PLATFORM_TOOLS
WARM_UP, REQUESTS, CREATES = 30, 300, 60
SUBSCRIBED, ANSWER_EVERY_SECONDS = 20, 0.25
"""The tasks of one subscription, and the seconds between two answers to them."""
TARGETS = {
    "tasks/get": 25.0,
    "tools/call, creates a task": 60.0,
    "subscription: acknowledged": 300.0,
    "subscription: from the row to the client": 1000.0,
}
"""Milliseconds, at the median."""

BARE_WRITE, STEP = "a conditional write", "task.step"
MAX_STEP_RATIO = 1.3
"""Of a durable step to its function and a bare conditional write, at the median."""

COLD = """
import os, time
os.environ.update(TASKS_TABLE="t", MAILBOXES_TABLE="m", CALLERS_TABLE="c", AUTH="none",
                  STATE_MACHINE_PREFIX="arn:", CELL="c1",
                  AWS_DEFAULT_REGION="us-east-1", AWS_ACCESS_KEY_ID="x",
                  AWS_SECRET_ACCESS_KEY="x", POWERTOOLS_SERVICE_NAME="api")
before = time.process_time()
import api.handler
print((time.process_time() - before) * 1000)
"""


class Connection:
    """One HTTP connection to the endpoint, kept alive."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._path = parts.path
        self._http = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)
        self._client = Client(url)

    def send(self, method: str, params: dict[str, object] | None = None) -> dict[str, object]:
        """Send a request and return its result."""
        result: dict[str, object] = self.exchange(method, params)["result"]
        return result

    def exchange(self, method: str, params: dict[str, object] | None = None) -> dict[str, Any]:
        """Send a request and return the message that answers it."""
        body, headers = self._client.compose(method, params)
        self._http.request(
            "POST", self._path, body, {"Content-Type": "application/json", **headers}
        )
        message: dict[str, Any] = json.loads(self._http.getresponse().read())
        return message

    def health(self) -> None:
        """A request that the emulator answers itself."""
        self._http.request("GET", "/_ministack/health")
        self._http.getresponse().read()


def milliseconds(what: Callable[[], object], times: int) -> list[float]:
    """The time of each of `times` calls."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        what()
        taken.append((time.perf_counter() - start) * 1000)
    return sorted(taken)


def measure(stack: LocalStack) -> dict[str, list[float]]:
    """All warm figures."""
    connection = Connection(stack.url)
    arguments = {"monthly": 1, "years": 1, "share_of_stocks": 0.5, "runs": 100}
    call: dict[str, object] = {"name": "estimate_savings", "arguments": arguments}
    task = connection.send("tools/call", call)
    get = {"taskId": task["taskId"]}
    warm = {
        "emulator alone": (connection.health, REQUESTS),
        "server/discover": (lambda: connection.send("server/discover"), REQUESTS),
        "tools/list": (lambda: connection.send("tools/list"), REQUESTS),
        "tools/call, within the request": (
            lambda: connection.send("tools/call", {"name": "hello", "arguments": {"name": "x"}}),
            REQUESTS,
        ),
        "resources/read": (
            lambda: connection.send("resources/read", {"uri": "growth://assumptions"}),
            REQUESTS,
        ),
        "tasks/get": (lambda: connection.send("tasks/get", get), REQUESTS),
    }
    figures = {}
    for name, (request, times) in warm.items():
        milliseconds(request, WARM_UP)
        figures[name] = milliseconds(request, times)
    # A task runs while the next is created; waiting for its end keeps it out of the next figure.
    creates = []
    for _ in range(CREATES):
        start = time.perf_counter()
        task = connection.send("tools/call", call)
        creates.append((time.perf_counter() - start) * 1000)
        while connection.send("tasks/get", {"taskId": task["taskId"]})["status"] == "working":
            time.sleep(0.02)
    figures["tools/call, creates a task"] = sorted(creates)
    return figures


def unknown(stack: LocalStack) -> dict[str, list[float]]:
    """Polls of a task that is somebody else's and of one that never was, in turn.

    Whoever could tell them apart by time would learn that a task exists.
    """
    connection = Connection(stack.url)
    arguments = {"monthly": 1, "years": 1, "share_of_stocks": 0.5, "runs": 100}
    call: dict[str, object] = {"name": "estimate_savings", "arguments": arguments}
    task_id = str(connection.send("tools/call", call)["taskId"])
    while connection.send("tasks/get", {"taskId": task_id})["status"] == "working":
        time.sleep(0.02)
    client_of(stack.emulator)("dynamodb").update_item(
        TableName=stack.outputs["TasksTable"],
        Key={"taskId": {"S": task_id}},
        UpdateExpression="SET principal = :other",
        ExpressionAttributeValues={":other": {"S": "somebody"}},
    )
    figures: dict[str, list[float]] = {}
    ids = {"not yours": task_id, "never was": f"c1-{'f' * 32}"}
    for _ in range(REQUESTS):
        for name, asked in ids.items():
            start = time.perf_counter()
            error = connection.exchange("tasks/get", {"taskId": asked})["error"]
            taken = (time.perf_counter() - start) * 1000
            figures.setdefault(f"tasks/get, {name}", []).append(taken)
            assert error["code"] == -32602
    return {name: sorted(found) for name, found in figures.items()}


def push(stack: LocalStack) -> dict[str, list[float]]:
    """How long a subscription's acknowledgement takes, and each change until it is delivered.

    The tasks wait for an answer until the subscription is open.
    """
    with Gateway(DeployedApi.read(stack, client_of(stack.emulator))) as gateway:
        client = Client(gateway.url)
        task_ids = []
        for _ in range(SUBSCRIBED):
            task_ids.append(client.start("estimate_savings", monthly=1, years=1, runs=1000))
            client.until_asked(task_ids[-1], "answer")
        subscription = Subscription(client, task_ids)
        with ThreadPoolExecutor(1) as pool:
            ended = pool.submit(subscription.run)
            for task_id in task_ids:
                time.sleep(ANSWER_EVERY_SECONDS)
                (key,) = client.get(task_id)["inputRequests"]
                client.update(task_id, {key: accept(share_of_stocks=0.5)})
            ended.result()
        acknowledged = [Subscription(client, task_ids).run().acknowledged_after for _ in range(10)]
        acknowledged.append(subscription.acknowledged_after)
    delays = [received.delay for received in subscription.received if received.delay is not None]
    return {
        "subscription: acknowledged": sorted(1000 * s for s in acknowledged),
        # Without the states that the tasks had when the subscription began.
        "subscription: from the row to the client": sorted(1000 * s for s in delays[SUBSCRIBED:]),
    }


def steps(stack: LocalStack, emulator: Emulator) -> dict[str, list[float]]:
    """A durable step, and the same function with a conditional write of the same item, in turn."""
    table, dynamodb = stack.outputs["JournalTable"], client_of(emulator)("dynamodb")
    payloads: Any = None
    journal = Journal(
        JournalTable(dynamodb, table), payloads, "bench", str(uuid4()), 60_000, now_ms
    )
    run = Run(journal, now_ms, sys.maxsize, timedelta(days=1))
    operations = DurableOperations(run)
    taken: dict[str, list[float]] = {BARE_WRITE: [], STEP: []}

    def step() -> None:
        with suppress(StopIteration):
            operations.step(json.loads, ("[1, 2, 3]",), StepOptions()).send(None)

    def write() -> None:
        value = json.loads("[1, 2, 3]")
        dynamodb.put_item(
            TableName=table,
            Item={
                "pk": {"S": journal.partition},
                "sk": {"S": str(uuid4())},
                "kind": {"S": "step"},
                "name": {"S": "loads"},
                "arguments": {"S": "0" * 32},
                "state": {"S": "done"},
                "attempts": {"N": "1"},
                "value": {"S": json.dumps(value)},
                "writtenAt": {"N": str(now_ms())},
                "expiresAt": {"N": "0"},
            },
            ConditionExpression="attribute_not_exists(pk)",
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
        )

    for _ in range(WARM_UP + REQUESTS):
        taken[BARE_WRITE] += milliseconds(write, 1)
        taken[STEP] += milliseconds(step, 1)
    return {name: sorted(times[WARM_UP:]) for name, times in taken.items()}


def cold_start() -> list[float]:
    """CPU milliseconds of the API function's imports and set-up, in fresh processes."""
    command = [sys.executable, "-c", COLD]
    with bundled(discover(TOOLS), TOOLS, LOCAL.target) as bundle:
        ServerIdentity("bench", "1").write(bundle)
        environment = {**os.environ, "PYTHONPATH": os.fspath(bundle)}
        return sorted(
            float(subprocess.check_output(command, env=environment, cwd=bundle)) for _ in range(9)
        )


def main() -> int:
    """Print the figures; the exit code tells whether the targets were met."""
    running = emulators.start("bench")
    try:
        stack = deploy(running, TOOLS, context=RAISED)
        figures = {**measure(stack), **unknown(stack), **push(stack), **steps(stack, running)}
    finally:
        running.stop()
    figures["cold start of the API (CPU)"] = cold_start()
    print(f"\n{'milliseconds':34}{'p50':>8}{'p95':>8}{'target p50':>12}")
    missed = 0
    for name, taken in figures.items():
        p50, p95 = statistics.median(taken), taken[int(len(taken) * 0.95)]
        target = TARGETS.get(name)
        missed += target is not None and p50 > target
        print(f"{name:34}{p50:8.1f}{p95:8.1f}{target or '':>12}")
    ratio = statistics.median(figures[STEP]) / statistics.median(figures[BARE_WRITE])
    print(f"\na step takes {ratio:.2f} times as long as its write; target {MAX_STEP_RATIO}")
    missed += ratio > MAX_STEP_RATIO
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
