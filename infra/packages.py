"""The functions' packages: what uv.lock pins, as wheels for the Python and the machine they run on.

uv is the one on the PATH, where the commands put it. Standard library only: `make add` asks here,
before anything is installed, whether Lambda can have a package.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


class PackagesError(Exception):
    """uv could not install the packages; the message has what uv says, and what to do."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where the code will run."""

    python: tuple[int, int]
    architecture: str | None
    """Of Linux, as wheels name it (`aarch64`); None for this machine."""

    @property
    def name(self) -> str:
        """For files and messages: `py313-aarch64`."""
        return f"py{self.python[0]}{self.python[1]}-{self.architecture or 'local'}"


LAMBDA = Target(python=(3, 13), architecture="aarch64")
GLIBC = "2_34"
"""Of Amazon Linux 2023, which Lambda's Python 3.13 runs on: the newest that wheels may ask for."""


def requirements(project: Path = ROOT) -> str:
    """What uv.lock pins for the functions, as a requirements file with hashes."""
    command: list[str | Path] = ["uv", "export", "--quiet", "--frozen", "--no-default-groups"]
    command += ["--no-emit-project", "--no-header", "--no-annotate", "--directory", project]
    return _run(command, "uv could not read uv.lock", "`make lock` writes it anew.")


def install(requirements: Path, folder: Path, target: Target, dry_run: bool = False) -> None:
    """Install a requirements file into a folder: wheels only, with their hashes checked.

    Raises PackagesError, for instance when a package has no wheel for the target.
    """
    command: list[str | Path] = ["uv", "pip", "install", "--quiet", "--python", sys.executable]
    command += ["--only-binary", ":all:", "--require-hashes", "--no-deps"]
    command += ["--python-version", ".".join(map(str, target.python))]
    if target.architecture is not None:
        command += ["--python-platform", f"{target.architecture}-manylinux_{GLIBC}"]
    if dry_run:
        command.append("--dry-run")
    _run(
        [*command, "--target", folder, "--requirements", requirements],
        f"uv could not install the functions' packages for {target.name}",
        "Every package of the functions needs a wheel for that platform.",
    )


def _run(command: list[str | Path], problem: str, remedy: str) -> str:
    try:
        done = subprocess.run(
            [str(part) for part in command],
            capture_output=True,
            text=True,
            check=False,
            env={"UV_SYSTEM_CERTS": "1", **os.environ},
        )
    except FileNotFoundError:
        message = f"{problem}: there is no uv on the PATH. The make targets put one there."
        raise PackagesError(message) from None
    if done.returncode:
        raise PackagesError(f"{problem}:\n{done.stderr.strip()}\n{remedy}")
    return done.stdout
