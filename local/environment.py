"""What the commands need on a fresh machine: Python packages, the emulator, Node and the CDK CLI.

Everything is installed from lock files into ignored folders, once per lock file. Standard library
only: this runs before anything is installed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import venv
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .console import run, step

ROOT = Path(__file__).resolve().parent.parent
STATE = ROOT / ".local"
VENV = ROOT / ".venv"
EMULATOR_VENV = STATE / "emulator"
CDK_FOLDER = STATE / "cdk"
HERE = Path(__file__).resolve().parent

RETRY = "Check that the package registries can be reached, and run the command again."


def prepare(tests: bool = False) -> None:
    """Install what is missing, in parallel where one does not need the other."""
    STATE.mkdir(exist_ok=True)
    lock = ROOT / ("tests" if tests else "infra") / "requirements.txt"
    with ThreadPoolExecutor() as pool:
        emulator = pool.submit(
            _packages, EMULATOR_VENV, HERE / "requirements.txt", "the emulator (MiniStack)"
        )
        _packages(VENV, lock, "Python packages, Node and the CDK")
        node_packages(HERE, CDK_FOLDER, "the CDK CLI")
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


def tool_environment() -> dict[str, str]:
    """The caller's environment, with this repository's Python, Node and CDK CLI first.

    Node trusts the system's certificates, as pip does: registries may be behind a company's proxy.
    """
    path = [str(VENV / "bin"), str(CDK_FOLDER / "node_modules" / ".bin"), os.environ["PATH"]]
    return {**os.environ, "PATH": os.pathsep.join(path), "NODE_USE_SYSTEM_CA": "1"}


def python() -> Path:
    """The interpreter that has the installed packages."""
    return VENV / "bin" / "python"


def _packages(environment: Path, lock: Path, what: str) -> None:
    stamp = environment / f".{lock.parent.name}-{_digest(lock)}"
    if stamp.exists():
        return
    with step(f"installing {what}"):
        if not (environment / "bin" / "python").exists():
            venv.create(environment, with_pip=True, symlinks=True)
        interpreter = environment / "bin" / "python"
        pip: list[str | Path] = [
            interpreter,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
        ]
        run([*pip, "--require-hashes", "-r", lock], remedy=RETRY)
        stamp.touch()


def _digest(file: Path) -> str:
    version = f"{sys.version_info[0]}.{sys.version_info[1]}".encode()
    return hashlib.sha256(version + file.read_bytes()).hexdigest()[:16]
