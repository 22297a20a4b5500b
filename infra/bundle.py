"""The code of every function, as one folder that Lambda unzips: no Docker needed.

    api/ worker/ ask/ ...        one handler each
    mcp_tasks/ tools/            the library and the tools
    catalogue.json               what the tools folder declares
    pydantic/ ...                the dependencies of functions/requirements.txt

Wheels come from pip with `--platform`, so that a bundle for arm64 is built on any machine. boto3 is
not in it: Lambda's runtime has one, and its 20 MB would double the cold start.
"""

from __future__ import annotations

import compileall
import hashlib
import os
import py_compile
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FUNCTIONS = ROOT / "functions"
sys.path.insert(0, str(FUNCTIONS))

from mcp_tasks.registry.catalogue import FILE_NAME, Catalogue  # noqa: E402

REQUIREMENTS = FUNCTIONS / "requirements.txt"
CACHE = ROOT / ".local" / "bundles"
MANYLINUX = (*(f"manylinux_2_{minor}" for minor in range(34, 16, -1)), "manylinux2014")
"""What wheels may ask for, best first: Amazon Linux 2023 has glibc 2.34."""
HANDLERS = ("api", "authorize", "worker", "ask", "finish", "publish", "deliver", "sweep")
IGNORED = shutil.ignore_patterns("__pycache__", "*.pyc", ".*")


class BundleError(Exception):
    """The bundle could not be built; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where the code will run."""

    python: tuple[int, int]
    architecture: str | None
    """Of Linux, as wheels name it (`aarch64`); None for this machine."""


@contextmanager
def bundled(catalogue: Catalogue, tools: Path, target: Target) -> Iterator[Path]:
    """Build the bundle in a folder of its own, which goes when the CDK has copied it."""
    CACHE.mkdir(parents=True, exist_ok=True)
    dependencies = _dependencies(target)
    with tempfile.TemporaryDirectory(dir=CACHE, prefix="code-") as temporary:
        folder = Path(temporary) / "code"
        shutil.copytree(dependencies, folder)
        for name in (*HANDLERS, "mcp_tasks"):
            shutil.copytree(FUNCTIONS / name, folder / name, ignore=IGNORED)
        shutil.copytree(tools, folder / "tools", ignore=IGNORED)
        catalogue.write(folder / FILE_NAME)
        if sys.version_info[:2] == target.python:
            # Halves the cold start. Unchecked hashes, so that the same code gives the same asset.
            compileall.compile_dir(
                folder,
                quiet=1,
                workers=os.cpu_count() or 1,
                invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
                stripdir=str(folder),
            )
        yield folder


def _dependencies(target: Target) -> Path:
    """Install the locked dependencies, once per lock file and way to install them."""
    options = _pip_options(target)
    key = hashlib.sha256(REQUIREMENTS.read_bytes() + " ".join(options).encode()).hexdigest()[:16]
    done = CACHE / f"dependencies-{_name(target)}-{key}"
    if done.is_dir():
        return done
    with tempfile.TemporaryDirectory(dir=CACHE, prefix="pip-") as temporary:
        folder = Path(temporary) / "dependencies"
        command = [sys.executable, "-m", "pip", "install", "--quiet", *options]
        command += ["-r", str(REQUIREMENTS), "--target", str(folder)]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if run.returncode:
            raise BundleError(
                f"pip could not install {REQUIREMENTS.relative_to(ROOT)} for {_name(target)}:\n"
                f"{run.stderr.strip()}\n"
                "Every dependency of a tool needs a wheel for that platform."
            )
        shutil.rmtree(folder / "bin", ignore_errors=True)
        try:
            folder.rename(done)
        except OSError:
            if not done.is_dir():
                raise
            # Somebody else was faster; a folder appears under this name whole or not at all.
    return done


def _pip_options(target: Target) -> list[str]:
    options = ["--disable-pip-version-check", "--no-compile", "--require-hashes"]
    if target.architecture is not None:
        options += ["--only-binary=:all:", "--implementation", "cp"]
        options += ["--python-version", ".".join(map(str, target.python))]
        for manylinux in MANYLINUX:
            options += ["--platform", f"{manylinux}_{target.architecture}"]
    return options


def _name(target: Target) -> str:
    return f"py{target.python[0]}{target.python[1]}-{target.architecture or 'local'}"
