"""The processes of an emulator's functions: which there are, whose a connection is, their end."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import threading
from pathlib import Path
from typing import Final

from local.emulator import Emulator

KILL_EVERY: Final = 5.0
"""Seconds between two that are killed wherever they are, on average."""
LISTED: Final = ("/proc/net/tcp", "/proc/net/tcp6")
STARTED: Final = 5
"""Seconds after which a process has certainly started; the machine does not bear to start twice as
many as it needs."""


def workers(emulator: Emulator, age: int = 0) -> list[int]:
    """The process ids of all that are older than that: the emulator's children."""
    listed = subprocess.run(
        ["ps", "-eo", "pid=,ppid=,etimes=,stat="], capture_output=True, text=True, check=True
    ).stdout
    rows = (line.split() for line in listed.splitlines())
    return [
        int(pid)
        for pid, parent, seconds, state in rows
        if int(parent) == emulator.pid and int(seconds) >= age and state[0] != "Z"
    ]


def kill(pid: int) -> bool:
    """End a process at once; False when there is none any more."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def owner(port: int, among: list[int]) -> int | None:
    """Whose end of a connection has this local port (Linux: proc_pid_net(5), proc_pid_fd(5))."""
    inode = _inode(port)
    if inode is None:
        return None
    for pid in among:
        try:
            if any(os.readlink(end) == inode for end in Path(f"/proc/{pid}/fd").iterdir()):
                return pid
        except OSError:  # it has ended, or closed a file meanwhile
            continue
    return None


def _inode(port: int) -> str | None:
    for listed in LISTED:
        for line in Path(listed).read_text().splitlines()[1:]:
            fields = line.split()
            if int(fields[1].rpartition(":")[2], 16) == port and fields[9] != "0":
                return f"socket:[{fields[9]}]"
    return None


class Killer:
    """Kills workers: one that is named by its connection, or any, every now and then."""

    def __init__(self, emulator: Emulator, seed: int) -> None:
        self.killed = 0
        self._emulator = emulator
        self._dice = random.Random(f"{seed} workers")
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Begin to kill any."""
        self._thread.start()

    def stop(self) -> None:
        """Kill no more."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()

    def kill_owner(self, port: int) -> None:
        """Kill the worker that has this end of a connection."""
        pid = owner(port, workers(self._emulator))
        if pid is not None:
            self.killed += kill(pid)

    def _run(self) -> None:
        while not self._over.wait(self._dice.uniform(0.5, 1.5) * KILL_EVERY):
            running = workers(self._emulator, STARTED)
            if running:
                self.killed += kill(self._dice.choice(running))
