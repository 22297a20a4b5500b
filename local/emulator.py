"""Start, find and stop MiniStack, an AWS emulator: one process on one port of 127.0.0.1.

Standard library only: the commands run before anything is installed.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, cast

from .console import CommandError
from .environment import EMULATOR_VENV, ROOT, STATE
from .processes import runs

MODULE = "ministack_patches"
HEALTH_PATH = "/_ministack/health"
START_SECONDS = 60
STOP_SECONDS = 10
_CHILDREN: dict[int, subprocess.Popen[bytes]] = {}
"""The emulators that this process started, by process id. It has to wait for their end."""

ACCOUNT = "000000000000"
REGION = "us-east-1"

TRACEBACKS = "tracebacks.log"
TRACEBACK_FILE = "MCP_TASKS_TRACEBACK_FILE"
"""The environment variable of `mcp_tasks.environment`, which is not importable yet."""


@dataclass(frozen=True, slots=True)
class Keys:
    """The root user's keys on one emulator: they may do everything."""

    access_key_id: str
    secret_access_key: str = field(repr=False)

    @classmethod
    def random(cls) -> Keys:
        """Keys that nobody can guess."""
        return cls(f"AKIA{secrets.token_hex(8).upper()}", secrets.token_urlsafe(30))


@dataclass(frozen=True, slots=True)
class Emulator:
    """A running emulator.

    Its state file, which holds the keys and only its owner may read, and its log are in
    `.local/<name>/`.
    """

    name: str
    pid: int
    port: int
    keys: Keys = field(default_factory=Keys.random, repr=False)
    tracebacks: str | None = None
    """The file that functions write the tracebacks of crashes to, with their messages."""

    @property
    def url(self) -> str:
        """The endpoint of all AWS APIs."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """The variables that make AWS's tools and SDKs call the emulator and no AWS account."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": self.keys.access_key_id,
            "AWS_SECRET_ACCESS_KEY": self.keys.secret_access_key,
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
        }

    def alive(self) -> bool:
        """Whether the process still runs and answers."""
        return _is_emulator(self.pid) and _is_healthy(self.port)

    def stop(self) -> None:
        """Stop the process and its workers, and delete its state file and temporary files."""
        child = _CHILDREN.pop(self.pid, None)
        if child is not None or _is_emulator(self.pid):
            os.kill(self.pid, signal.SIGTERM)
            deadline = time.monotonic() + STOP_SECONDS
            while self._runs(child):
                if time.monotonic() > deadline:
                    os.killpg(self.pid, signal.SIGKILL)
                time.sleep(0.05)
            # Busy workers outlive the emulator for a while. They are in its process group.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
        _state_file(self.name).unlink(missing_ok=True)
        shutil.rmtree(_temporary(self.name), ignore_errors=True)

    def _runs(self, child: subprocess.Popen[bytes] | None) -> bool:
        return _is_emulator(self.pid) if child is None else child.poll() is None


def start(name: str, port: int | None = None, *, tracebacks: bool = False) -> Emulator:
    """Start an emulator and wait until it answers. An emulator of that name that runs is kept.

    With `tracebacks`, functions write what crashes in them to a file.

    Raises CommandError when the emulator does not start, or runs already on another port.
    """
    running = find(name)
    if running is not None:
        if port not in (None, running.port):
            raise CommandError(
                f"the emulator already runs on port {running.port}; `make down` stops it"
            )
        return running
    folder = STATE / name
    folder.mkdir(parents=True, exist_ok=True)
    port = port or free_port()
    log = folder / "emulator.log"
    # Earlier emulators leave each worker's code behind, 60 MB each.
    temporary = _temporary(name)
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    environment = _process_environment(port, temporary)
    file = str(folder / TRACEBACKS) if tracebacks else None
    if file is not None:
        Path(file).unlink(missing_ok=True)
        environment[TRACEBACK_FILE] = file  # functions inherit the emulator's environment
    keys = Keys.random()
    process = _start_process(folder, log, environment, keys)
    emulator = Emulator(name, process.pid, port, keys, file)
    _write_state(emulator)
    deadline = time.monotonic() + START_SECONDS
    while not _is_healthy(port):
        if process.poll() is not None or time.monotonic() > deadline:
            emulator.stop()
            tail = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
            raise CommandError(f"the emulator did not start on port {port}; its log ends:\n{tail}")
        time.sleep(0.05)
    return emulator


def _process_environment(port: int, temporary: Path) -> dict[str, str]:
    """MiniStack's configuration, and the caller's environment without its AWS account."""
    inherited = {
        key: value for key, value in os.environ.items() if not key.startswith(("AWS_", "PYTHON"))
    }
    return inherited | {
        "TMPDIR": str(temporary),
        "GATEWAY_PORT": str(port),
        "BIND_HOST": "127.0.0.1",
        "IOT_MTLS_ENABLED": "0",
        # Check signatures and permissions: a function may do what its role allows.
        "AUTH": "true",
        "PYTHONPATH": str(ROOT),
        "PATH": f"{EMULATOR_VENV / 'bin'}{os.pathsep}{os.environ['PATH']}",
    }


def _start_process(
    folder: Path, log: Path, environment: dict[str, str], keys: Keys
) -> subprocess.Popen[bytes]:
    with log.open("wb") as output:
        process = subprocess.Popen(
            [EMULATOR_VENV / "bin" / "python", "-P", "-m", f"local.{MODULE}"],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            cwd=folder,
            start_new_session=True,
        )
    _CHILDREN[process.pid] = process
    # Not in the environment or the command line, which others can read.
    with contextlib.suppress(BrokenPipeError), cast(IO[bytes], process.stdin) as stdin:
        stdin.write(json.dumps(asdict(keys)).encode() + b"\n")
    return process


def _write_state(emulator: Emulator) -> None:
    """Write the state file. Only its owner may read it, because of the keys."""
    state = {
        "pid": emulator.pid,
        "port": emulator.port,
        "keys": asdict(emulator.keys),
        "tracebacks": emulator.tracebacks,
    }
    path = _state_file(emulator.name)
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(state, file)


def find(name: str) -> Emulator | None:
    """The emulator of that name, or None when it does not run."""
    try:
        state = json.loads(_state_file(name).read_text())
    except (OSError, ValueError):
        return None
    if "keys" not in state:  # started before keys were random: whoever can reach it may use it
        Emulator(name, state["pid"], state["port"]).stop()
        return None
    keys, tracebacks = Keys(**state["keys"]), state.get("tracebacks")
    emulator = Emulator(name, state["pid"], state["port"], keys, tracebacks)
    return emulator if emulator.alive() else None


def _temporary(name: str) -> Path:
    return STATE / name / "tmp"


def _state_file(name: str) -> Path:
    return STATE / name / "emulator.json"


def free_port() -> int:
    """A port of 127.0.0.1 that is not in use."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _is_healthy(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{HEALTH_PATH}", timeout=2):
            return True
    except (OSError, urllib.error.URLError):
        return False


def _is_emulator(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return runs(pid, MODULE)
    return False
