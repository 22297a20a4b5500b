"""Print what the commands do, one line for each step, and run other programs."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

SHOWN_LINES = 25
"""How many of the last lines of a failed program's output are shown."""


class CommandError(Exception):
    """A step failed. The message says which, why, and what to do about it."""


def say(text: str) -> None:
    """Print a line and flush it, so that it shows at once in a pipe, too."""
    print(text, flush=True)


@contextmanager
def step(what: str) -> Iterator[None]:
    """Print that a step begins, and at its end how long it took."""
    say(f"  ... {what}")
    start = time.monotonic()
    yield
    say(f"  ok  {what} ({time.monotonic() - start:.1f} s)")


def run(
    command: Sequence[str | Path],
    *,
    remedy: str,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> str:
    """Run a program and return its output.

    Raises CommandError with the end of the output and with `remedy` when the program fails.
    """
    try:
        done = subprocess.run(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=None if env is None else dict(env),
            cwd=cwd,
            check=False,
        )
    except OSError as error:
        raise CommandError(f"cannot run {command[0]}: {error}\n{remedy}") from None
    if done.returncode:
        tail = "\n".join(done.stdout.strip().splitlines()[-SHOWN_LINES:])
        line = " ".join(str(part) for part in command)
        raise CommandError(f"{line}\nended with {done.returncode}:\n{tail}\n{remedy}")
    return done.stdout


def fail(message: object) -> int:
    """Print an error to standard error. Returns the exit code, 1."""
    print(f"error: {message}", file=sys.stderr, flush=True)
    return 1
