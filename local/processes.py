"""Find out whether a process that an earlier command started still runs."""

from __future__ import annotations

import subprocess


def runs(pid: int, command_part: str) -> bool:
    """Whether the process runs and its command line contains `command_part`.

    The system uses process ids again: the id alone may be another process's.
    """
    shown = subprocess.run(
        ["ps", "-ww", "-o", "stat=,command=", "-p", str(pid)],
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    return command_part in shown and not shown.startswith("Z")
