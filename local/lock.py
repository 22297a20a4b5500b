"""Renew the lock files: every version pinned, every file hashed."""

from __future__ import annotations

import sys

from .console import run, say
from .environment import RETRY, ROOT

LOCKS = {
    "functions/requirements.txt": ["pyproject.toml"],
    "infra/requirements.txt": ["pyproject.toml", "--extra=infra"],
    "tests/requirements.txt": ["pyproject.toml", "--extra=infra", "--extra=tests"],
    "local/requirements.txt": ["local/requirements.in"],
}
"""Each but the last also holds what the one before it holds, at the same versions."""


def main() -> None:
    """Write them all."""
    flags = ["--quiet", "--upgrade", "--generate-hashes", "--allow-unsafe", "--strip-extras"]
    flags += ["--no-emit-index-url", "--no-emit-find-links", "--no-header"]
    constraints: list[str] = []
    for lock, sources in LOCKS.items():
        say(f"  ... {lock}")
        command = [sys.executable, "-m", "piptools", "compile", *flags, "-o", lock, *sources]
        if "pyproject.toml" in sources:
            command += constraints
            constraints += ["--constraint", lock]
        run(command, cwd=ROOT, remedy=RETRY)


if __name__ == "__main__":
    main()
