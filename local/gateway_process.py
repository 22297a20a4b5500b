"""The local gateway of `make up STREAMING=true`, in the background. Standard library only."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from .console import CommandError
from .deployment import LocalStack
from .emulator import free_port
from .environment import ROOT, STATE, python
from .processes import runs

STOP_SECONDS = 10
MODULE = "local.gateway"
PATH = "/v1/mcp"
_CHILDREN: dict[int, subprocess.Popen[bytes]] = {}
"""The gateways that this process started, which it has to wait for when they end."""


@dataclass(frozen=True, slots=True)
class GatewayProcess:
    """A gateway in front of an emulator's stack. Its log is in `.local/<emulator>/`."""

    emulator: str
    pid: int
    port: int
    url: str

    def stop(self) -> None:
        """Stop the process, which takes the function's instances along, and forget it."""
        deadline = time.monotonic() + STOP_SECONDS
        while runs(self.pid, MODULE):
            # When it is killed, the instances end with the connection to it.
            late = time.monotonic() > deadline
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL if late else signal.SIGTERM)
            time.sleep(0.05)
        if child := _CHILDREN.pop(self.pid, None):
            child.wait()
        _state_file(self.emulator).unlink(missing_ok=True)


def url_of(port: int) -> str:
    """The MCP endpoint of a gateway."""
    return f"http://127.0.0.1:{port}{PATH}"


def choose_port(emulator: str) -> int:
    """Where the emulator's gateway is to be: where it is already, so that clients find it again."""
    running = find(emulator)
    return running.port if running else free_port()


def start(stack: LocalStack, port: int = 0) -> GatewayProcess:
    """Start a gateway, and wait until the function is; one that runs is replaced.

    Without a port, it keeps the one that it has. Raises CommandError with its last words.
    """
    before = find(stack.emulator.name)
    if before is not None:
        before.stop()
    log = STATE / stack.emulator.name / "gateway.log"
    command: list[str | Path] = [python(), "-m", MODULE, "--emulator", stack.emulator.name]
    command += ["--stack", stack.name, "--port", str(port or (before.port if before else 0))]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=output,
            cwd=ROOT,
            start_new_session=True,
        )
    # It says where it is when it is ready, and nothing before.
    try:
        with cast(IO[bytes], process.stdout) as said:
            url = said.readline().decode().strip()
    except KeyboardInterrupt:
        process.terminate()
        raise
    if not url:
        process.wait()
        tail = log.read_text(errors="replace").strip()
        raise CommandError(f"the gateway did not start:\n{tail}")
    _CHILDREN[process.pid] = process
    port = int(url.split("/")[2].rpartition(":")[2])
    running = GatewayProcess(stack.emulator.name, process.pid, port, url)
    state = {"pid": running.pid, "port": running.port, "url": running.url}
    _state_file(running.emulator).write_text(json.dumps(state))
    return running


def find(emulator: str) -> GatewayProcess | None:
    """The gateway of that emulator, if it runs."""
    try:
        state = json.loads(_state_file(emulator).read_text())
    except (OSError, ValueError):
        return None
    return GatewayProcess(emulator, **state) if runs(state["pid"], MODULE) else None


def _state_file(emulator: str) -> Path:
    return STATE / emulator / "gateway.json"
