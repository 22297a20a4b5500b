"""Tasks go on when clients are killed and functions are restarted."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time

import pytest

from local.deployment import LocalStack
from local.emulator import Emulator
from tests.integration.support.aws import function_name
from tests.integration.support.client import Client, accept
from tests.paths import ROOT

CSV = "colour,n\n" + "red,1\nblue,2\n" * 300

# The client that is killed: it starts a task, prints its id, and waits.
START = """
import signal, sys
from tests.integration.support.client import Client
client = Client(sys.argv[1])
print(client.start("tally_columns", csv=sys.stdin.read(), chunk_rows=100), flush=True)
signal.pause()
"""


def kill_workers(emulator: Emulator, *functions: str) -> int:
    """Kill the emulator's workers of these Lambda functions, or of all, by process id.

    Returns how many were killed.
    """
    listed = subprocess.run(
        ["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True
    ).stdout
    children = [
        int(pid)
        for pid, parent in map(str.split, listed.splitlines())
        if int(parent) == emulator.pid
    ]
    if functions:
        children = [pid for pid in children if _function(pid) in functions]
    for pid in children:
        os.kill(pid, signal.SIGKILL)
    # The emulator looks at a worker's process state, which changes some time after the signal.
    deadline = time.monotonic() + 10
    while children and _alive(children):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return len(children)


def _function(pid: int) -> str | None:
    """The function that a worker runs, by the environment variable that the emulator gives it."""
    command = ["ps", "eww", "-o", "command=", "-p", str(pid)]
    shown = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    found = re.search(r"\bAWS_LAMBDA_FUNCTION_NAME=(\S+)", shown)
    return found and found[1]


def _alive(pids: list[int]) -> bool:
    listed = subprocess.run(
        ["ps", "-o", "stat=", "-p", ",".join(map(str, pids))],
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    return any(not state.startswith("Z") for state in listed.split())


def restart_api(stack: LocalStack, aws: object) -> None:
    """Let the API function's next request start new workers, as after a deployment."""
    lambda_ = aws("lambda")  # type: ignore[operator]
    name = function_name(stack, lambda_, "Api")
    variables = lambda_.get_function_configuration(FunctionName=name)["Environment"]["Variables"]
    variables["RESTARTED"] = str(time.time_ns())
    lambda_.update_function_configuration(FunctionName=name, Environment={"Variables": variables})


def finish(client: Client, task_id: str) -> dict[str, object]:
    """Answer the task's question, and return its result."""
    key = client.until_asked(task_id, "publish")["publish"]
    client.update(task_id, {key: accept(show_values=True)})
    task = client.end(task_id)
    assert task["status"] == "completed"
    tally: dict[str, object] = task["result"]["structuredContent"]
    return tally


@pytest.fixture(scope="module")
def expected(stack: LocalStack) -> dict[str, object]:
    """The result of an undisturbed call."""
    client = Client(stack.url)
    return finish(client, client.start("tally_columns", csv=CSV, chunk_rows=100))


def test_a_killed_clients_task_is_finished_by_another(
    stack: LocalStack, expected: dict[str, object]
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", START, stack.url],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'functions'}"},
    ) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(CSV)
        process.stdin.close()
        task_id = process.stdout.readline().strip()
        process.kill()
    assert finish(Client(stack.url), task_id) == expected


@pytest.mark.parametrize("moment", ["created", "working", "asked", "answered"])
def test_restarting_the_api_loses_nothing(
    stack: LocalStack, aws: object, client: Client, expected: dict[str, object], moment: str
) -> None:
    """Restarts before the first poll, between two polls, before the answer, and after it."""
    task_id = client.start("tally_columns", csv=CSV, chunk_rows=100)
    if moment == "created":
        restart_api(stack, aws)
    if moment == "working":
        client.get(task_id)
        restart_api(stack, aws)
    key = client.until_asked(task_id, "publish")["publish"]
    if moment == "asked":
        restart_api(stack, aws)
    client.update(task_id, {key: accept(show_values=True)})
    if moment == "answered":
        restart_api(stack, aws)
    assert client.end(task_id)["result"]["structuredContent"] == expected


@pytest.mark.usefixtures("all_deployed")
def test_killing_every_idle_worker_loses_nothing(
    emulator: Emulator, client: Client, expected: dict[str, object]
) -> None:
    """While a task waits for its answer, it needs no running function."""
    task_id = client.start("tally_columns", csv=CSV, chunk_rows=100)
    client.until_asked(task_id, "publish")
    assert kill_workers(emulator) > 0
    # The emulator notices a dead worker when a request to it fails. Clients go on polling.
    deadline = time.monotonic() + 30
    while client.send(*client.compose("tasks/get", {"taskId": task_id})).status != 200:
        assert time.monotonic() < deadline
    assert finish(client, task_id) == expected
