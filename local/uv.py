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
FOLDER = STATE / "uv"
"""Where uv is installed; `bin` in it comes before the caller's PATH."""
RETRY = "Check that the package registries can be reached, and run the command again."


@functools.cache
def program() -> Path:
    """The uv to run, installed if need be; CommandError when that fails."""
    version, hashes = _pinned()
    installed = FOLDER / "bin" / "uv"
    if _is_new_enough(installed, version):
        return installed
    shutil.rmtree(FOLDER, ignore_errors=True)
    on_path = shutil.which("uv")
    if on_path is not None and _is_new_enough(on_path, version):
        return Path(on_path)
    with step(f"installing uv {version}"):
        _install(version, hashes)
    return installed


def put_on_path() -> None:
    """Let this process and those that it starts find uv by its name."""
    os.environ["PATH"] = os.pathsep.join([str(program().parent), os.environ["PATH"]])


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


def _is_new_enough(program: str | Path, version: str) -> bool:
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    except OSError:
        return False
    return _numbers(done.stdout) >= _numbers(version)


def _numbers(text: str) -> tuple[int, ...]:
    found = re.search(r"\d+(\.\d+)+", text)
    return tuple(map(int, found[0].split("."))) if found else ()


def _install(version: str, hashes: list[str]) -> None:
    """Install the wheel into FOLDER, which appears whole or not at all."""
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
            target.rename(FOLDER)
        except OSError:  # another command was faster
            if not FOLDER.is_dir():
                raise


def _python_with_pip(temporary: Path) -> Path:
    """This interpreter when it has pip; otherwise a virtual environment that has one."""
    if importlib.util.find_spec("pip") is not None:
        return Path(sys.executable)
    venv.create(temporary / "pip", with_pip=True, symlinks=True)
    return temporary / "pip" / "bin" / "python"
