"""Every definition that is deployed: those of the synthesized templates, and those of the sample
and test tools as the stack would complete them."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from infra.state_machine_definition import Definition
from local.emulator import ACCOUNT, REGION
from mcp_tasks.registry.catalogue import PACKAGE, Catalogue
from mcp_tasks.registry.tool import Tool
from mcp_tasks.registry.workflow_tool import WorkflowTool
from tests.infra.assembly import Assembly
from tests.paths import FUNCTIONS, ROOT

PLACEHOLDER: Final = re.compile(r"\$\{(\w+)\}")
"""What CloudFormation replaces in a definition."""
TOOL_FOLDERS: Final = (
    FUNCTIONS / "tools",
    ROOT / "tests" / "integration" / "tools",
    ROOT / "tests" / "integration" / "versions" / "first",
    ROOT / "tests" / "integration" / "versions" / "second",
    ROOT / "tests" / "campaigns" / "chaos" / "tools",
    ROOT / "tests" / "campaigns" / "month" / "tools",
)
"""Tools that tests/infra does not synthesize."""


def function_arn(name: str) -> str:
    """The ARN of a function. MiniStack executes state machines of its own account only."""
    return f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{name}"


def synthesized(assembly: Assembly) -> Iterator[tuple[str, str]]:
    """The names and definitions of a stack's state machines."""
    for machine in assembly.resources("AWS::StepFunctions::StateMachine").values():
        values = {
            name: _substituted(value) for name, value in machine["DefinitionSubstitutions"].items()
        }
        yield machine["StateMachineName"], _filled(machine["DefinitionString"], values)


def of_folder(folder: Path) -> Iterator[tuple[str, str]]:
    """The names and definitions of the tasks of a tools folder."""
    for tool in discovered(folder):
        wrapped = isinstance(tool, WorkflowTool) and tool.definition_file is None
        if tool.task_support != "forbidden" and not wrapped:
            text = Definition.of(tool).text
            yield f"{folder.relative_to(ROOT)}: {tool.name}", _filled(text, _PLACEHOLDERS)


def discovered(folder: Path) -> list[Tool]:
    """The tools of a folder. Their modules are forgotten: another folder may have the same."""
    try:
        return [entry.load() for entry in Catalogue.discover(folder).tools.values()]
    finally:
        for name in [n for n in sys.modules if n == PACKAGE or n.startswith(f"{PACKAGE}.")]:
            del sys.modules[name]


_PLACEHOLDERS: Final = {
    **{name: function_arn(name) for name in ("ask", "subtasks", "worker")},
    "partition": "aws",
}


def _filled(text: str, values: Mapping[str, str]) -> str:
    return PLACEHOLDER.sub(lambda found: values[found[1]], text)


def _substituted(value: Any) -> str:
    """A value of the template, with ARNs of this account."""
    match value:
        case "<AWS::Partition>":
            return "aws"
        case str():
            name = re.search(r"([\w./-]+)/Function\.Arn", value)
            assert name is not None, f"what is {value}?"
            return function_arn(re.sub(r"[^\w-]", "_", name[1]))
    raise TypeError(json.dumps(value))
