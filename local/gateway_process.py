"""Start, find and stop the streaming gateway (`local/gateway/`) as a process in the background.

Standard library only: the commands run before anything is installed.
"""

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
"""The gateways that this process started, by process id. It has to wait for their end."""


@dataclass(frozen=True, slots=True)
class GatewayProcess:
    """A gateway that serves a stack of an emulator. Its log is in `.local/<emulator>/`."""

    emulator: str
    pid: int
    port: int
    url: str

    def stop(self) -> None:
        """Stop the process and delete its state file. The process ends the function's instances."""
        deadline = time.monotonic() + STOP_SECONDS
        while runs(self.pid, MODULE):
            # Instances of a killed gateway end too, when their connection to it ends.
            late = time.monotonic() > deadline
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL if late else signal.SIGTERM)
            time.sleep(0.05)
        if child := _CHILDREN.pop(self.pid, None):
            child.wait()
        _state_file(self.emulator).unlink(missing_ok=True)


def url_of(port: int) -> str:
    """The MCP endpoint of a gateway on a port of 127.0.0.1."""
    return f"http://127.0.0.1:{port}{PATH}"


def choose_port(emulator: str) -> int:
    """The port for an emulator's gateway: that of the running one, so that its URL stays valid."""
    running = find(emulator)
    return running.port if running else free_port()


def start(stack: LocalStack, port: int = 0) -> GatewayProcess:
    """Start a gateway and wait until it serves. A gateway that runs already is replaced.

    Port 0 keeps the port of the gateway that is replaced, or chooses a free one. Raises
    CommandError with the process's log when the gateway does not start.
    """
    name = stack.emulator.name
    before = find(name)
    if before is not None:
        before.stop()
    log = STATE / name / "gateway.log"
    process = _start_process(stack, port or (before.port if before else 0), log)
    # The gateway prints its URL when it is ready, and nothing before.
    try:
        with cast(IO[bytes], process.stdout) as stdout:
            url = stdout.readline().decode().strip()
    except KeyboardInterrupt:
        process.terminate()
        raise
    if not url:
        process.wait()
        tail = log.read_text(errors="replace").strip()
        raise CommandError(f"the gateway did not start:\n{tail}")
    _CHILDREN[process.pid] = process
    port = int(url.split("/")[2].rpartition(":")[2])
    running = GatewayProcess(name, process.pid, port, url)
    state = {"pid": running.pid, "port": running.port, "url": running.url}
    _state_file(running.emulator).write_text(json.dumps(state))
    return running


def _start_process(stack: LocalStack, port: int, log: Path) -> subprocess.Popen[bytes]:
    command: list[str | Path] = [python(), "-m", MODULE, "--emulator", stack.emulator.name]
    command += ["--stack", stack.name, "--port", str(port)]
    with log.open("wb") as stderr:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            cwd=ROOT,
            start_new_session=True,
        )


def find(emulator: str) -> GatewayProcess | None:
    """The gateway of that emulator, or None when it does not run."""
    try:
        state = json.loads(_state_file(emulator).read_text())
    except (OSError, ValueError):
        return None
    return GatewayProcess(emulator, **state) if runs(state["pid"], MODULE) else None


def _state_file(emulator: str) -> Path:
    return STATE / emulator / "gateway.json"
