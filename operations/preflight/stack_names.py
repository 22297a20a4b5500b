"""Has the account another stack of the same cell, whose name begins the stack's, or begins with it?

The names of a stack's state machines begin with the stack's name and a hyphen, and those of its
executions with the cell's. Rules and roles know a stack's executions by the two beginnings, also
those of tools that were removed. So the stack `mcp` would get the ends of the executions of
`mcp-dev`, and could stop them, if both were of one cell.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from infra.kept_choices import CHOICES

from ..deployed_stack import template_of
from .check import Check, Finding
from .deployment import Deployment
from .kept_choices import deployed_choices


def find(deployment: Deployment) -> Finding:
    """Compare the stack with every other whose name is alike. A deployed stack is only warned."""
    cell = deployment.template.get("Metadata", {}).get(CHOICES, {}).get("cell")
    cloudformation = deployment.client("cloudformation")
    alike = [
        name
        for name in _stacks(cloudformation)
        if f"{name}-".startswith(f"{deployment.stack}-")
        or f"{deployment.stack}-".startswith(f"{name}-")
        if name != deployment.stack
        if deployed_choices(template_of(cloudformation, name)).get("cell", "") == cell
    ]
    if not cell or not alike:
        return Finding("")
    text = (
        f"the stack {alike[0]} is of the cell {cell}, too, and its name and {deployment.stack} "
        "begin alike: the one would end, and could stop, the other's tasks."
    )
    if deployment.deployed:
        return Finding(f"WARNING: {text} Replace one of the two by a stack of another cell")
    return Finding(
        f"{text}\n\nGive this one a cell of its own, or a name that begins otherwise:\n"
        f"    make deploy ... cell={cell}2\n    make deploy ... stack=NAME",
        refused=True,
    )


def _stacks(cloudformation: Any) -> Iterator[str]:
    for page in cloudformation.get_paginator("describe_stacks").paginate():
        for stack in page["Stacks"]:
            if stack["StackStatus"] != "DELETE_COMPLETE":
                yield stack["StackName"]


CHECK: Final = Check("another stack of the same cell is named alike", find)
