"""The tools of a deployment: found in a folder when it is built, read from a file when it runs.

`cdk synth` imports every module of the tools folder and writes what it finds into the functions'
bundle. At run time the API reads that file and imports a tool's module only when the tool is
called: a poll imports neither the tools nor pydantic.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import timedelta
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ..protocol.headers import MirroredParameter

if TYPE_CHECKING:
    from .tool import Tool

_MILLISECOND: Final = timedelta(milliseconds=1)
FILE_NAME: Final = "catalogue.json"
PACKAGE: Final = "tools"


@dataclass(frozen=True, slots=True)
class Entry:
    """What the API knows of a tool without importing it. Times are milliseconds."""

    name: str
    definition: dict[str, Any]
    kind: str
    task: str
    ttl_ms: int
    poll_interval_ms: int
    mirrored: tuple[MirroredParameter, ...]
    module: str
    attribute: str
    state_machine_arn: str | None

    def load(self) -> Tool:
        """Import the tool's module and return its declaration."""
        tool = _declaration(getattr(importlib.import_module(self.module), self.attribute))
        if tool is None:
            raise LookupError(f"{self.module}.{self.attribute} is not a tool any more")
        return tool


class Catalogue:
    """All tools, in the order of their names."""

    def __init__(self, entries: list[Entry]) -> None:
        self._entries = {entry.name: entry for entry in sorted(entries, key=lambda e: e.name)}

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    def get(self, name: str) -> Entry | None:
        """The tool of that name, if there is one."""
        return self._entries.get(name)

    @classmethod
    def read(cls, file: Path) -> Catalogue:
        """Read what `write` wrote."""
        entries = json.loads(file.read_text(encoding="utf-8"))
        for entry in entries:
            entry["mirrored"] = tuple(
                MirroredParameter(m["header"], tuple(m["path"]), m["type"])
                for m in entry["mirrored"]
            )
        return cls([Entry(**entry) for entry in entries])

    def write(self, file: Path) -> None:
        """Write the catalogue; the same tools give the same bytes."""
        entries = [asdict(entry) for entry in self]
        file.write_text(json.dumps(entries, indent=1, sort_keys=True), encoding="utf-8")

    @classmethod
    def discover(cls, folder: Path) -> Catalogue:
        """Import the modules and packages of a folder and collect the tools they declare.

        Raises ValueError for two tools of one name, and whatever a module raises on import.
        """
        _mount(folder)
        found: dict[str, tuple[Tool, Entry]] = {}
        for module_info in pkgutil.iter_modules([str(folder)]):
            if module_info.name.startswith("_"):
                continue
            module = importlib.import_module(f"{PACKAGE}.{module_info.name}")
            for attribute, value in vars(module).items():
                tool = _declaration(value)
                if tool is None:
                    continue
                other, entry = found.setdefault(
                    tool.name, (tool, _entry(tool, module.__name__, attribute))
                )
                if other is not tool:  # the same one again is merely imported elsewhere
                    raise ValueError(
                        f"two tools are named {tool.name!r}: in {entry.module} "
                        f"and in {module.__name__}"
                    )
        return cls([entry for _, entry in found.values()])


def _mount(folder: Path) -> None:
    """Make `folder` importable as the package `tools`, whatever it is called and wherever it is."""
    if not folder.is_dir():
        raise ValueError(f"there is no tools folder {folder}")
    for name in [n for n in sys.modules if n == PACKAGE or n.startswith(f"{PACKAGE}.")]:
        del sys.modules[name]
    spec = ModuleSpec(PACKAGE, loader=None, is_package=True)
    spec.submodule_search_locations = [str(folder)]
    sys.modules[PACKAGE] = module_from_spec(spec)


def _declaration(value: Any) -> Tool | None:
    from .tool import DECLARATION, Tool

    declared = value if isinstance(value, Tool) else getattr(value, DECLARATION, None)
    return declared if isinstance(declared, Tool) else None


def _entry(tool: Tool, module: str, attribute: str) -> Entry:
    from .tool import FunctionTool, WorkflowTool

    return Entry(
        name=tool.name,
        definition=tool.definition(),
        kind="function" if isinstance(tool, FunctionTool) else "workflow",
        task=tool.task,
        ttl_ms=tool.ttl // _MILLISECOND,
        poll_interval_ms=tool.poll_every // _MILLISECOND,
        mirrored=tuple(tool.mirrored),
        module=module,
        attribute=attribute,
        state_machine_arn=tool.state_machine_arn if isinstance(tool, WorkflowTool) else None,
    )
