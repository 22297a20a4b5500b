"""What the commands need on a fresh machine: Python packages, the emulator, Node and the CDK CLI.

uv installs the Python packages that uv.lock pins, and npm the CDK CLI, into ignored folders, again
when a lock file has changed. Standard library only: this runs before anything is installed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from . import uv
from .console import run, step
from .uv import LOCK, RETRY

ROOT = uv.ROOT
STATE = uv.STATE
PROJECT = ROOT / "pyproject.toml"
VENV = ROOT / ".venv"
EMULATOR_VENV = STATE / "emulator"
CDK_FOLDER = STATE / "cdk"
HERE = Path(__file__).resolve().parent


def prepare(tests: bool = False) -> None:
    """Install what is missing, in parallel where one does not need the other.

    uv.lock follows a pyproject.toml that was edited, as uv has it; with UV_LOCKED=1 that is an
    error instead. Raises CommandError when a package cannot be had.
    """
    groups = {"infrastructure", "tests"} if tests else {"infrastructure"}
    lacking = _lacks(VENV, groups)
    emulator_lacking = _lacks(EMULATOR_VENV, {"emulator"})
    if lacking or emulator_lacking or not shutil.which("uv", path=tool_environment()["PATH"]):
        run([uv.program(), "lock"], env=uv.environment(), cwd=ROOT, remedy=RETRY)
    with ThreadPoolExecutor() as pool:
        emulator = pool.submit(_emulator) if emulator_lacking else None
        if lacking:
            with step("installing Python packages, Node and the CDK"):
                # Without the tests: what `make test` installed stays.
                options = [] if tests else ["--inexact"]
                _sync(VENV, groups, [*options, *(f"--group={group}" for group in sorted(groups))])
        node_packages(HERE, CDK_FOLDER, "the CDK CLI")
        if emulator is not None:
            emulator.result()


def node_packages(source: Path, folder: Path, what: str) -> None:
    """Install a locked package.json into `folder`, without running any package's scripts."""
    lock = source / "package-lock.json"
    stamp = folder / f".{_digest(lock)}"
    if stamp.exists():
        return
    with step(f"installing {what}"):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(source / name, folder)
        npm = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        run(npm, env=tool_environment(), cwd=folder, remedy=RETRY)
        stamp.touch()


def python_packages(source: Path, folder: Path, what: str) -> None:
    """Install a locked pyproject.toml into a virtual environment of its own, at `folder`."""
    stamp = folder / f".{_digest(source / 'pyproject.toml', source / 'uv.lock')}"
    if stamp.exists():
        return
    with step(f"installing {what}"):
        shutil.rmtree(folder, ignore_errors=True)
        run(
            [uv.program(), "sync", "--frozen", "--compile-bytecode", "--python", sys.executable],
            env={**uv.environment(), "UV_PROJECT_ENVIRONMENT": str(folder)},
            cwd=source,
            remedy=RETRY,
        )
        stamp.touch()


def tool_environment() -> dict[str, str]:
    """The caller's environment, with this repository's Python, Node, CDK CLI and uv first.

    Node trusts the system's certificates, as pip does: registries may be behind a company's proxy.
    """
    folders = [VENV / "bin", CDK_FOLDER / "node_modules" / ".bin", uv.FOLDER / "bin"]
    path = [*map(str, folders), os.environ["PATH"]]
    return {**os.environ, "PATH": os.pathsep.join(path), "NODE_USE_SYSTEM_CA": "1"}


def python() -> Path:
    """The interpreter that has the installed packages."""
    return VENV / "bin" / "python"


def _emulator() -> None:
    # With byte code: the emulator's functions import boto3 from here, and may not write any.
    with step("installing the emulator (MiniStack)"):
        _sync(EMULATOR_VENV, {"emulator"}, ["--only-group=emulator", "--compile-bytecode"])


def _sync(environment: Path, groups: set[str], options: list[str]) -> None:
    run(
        [uv.program(), "sync", "--frozen", "--python", sys.executable, *options],
        env={**uv.environment(), "UV_PROJECT_ENVIRONMENT": str(environment)},
        cwd=ROOT,
        remedy=RETRY,
    )
    _stamp(environment).write_text(f"{_digest(PROJECT, LOCK)}\n{' '.join(sorted(groups))}\n")


def _lacks(environment: Path, groups: set[str]) -> bool:
    """Whether the environment holds not all of these groups, or other versions of them."""
    try:
        digest, installed = _stamp(environment).read_text().splitlines()
    except (OSError, ValueError):
        return True
    return digest != _digest(PROJECT, LOCK) or not groups <= set(installed.split())


def _stamp(environment: Path) -> Path:
    return environment / ".installed"


def _digest(*files: Path) -> str:
    version = f"{sys.version_info[0]}.{sys.version_info[1]}".encode()
    return hashlib.sha256(version + b"".join(f.read_bytes() for f in files)).hexdigest()[:16]
