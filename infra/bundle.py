"""The code of every function, as one folder that Lambda unzips: no Docker needed.

    api/ worker/ ask/ finish/    one handler each
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
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FUNCTIONS = ROOT / "functions"
sys.path.insert(0, str(FUNCTIONS))

from mcp_tasks.registry.catalogue import FILE_NAME, Catalogue  # noqa: E402

REQUIREMENTS = FUNCTIONS / "requirements.txt"
CACHE = ROOT / ".local" / "bundles"
GLIBC = ("2_34", "2_28", "2_17")
"""What wheels may ask of Amazon Linux 2023, which has 2.34."""
HANDLERS = ("api", "worker", "ask", "finish")


class BundleError(Exception):
    """The bundle could not be built; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where the code will run."""

    python: tuple[int, int]
    architecture: str | None
    """Of Linux, as wheels name it (`aarch64`); None for this machine."""


def build(catalogue: Catalogue, tools: Path, target: Target) -> Path:
    """Build the bundle and return its folder; dependencies are kept between builds."""
    folder = CACHE / f"code-{_name(target)}-{hashlib.sha256(str(tools).encode()).hexdigest()[:8]}"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(_dependencies(target), folder)
    ignore = shutil.ignore_patterns("__pycache__", "*.pyc")
    for name in (*HANDLERS, "mcp_tasks"):
        shutil.copytree(FUNCTIONS / name, folder / name, ignore=ignore)
    shutil.copytree(tools, folder / "tools", ignore=ignore)
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
    return folder


def _dependencies(target: Target) -> Path:
    """Install the locked dependencies once per lock file and target."""
    lock = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()[:16]
    done = CACHE / f"dependencies-{_name(target)}-{lock}"
    if done.is_dir():
        return done
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as temporary:
        folder = Path(temporary) / "dependencies"
        command = [
            *(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
            *("--no-compile", "--require-hashes", "--target", str(folder)),
            *("-r", str(REQUIREMENTS)),
        ]
        if target.architecture is not None:
            version = ".".join(map(str, target.python))
            command += ["--only-binary=:all:", "--python-version", version]
            command += ["--implementation", "cp"]
            for glibc in GLIBC:
                command += ["--platform", f"manylinux_{glibc}_{target.architecture}"]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if run.returncode:
            raise BundleError(
                f"pip could not install {REQUIREMENTS.relative_to(ROOT)} for {_name(target)}:\n"
                f"{run.stderr.strip()}\n"
                "Every dependency of a tool needs a wheel for that platform."
            )
        for metadata in folder.glob("bin"):
            shutil.rmtree(metadata)
        folder.rename(done)
    return done


def _name(target: Target) -> str:
    return f"py{target.python[0]}{target.python[1]}-{target.architecture or 'local'}"
