"""Processes that an earlier command left running. Standard library only."""

from __future__ import annotations

import subprocess


def runs(pid: int, what: str) -> bool:
    """Whether a process still is the one whose command says `what`: ids are used again."""
    shown = subprocess.run(
        ["ps", "-ww", "-o", "stat=,command=", "-p", str(pid)],
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    return what in shown and not shown.startswith("Z")
