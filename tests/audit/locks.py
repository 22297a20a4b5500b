"""What the lock files pin: packages, versions and hashes."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from packaging.utils import canonicalize_name

from tests.paths import ROOT

REGISTRIES = {"uv.lock": "PyPI", "package-lock.json": "npm"}
"""The ecosystem of a lock file, in OSV's words, by the file's name."""
GENERATED = {"cdk.out", "node_modules", "__pycache__"}


@dataclass(frozen=True, order=True)
class Package:
    """One entry of a lock file."""

    ecosystem: str
    name: str
    version: str
    hashed: bool = True
    """Whether an installer that reads the entry refuses another file than the one locked."""


def lock_files(ecosystem: str, root: Path = ROOT) -> list[Path]:
    """Every lock file of the repository, also one that was added a minute ago."""
    found = []
    for folder, folders, files in os.walk(root):
        folders[:] = [f for f in folders if f not in GENERATED and not f.startswith(".")]
        found += [Path(folder, name) for name in files if REGISTRIES.get(name) == ecosystem]
    return sorted(found)


def packages(lock: Path) -> list[Package]:
    """The entries of a lock file; ValueError for one without an exact version."""
    read = _python if REGISTRIES[lock.name] == "PyPI" else _node
    return sorted(read(lock.read_text(encoding="utf-8")))


def locked(ecosystem: str, root: Path = ROOT) -> set[Package]:
    """The entries of all lock files of one ecosystem."""
    return {package for lock in lock_files(ecosystem, root) for package in packages(lock)}


def _python(text: str) -> Iterator[Package]:
    for entry in tomllib.loads(text)["package"]:
        if "virtual" in entry["source"]:  # the project itself
            continue
        if not entry.get("version"):
            raise ValueError(f"no exact version: {entry['name']}")
        files = [*entry.get("wheels", []), *([entry["sdist"]] if "sdist" in entry else [])]
        hashed = bool(files) and all(
            re.fullmatch(r"sha256:[0-9a-f]{64}", file.get("hash", "")) for file in files
        )
        yield Package("PyPI", canonicalize_name(entry["name"]), entry["version"], hashed)


def _node(text: str) -> Iterator[Package]:
    for path, entry in json.loads(text)["packages"].items():
        if not path:  # the project itself
            continue
        if not entry.get("version"):
            raise ValueError(f"no exact version: {path}")
        name = entry.get("name") or path.rpartition("node_modules/")[2]
        hashed = entry.get("integrity", "").startswith("sha512-")
        yield Package("npm", name, entry["version"], hashed)
