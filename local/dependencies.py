"""The project's dependencies: `make lock` renews them all, `make add package=NAME` adds one.

python -m local.dependencies lock
python -m local.dependencies add PACKAGE [--group GROUP]

Standard library only: neither needs anything but uv.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from infra import packages
from infra.packages import LAMBDA, PackagesError

from . import uv
from .console import CommandError, fail, say, step

FILES = ("pyproject.toml", "uv.lock")


def lock(project: Path) -> str:
    """Lock the newest version of everything that pyproject.toml allows; returns what changed."""
    return _uv(project, "lock", "--upgrade")


def add(project: Path, package: str, group: str | None = None) -> list[str]:
    """Add a package to what the functions need, or to a group; returns what is newly locked.

    Either pyproject.toml and uv.lock both change, or, with a CommandError that has uv's own words,
    neither does. Other packages keep their versions.
    """
    before = {name: (project / name).read_bytes() for name in FILES}
    known = _locked(project)
    try:
        options = ["--group", group] if group else []
        _uv(project, "add", "--quiet", "--no-sync", "--bounds", "major", *options, package)
        _check_wheels(project)
    except BaseException:
        for name, content in before.items():
            (project / name).write_bytes(content)
        raise
    return sorted(_locked(project) - known)


def _check_wheels(project: Path) -> None:
    """Whether Lambda can have all packages of the functions, without downloading them."""
    with tempfile.TemporaryDirectory() as temporary:
        requirements = Path(temporary) / "functions.txt"
        try:
            requirements.write_text(packages.requirements(project))
            folder = Path(temporary) / "target"
            packages.install(requirements, folder, LAMBDA, dry_run=True)
        except PackagesError as error:
            raise CommandError(error) from None


def _locked(project: Path) -> set[str]:
    content = tomllib.loads((project / "uv.lock").read_text(encoding="utf-8"))
    return {f"{package['name']} {package['version']}" for package in content["package"]}


def _uv(project: Path, *arguments: str) -> str:
    done = subprocess.run(
        [uv.program(), *arguments, "--python", sys.executable, "--directory", project],
        env=uv.environment(),
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        raise CommandError(done.stderr.removeprefix("error: ").strip())
    return done.stderr.strip()


def main() -> int:
    """Run one command."""
    parser = argparse.ArgumentParser(prog="python -m local.dependencies")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("lock")
    add_parser = commands.add_parser("add")
    add_parser.add_argument("package")
    add_parser.add_argument("--group")
    options = parser.parse_args()
    try:
        uv.put_on_path()
        if options.command == "lock":
            with step("locking the newest versions"):
                say(lock(uv.ROOT))
            return 0
        with step(f"adding {options.package}"):
            new = add(uv.ROOT, options.package, options.group)
    except CommandError as error:
        return fail(f"{error}\n\npyproject.toml and uv.lock are as they were.")
    say(f"Newly locked: {', '.join(new) or 'nothing'}.")
    if new:
        say("`make test` wants their advisories looked up: run `make audit`, and commit")
        say("tests/audit/advisories.json with pyproject.toml and uv.lock (docs/dependencies.md).")
    return 0


if __name__ == "__main__":
    sys.exit(main())
