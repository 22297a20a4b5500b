"""A server with something of everything: what example_tools_whole declares."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from mcp_tasks.limits import Limits
from mcp_tasks.registry.catalogue import PACKAGE, Catalogue
from tests.unit.support.aws import Calls
from tests.unit.support.stack import TASKS, Stack

FOLDER: Final = Path(__file__).with_name("example_tools_whole")

HANDSHAKE: Final = ("2025-11-25", "2025-06-18", "2025-03-26")
"""The revisions that begin with `initialize`, newest first."""

ALL_KINDS: Final[dict[str, Any]] = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {},
    "roots": {},
}
"""The capabilities of a client that can be asked for everything."""

ALL_AND_TASKS: Final = {**ALL_KINDS, "extensions": {TASKS: {}}}


@cache
def _imported() -> tuple[Catalogue, dict[str, ModuleType]]:
    catalogue = Catalogue.discover(FOLDER)
    return catalogue, {n: sys.modules[n] for n in sys.modules if n.split(".")[0] == PACKAGE}


def whole_catalogue() -> Catalogue:
    """What the folder declares, mounted until the end of the test."""
    catalogue, modules = _imported()
    sys.modules.update(modules)
    return catalogue


def whole_stack(aws: Calls) -> Stack:
    """The server, as a new instance of its function starts it. It counts no calls."""
    stack = Stack(aws, whole_catalogue())
    stack.environment["LIMITS"] = Limits(max_open_calls=0).to_json()
    stack.serve()
    return stack


def accept(**content: Any) -> dict[str, Any]:
    """A form, filled in."""
    return {"action": "accept", "content": content}
