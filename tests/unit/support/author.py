"""Code as an author's: modules of the tools folder."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType


def author_module(folder: Path, name: str, code: str) -> ModuleType:
    """A module `tools.<name>` of a bundle in a folder."""
    tools = folder / "tools"
    tools.mkdir(exist_ok=True)
    file = tools / f"{name}.py"
    file.write_text(code)
    spec = importlib.util.spec_from_file_location(f"tools.{name}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
