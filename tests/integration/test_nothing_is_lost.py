"""Clients die and functions are restarted; a task goes on, and its id leads back to it."""

from __future__ import annotations

import os
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

# A client that starts a task, tells its id, and then does nothing: it is to be killed.
START = """
import signal, sys
from tests.integration.support.client import Client
client = Client(sys.argv[1])
print(client.start("tally_columns", csv=sys.stdin.read(), chunk_rows=100), flush=True)
signal.pause()
"""


def kill_workers(emulator: Emulator) -> int:
    """Kill every Lambda worker of the emulator, by process id; returns how many there were."""
    listed = subprocess.run(
        ["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True
    ).stdout
    children = [
        int(pid)
        for pid, parent in map(str.split, listed.splitlines())
        if int(parent) == emulator.pid
    ]
    for pid in children:
        os.kill(pid, signal.SIGKILL)
    # The emulator tells a dead worker from a live one by its state, which lags behind the signal.
    deadline = time.monotonic() + 10
    while children and _alive(children):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return len(children)


def _alive(pids: list[int]) -> bool:
    listed = subprocess.run(
        ["ps", "-o", "stat=", "-p", ",".join(map(str, pids))],
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    return any(not state.startswith("Z") for state in listed.split())


def restart_api(stack: LocalStack, aws: object) -> None:
    """Make the API function start anew, as a redeploy does: its next request finds new workers."""
    lambda_ = aws("lambda")  # type: ignore[operator]
    name = function_name(stack, lambda_, "Api")
    variables = lambda_.get_function_configuration(FunctionName=name)["Environment"]["Variables"]
    variables["RESTARTED"] = str(time.time_ns())
    lambda_.update_function_configuration(FunctionName=name, Environment={"Variables": variables})


def finish(client: Client, task_id: str) -> dict[str, object]:
    """Answer what the tally asks, and return the tally."""
    key = client.until_asked(task_id, "publish")["publish"]
    client.update(task_id, {key: accept(show_values=True)})
    task = client.end(task_id)
    assert task["status"] == "completed"
    tally: dict[str, object] = task["result"]["structuredContent"]
    return tally


@pytest.fixture(scope="module")
def expected(stack: LocalStack) -> dict[str, object]:
    """The tally as an undisturbed client gets it."""
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
    """Before the first poll, between two, while the client is asked, after it answered."""
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
    """While a task waits for its answer no function runs: nothing is lost with all of them."""
    task_id = client.start("tally_columns", csv=CSV, chunk_rows=100)
    client.until_asked(task_id, "publish")
    assert kill_workers(emulator) > 0
    # The emulator notices a dead worker by the request that fails on it; a client polls on.
    deadline = time.monotonic() + 30
    while client.send(*client.compose("tasks/get", {"taskId": task_id})).status != 200:
        assert time.monotonic() < deadline
    assert finish(client, task_id) == expected
