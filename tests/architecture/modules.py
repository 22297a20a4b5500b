"""The Python modules of the repository's own code: where they are, and what they are called."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Final

from tests.paths import ROOT

ROOTS: Final = {
    "functions": "functions",
    "client": "client",
    "infra": ".",
    "local": ".",
    "operations": ".",
}
"""Folder -> the folder that its modules' names begin in, as pyproject.toml sets `pythonpath`."""
SAMPLES: Final = ROOT / "functions" / "tools"
"""The sample tools, which a fork replaces by its own: nothing here looks at them."""


@dataclass(frozen=True)
class Module:
    """One file."""

    name: str
    """As an import statement names it."""
    path: Path
    text: str
    is_package: bool

    @property
    def place(self) -> str:
        """The path in the repository."""
        return self.path.relative_to(ROOT).as_posix()

    @cached_property
    def tree(self) -> ast.Module:
        """What Python makes of it."""
        return ast.parse(self.text)


@cache
def modules() -> tuple[Module, ...]:
    """All modules of functions/, client/, infra/, local/ and operations/, but no sample tool."""
    return tuple(
        _module(path, ROOT / base)
        for folder, base in ROOTS.items()
        for path in sorted((ROOT / folder).rglob("*.py"))
        if SAMPLES not in path.parents
    )


def _module(path: Path, base: Path) -> Module:
    parts = path.relative_to(base).with_suffix("").parts
    is_package = parts[-1] == "__init__"
    name = ".".join(parts[:-1] if is_package else parts)
    return Module(name, path, path.read_text(encoding="utf-8"), is_package)
