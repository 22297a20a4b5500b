"""What the commands print: one line per thing done, with the time it took."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

TAIL = 25
"""How many lines of a failed command's output are shown."""


class CommandError(Exception):
    """A step failed; the message says what, why, and what to do."""


def say(text: str) -> None:
    """Print a line at once, also into a pipe."""
    print(text, flush=True)


@contextmanager
def step(what: str) -> Iterator[None]:
    """Announce a step that may take long, and tell how long it took."""
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
    """Run a command and return its output.

    Raises CommandError with the end of its output, and with `remedy`, when it fails.
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
        tail = "\n".join(done.stdout.strip().splitlines()[-TAIL:])
        line = " ".join(str(part) for part in command)
        raise CommandError(f"{line}\nended with {done.returncode}:\n{tail}\n{remedy}")
    return done.stdout


def fail(message: object) -> int:
    """Print an error; returns the exit code for it."""
    print(f"error: {message}", file=sys.stderr, flush=True)
    return 1
