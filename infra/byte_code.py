"""Byte code for the Python that runs the functions, which halves their cold start.

Python's byte code belongs to one minor version, so that version compiles it: the interpreter that
runs this, or another one that uv finds on this machine.

    python -m infra.byte_code    let uv install Lambda's Python if there is none
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from pathlib import Path

from .packages import LAMBDA


def missing(version: tuple[int, int]) -> str:
    """What to say when no interpreter of that version was found."""
    python = ".".join(map(str, version))
    return (
        f"WARNING: this machine has no Python {python}, so the functions are deployed without byte "
        f"code, and every cold start takes about twice as long. Install Python {python}, for "
        f"instance by `uv python install {python}`, and run the command again."
    )


@functools.cache
def interpreter(version: tuple[int, int]) -> str | None:
    """A Python of that version; None when there is none on this machine."""
    if sys.version_info[:2] == version:
        return sys.executable
    command = ["uv", "python", "find", "--no-project", "--no-python-downloads"]
    done = subprocess.run(
        [*command, f"cpython@{version[0]}.{version[1]}"],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() or None if done.returncode == 0 else None


def compile_folder(folder: Path, python: str) -> None:
    """Compile all modules of a folder. What does not compile is left as it is.

    The byte code holds hashes of the sources, which nobody checks, and no times, so that the same
    code gives the same files.
    """
    command = [python, "-I", "-m", "compileall", "-q", "-j", "0"]
    command += ["--invalidation-mode", "unchecked-hash", "-s", str(folder), str(folder)]
    subprocess.run(command, capture_output=True, check=False)


def main() -> None:
    """Install Lambda's Python where it is missing; the deployment goes on without it."""
    if interpreter(LAMBDA.python) is not None:
        return
    python = ".".join(map(str, LAMBDA.python))
    print(f"  ... installing Python {python}, which compiles the functions", flush=True)
    command = ["uv", "python", "install", "--no-bin", python]
    trusting = {"UV_SYSTEM_CERTS": "1", **os.environ}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=trusting)
    if done.returncode:
        print(f"uv could not install it:\n{done.stderr.strip()}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
