"""What a call costs: its CPU time, and its memory over what the process had before.

Each call is made in a process of its own, a copy of this one.
"""

from __future__ import annotations

import json
import os
import resource
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

STATUS: Final = Path("/proc/self/status")
MOST: Final = {resource.RLIMIT_CPU: 30, resource.RLIMIT_AS: 3 * 1024**3}
"""Seconds and bytes that end a process."""
RESET_PEAK: Final = "5"
"""Linux, proc_pid_clear_refs(5): the peak becomes what is used now."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a call has cost."""

    cpu_seconds: float
    peak_megabytes: float
    answer: str


def cost_of(call: Callable[[], str]) -> Cost | None:
    """Make a call in a process of its own; None when that process ended without an answer."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            with os.fdopen(writing, "w") as end:
                end.write(json.dumps(asdict(_measured(call))))
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as start:
        written = start.read()
    os.waitpid(child, 0)
    return Cost(**json.loads(written)) if written else None


def _measured(call: Callable[[], str]) -> Cost:
    for kind, most in MOST.items():
        resource.setrlimit(kind, (most, most))
    Path("/proc/self/clear_refs").write_text(RESET_PEAK)
    idle, began = _megabytes("VmRSS"), time.process_time()
    answer = call()
    return Cost(time.process_time() - began, _megabytes("VmHWM") - idle, answer)


def _megabytes(name: str) -> float:
    lines = STATUS.read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{name}:"))
