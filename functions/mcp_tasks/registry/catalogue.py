"""The catalogue: which tools, resources and prompts a deployment offers.

`cdk synth` imports every module of the tools folder and writes the declarations that it finds to a
file in the functions' bundle. At run time the API function reads that file, and imports a module
only when one of its tools, resources or prompts is called. So a poll imports neither the tools nor
pydantic.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import timedelta
from functools import cached_property
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ..protocol.headers import MirroredParameter
from .uri_template import UriTemplate

if TYPE_CHECKING:
    from .prompt import Prompt
    from .resource import Resource
    from .tool import Tool

    Declaration = Tool | Resource | Prompt

_MILLISECOND: Final = timedelta(milliseconds=1)
FILE_NAME: Final = "catalogue.json"
PACKAGE: Final = "tools"


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What the API function knows about a declaration without importing its module."""

    name: str
    definition: dict[str, Any]
    module: str
    attribute: str

    def _load(self) -> Any:
        """Import the module and return the declaration."""
        value = getattr(importlib.import_module(self.module), self.attribute)
        declaration = _declaration(value)
        if declaration is None:
            raise LookupError(f"{self.module}.{self.attribute} is not declared any more")
        return declaration


@dataclass(frozen=True, kw_only=True)
class ToolEntry(Entry):
    """A tool."""

    kind: str
    task_support: str
    """`forbidden`, `optional` or `required` (see `tool.TaskSupport`)."""
    without_tasks: str
    """`request` or `task` (see `tool.WithoutTasks`)."""
    asks_first: bool
    ttl_ms: int
    poll_interval_ms: int
    timeout_ms: int
    """Of one run of the function, or of one step of the workflow."""
    sequential: bool
    """Whether no two steps run at once, and none while the task waits for an answer."""
    mirrored: tuple[MirroredParameter, ...]
    scopes: tuple[str, ...] = ()
    state_machine_arn: str | None

    def load(self) -> Tool:
        """Import the tool."""
        tool: Tool = self._load()
        return tool


@dataclass(frozen=True, kw_only=True)
class ResourceEntry(Entry):
    """A resource or a resource template; its `name` is the URI or the template."""

    fresh_ms: int
    cache_scope: str

    @cached_property
    def uri(self) -> UriTemplate:
        """The URI, or the template."""
        return UriTemplate(self.name)

    def load(self) -> Resource:
        """Import the resource."""
        resource: Resource = self._load()
        return resource


@dataclass(frozen=True, kw_only=True)
class PromptEntry(Entry):
    """A prompt."""

    def load(self) -> Prompt:
        """Import the prompt."""
        prompt: Prompt = self._load()
        return prompt


