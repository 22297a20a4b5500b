"""uv (https://docs.astral.sh/uv/), which installs everything else. Standard library only.

A uv on the PATH is used when it is not older than the one that uv.lock pins. Otherwise pip installs
the pinned one, checked against the hashes of uv.lock.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

from .console import CommandError, run, step

ROOT = Path(__file__).resolve().parent.parent
STATE = ROOT / ".local"
LOCK = ROOT / "uv.lock"
RETRY = "Check that the package registries can be reached, and run the command again."


@functools.cache
def program() -> Path:
    """The uv to run, installed if need be; CommandError when that fails."""
    version, hashes = _pinned()
    on_path = shutil.which("uv")
    if on_path is not None and _numbers(_version(on_path)) >= _numbers(version):
        return Path(on_path)
    folder = STATE / f"uv-{version}"
    if not folder.is_dir():
        with step(f"installing uv {version}"):
            _install(version, hashes, folder)
    return folder / "bin" / "uv"


def environment() -> dict[str, str]:
    """The caller's environment for uv.

    uv trusts the system's certificates, as pip does: registries may be behind a company's proxy. A
    virtual environment that is active is not the one to install into.
    """
    inherited = {key: value for key, value in os.environ.items() if key != "VIRTUAL_ENV"}
    return {"UV_SYSTEM_CERTS": "1", **inherited}


def _pinned() -> tuple[str, list[str]]:
    """The version of uv in uv.lock, and the hashes of its wheels."""
    for package in tomllib.loads(LOCK.read_text(encoding="utf-8"))["package"]:
        if package["name"] == "uv":
            return package["version"], [wheel["hash"] for wheel in package["wheels"]]
    raise CommandError(f"{LOCK.name} has no package uv; the group infrastructure needs it")


def _version(program: str) -> str:
    """What `uv --version` prints; empty when the program does not run."""
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout


def _numbers(text: str) -> tuple[int, ...]:
    found = re.search(r"\d+(\.\d+)+", text)
    return tuple(map(int, found[0].split("."))) if found else ()


def _install(version: str, hashes: list[str], folder: Path) -> None:
    """Install the wheel into `folder`, which appears whole or not at all."""
    STATE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=STATE, prefix="uv-") as temporary:
        requirement = Path(temporary) / "uv.txt"
        requirement.write_text(
            " ".join([f"uv=={version}", *(f"--hash={value}" for value in hashes)])
        )
        command: list[str | Path] = [_python_with_pip(Path(temporary)), "-m", "pip", "install"]
        command += ["--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:"]
        command += ["--require-hashes", "--requirement", requirement]
        target = Path(temporary) / "target"
        run(
            [*command, "--target", target],
            env={**os.environ, "PIP_REQUIRE_VIRTUALENV": "0"},
            remedy=RETRY,
        )
        try:
            target.rename(folder)
        except OSError:  # another command was faster
            if not folder.is_dir():
                raise


def _python_with_pip(temporary: Path) -> Path:
    """This interpreter when it has pip; otherwise a virtual environment that has one."""
    if importlib.util.find_spec("pip") is not None:
        return Path(sys.executable)
    venv.create(temporary / "pip", with_pip=True, symlinks=True)
    return temporary / "pip" / "bin" / "python"
