"""The code of every function, as one folder that Lambda unzips: no Docker needed.

    api/ worker/ ask/ ...        one handler each
    mcp_tasks/ tools/            the library and the tools
    catalogue.json               what the tools folder declares
    pydantic/ ...                the packages that uv.lock pins for the functions

uv installs wheels for any platform, so that a bundle for arm64 is built on any machine. boto3 is
not in it: Lambda's runtime has one, and its 20 MB would double the cold start.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from . import byte_code, packages
from .packages import PackagesError, Target

ROOT = packages.ROOT
FUNCTIONS = ROOT / "functions"
sys.path.insert(0, str(FUNCTIONS))

from mcp_tasks.registry.catalogue import FILE_NAME, Catalogue  # noqa: E402

CACHE = ROOT / ".local" / "bundles"
HANDLERS = (
    *("api", "authorize", "worker", "ask", "subtasks"),
    *("finish", "publish", "deliver", "sweep"),
)
IGNORED = shutil.ignore_patterns("__pycache__", "*.pyc", ".*")
UNZIPPED_LIMIT_BYTES = 250 * 1024 * 1024
"""Lambda's, for a function's code (AWS Lambda Developer Guide, "Lambda quotas")."""
LARGEST = 5
"""How many of the largest packages an error names."""


class BundleError(Exception):
    """The bundle could not be built; the message says why and what to do."""


@contextmanager
def bundled(catalogue: Catalogue, tools: Path, target: Target) -> Iterator[Path]:
    """Build the bundle in a folder of its own, which goes when the CDK has copied it.

    Raises BundleError when a package cannot be installed or the bundle is too large for Lambda.
    """
    CACHE.mkdir(parents=True, exist_ok=True)
    python = byte_code.interpreter(target.python)
    if python is None:
        print(byte_code.missing(target.python), file=sys.stderr)
    dependencies = _dependencies(target, python)
    with tempfile.TemporaryDirectory(dir=CACHE, prefix="code-") as temporary:
        own, folder = Path(temporary) / "own", Path(temporary) / "code"
        for name in (*HANDLERS, "mcp_tasks"):
            shutil.copytree(FUNCTIONS / name, own / name, ignore=IGNORED)
        shutil.copytree(tools, own / "tools", ignore=IGNORED)
        catalogue.write(own / FILE_NAME)
        if python is not None:
            byte_code.compile_folder(own, python)
        shutil.copytree(dependencies, folder)
        _move(own, folder)
        check_size(folder, UNZIPPED_LIMIT_BYTES)
        yield folder


def _move(own: Path, folder: Path) -> None:
    """Put the functions' own code beside the packages."""
    for entry in own.iterdir():
        if (folder / entry.name).exists():
            raise BundleError(
                f"a package of the functions brings {entry.name}, which is a name of this "
                "repository's own code. The functions cannot use that package."
            )
        entry.rename(folder / entry.name)


def check_size(folder: Path, limit_bytes: int) -> None:
    """Raise BundleError, with the largest packages, when Lambda would refuse the folder."""
    sizes: Counter[str] = Counter()
    for file in folder.rglob("*"):
        if file.is_file():
            # numpy/, numpy.libs/ and numpy-2.5.5.dist-info/ are one package.
            name = re.split(r"[.-]", file.relative_to(folder).parts[0])[0]
            sizes[name] += file.stat().st_size
    if sizes.total() <= limit_bytes:
        return
    largest = ", ".join(f"{name} {_megabytes(size)}" for name, size in sizes.most_common(LARGEST))
    raise BundleError(
        f"the functions' code is {_megabytes(sizes.total())} unzipped, and Lambda takes at most "
        f"{_megabytes(limit_bytes)}. The largest packages: {largest}.\n"
        "Remove one from the dependencies in pyproject.toml, or take a smaller one in its place."
    )


def _megabytes(size_bytes: int) -> str:
    """In MB as Lambda's quota counts them: 1,048,576 bytes."""
    return f"{size_bytes / 1024**2:,.0f} MB"


def _dependencies(target: Target, python: str | None) -> Path:
    """Install and compile the locked packages, once per what is locked and way to install it."""
    try:
        wanted = packages.requirements()
    except PackagesError as error:
        raise BundleError(str(error)) from None
    options = f"{target} {packages.GLIBC} {python is not None}"
    key = hashlib.sha256(f"{options}\n{wanted}".encode()).hexdigest()[:16]
    done = CACHE / f"dependencies-{target.name}-{key}"
    if done.is_dir():
        return done
    with tempfile.TemporaryDirectory(dir=CACHE, prefix="uv-") as temporary:
        folder, requirements = Path(temporary) / "dependencies", Path(temporary) / "functions.txt"
        requirements.write_text(wanted)
        try:
            packages.install(requirements, folder, target)
        except PackagesError as error:
            raise BundleError(str(error)) from None
        shutil.rmtree(folder / "bin", ignore_errors=True)
        (folder / ".lock").unlink(missing_ok=True)
        if python is not None:
            byte_code.compile_folder(folder, python)
        try:
            folder.rename(done)
        except OSError:
            if not done.is_dir():
                raise
            # Another synthesis was faster; a folder appears under this name whole or not at all.
    return done