class Catalogue:
    """Tools, resources and prompts, each sorted by name."""

    def __init__(
        self,
        tools: Iterable[ToolEntry] = (),
        resources: Iterable[ResourceEntry] = (),
        prompts: Iterable[PromptEntry] = (),
    ) -> None:
        self.tools = {entry.name: entry for entry in sorted(tools, key=lambda e: e.name)}
        self.resources = {entry.name: entry for entry in sorted(resources, key=lambda e: e.name)}
        self.prompts = {entry.name: entry for entry in sorted(prompts, key=lambda e: e.name)}

    def resource(self, uri: str) -> tuple[ResourceEntry, dict[str, str]] | None:
        """The resource of a URI, and the values of its variables; None when there is none.

        A resource with exactly this URI has precedence over a template that matches it.
        """
        if uri in self.resources and not self.resources[uri].uri.variables:
            return self.resources[uri], {}
        for entry in self.resources.values():
            variables = entry.uri.match(uri) if entry.uri.variables else None
            if variables is not None:
                return entry, variables
        return None

    @classmethod
    def read(cls, file: Path) -> Catalogue:
        """Read a file that `write` wrote."""
        found = json.loads(file.read_text(encoding="utf-8"))
        for entry in found["tools"]:
            entry["mirrored"] = tuple(
                MirroredParameter(m["header"], tuple(m["path"]), m["type"])
                for m in entry["mirrored"]
            )
            entry["scopes"] = tuple(entry["scopes"])
        return cls(
            [ToolEntry(**entry) for entry in found["tools"]],
            [ResourceEntry(**entry) for entry in found["resources"]],
            [PromptEntry(**entry) for entry in found["prompts"]],
        )

    def write(self, file: Path) -> None:
        """Write the catalogue to a file. The same declarations give the same bytes."""
        found = {
            "tools": [asdict(entry) for entry in self.tools.values()],
            "resources": [asdict(entry) for entry in self.resources.values()],
            "prompts": [asdict(entry) for entry in self.prompts.values()],
        }
        file.write_text(json.dumps(found, indent=1, sort_keys=True), encoding="utf-8")

    @classmethod
    def discover(cls, folder: Path) -> Catalogue:
        """Import the modules and packages of a folder, and collect what they declare.

        Raises ValueError when two tools, two prompts or two resources have the same name, and
        whatever a module raises on import.
        """
        _mount(folder)
        found: dict[tuple[type[Entry], str], tuple[Declaration, Entry]] = {}
        for module_info in pkgutil.iter_modules([str(folder)]):
            if module_info.name.startswith("_"):
                continue
            module = importlib.import_module(f"{PACKAGE}.{module_info.name}")
            for attribute, value in vars(module).items():
                declared = _declaration(value)
                if declared is None:
                    continue
                new = _entry(declared, module.__name__, attribute)
                other, entry = found.setdefault((type(new), new.name), (declared, new))
                if other is not declared:  # A module may import another module's declaration.
                    kind = type(new).__name__.removesuffix("Entry").lower()
                    raise ValueError(
                        f"two {kind}s are named {new.name!r}: in {entry.module} "
                        f"and in {module.__name__}"
                    )
        entries = [entry for _, entry in found.values()]
        return cls(
            [entry for entry in entries if isinstance(entry, ToolEntry)],
            [entry for entry in entries if isinstance(entry, ResourceEntry)],
            [entry for entry in entries if isinstance(entry, PromptEntry)],
        )


def _mount(folder: Path) -> None:
    """Make `folder` importable as the package `tools`, under whatever path it lies."""
    if not folder.is_dir():
        raise ValueError(f"there is no tools folder {folder}")
    for name in [n for n in sys.modules if n == PACKAGE or n.startswith(f"{PACKAGE}.")]:
        del sys.modules[name]
    spec = ModuleSpec(PACKAGE, loader=None, is_package=True)
    spec.submodule_search_locations = [str(folder)]
    sys.modules[PACKAGE] = module_from_spec(spec)


def _declaration(value: Any) -> Declaration | None:
    from .decorated_function import DECLARATION
    from .prompt import Prompt
    from .resource import Resource
    from .tool import Tool

    kinds = (Tool, Resource, Prompt)
    declared = value if isinstance(value, kinds) else getattr(value, DECLARATION, None)
    return declared if isinstance(declared, kinds) else None


def _entry(declared: Declaration, module: str, attribute: str) -> Entry:
    from .prompt import Prompt
    from .resource import Resource
    from .workflow_tool import WorkflowTool

    where = {"module": module, "attribute": attribute}
    if isinstance(declared, Prompt):
        return PromptEntry(name=declared.name, definition=declared.definition(), **where)
    if isinstance(declared, Resource):
        return ResourceEntry(
            name=declared.uri.text,
            definition=declared.definition(),
            fresh_ms=declared.fresh_for // _MILLISECOND,
            cache_scope=declared.cache_scope,
            **where,
        )
    return ToolEntry(
        name=declared.name,
        definition=declared.definition(),
        kind="workflow" if isinstance(declared, WorkflowTool) else "function",
        task_support=declared.task_support,
        without_tasks=declared.for_clients_without_tasks,
        asks_first=declared.ask_first is not None,
        ttl_ms=declared.ttl // _MILLISECOND,
        poll_interval_ms=declared.poll_every // _MILLISECOND,
        timeout_ms=declared.timeout // _MILLISECOND,
        sequential=declared.sequential,
        mirrored=tuple(declared.mirrored),
        scopes=tuple(declared.scopes),
        state_machine_arn=declared.state_machine_arn
        if isinstance(declared, WorkflowTool)
        else None,
        **where,
    )
