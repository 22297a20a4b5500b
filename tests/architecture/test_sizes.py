"""No module over 300 lines, no function over 40, no signature over 6 parameters beside self.

Sample tools are not looked at. The fields of a dataclass are no parameters.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from tests.architecture.modules import Module, modules

MAX_MODULE_LINES: Final = 300
MAX_FUNCTION_LINES: Final = 40
"""With the signature and the docstring, without decorators."""
MAX_PARAMETERS: Final = 6

AUTHORS: Final = "a decorator of tools' authors: each parameter is one of their options, documented"
OPERATION: Final = "a durable operation: each parameter is one of its authors' options, documented"
EXCEPTIONS: Final = {
    "functions/mcp_tasks/registry/function_tool.py::tool": AUTHORS,
    "functions/mcp_tasks/registry/workflow_tool.py::workflow_tool": AUTHORS,
    "functions/mcp_tasks/registry/resource.py::resource": AUTHORS,
    "functions/mcp_tasks/registry/prompt.py::prompt": AUTHORS,
    "functions/mcp_tasks/registry/durable_calls.py::map": OPERATION,
    "functions/mcp_tasks/registry/async_durable_calls.py::map": OPERATION,
}
"""What may be larger, a module or a function of one, and why."""


def too_large(module: Module) -> Iterator[tuple[str, str]]:
    """What is too large in a module: where it is, and by how much."""
    lines = len(module.text.splitlines())
    if lines > MAX_MODULE_LINES:
        yield module.place, f"{lines} lines, at most {MAX_MODULE_LINES}"
    for function in ast.walk(module.tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for problem in _problems(function):
                yield f"{module.place}::{function.name}", problem


def _problems(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    lines = (function.end_lineno or 0) - function.lineno + 1
    if lines > MAX_FUNCTION_LINES:
        yield f"{lines} lines, at most {MAX_FUNCTION_LINES}"
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    parameters = [a.arg for a in named if a.arg not in ("self", "cls")]
    if len(parameters) > MAX_PARAMETERS:
        yield f"{len(parameters)} parameters, at most {MAX_PARAMETERS}"


def test_modules_functions_and_signatures_are_small() -> None:
    found = [
        f"{place}: {why}"
        for m in modules()
        for place, why in too_large(m)
        if place not in EXCEPTIONS
    ]

    assert found == []


def test_every_exception_is_needed() -> None:
    large = {place for module in modules() for place, _ in too_large(module)}

    assert EXCEPTIONS.keys() - large == set()
