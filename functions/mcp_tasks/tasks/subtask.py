"""A subtask: a task that another task has started (SEP-2268, "Subtasks").

For most purposes it is a task like any other. It lives exactly as long as its parent, and its
parent cannot end before it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

MAX_SUBTASKS: Final = 1000
"""Of one task. Its row has the id of each, of 35 bytes; an item of DynamoDB has at most 400 KB."""

MAX_DEPTH: Final = 8
"""How many parents, one above the other, a subtask has at most: a tool may call itself."""


@dataclass(frozen=True, slots=True)
class Parent:
    """Whose subtask a task is, and where the parent waits for it. It never changes, except for
    `tokens`."""

    task_id: str
    tool: str
    operation: str
    """The durable operation of the parent that has started the subtask: `000004` for the fourth."""
    number: int
    """Which one of that operation's subtasks, from 0."""
    root_tool: str
    """The tool that the client has called, whose scopes open the whole tree of its subtasks."""
    depth: int
    """How many parents the subtask has, one above the other."""
    tokens: Mapping[str, str] = field(default_factory=dict, compare=False)
    """The task tokens of the parent's state that waits for the subtask's end, each by a name of its
    own. There are none until the state begins to wait, and several when Step Functions has tried
    again."""


@dataclass(frozen=True, slots=True)
class Relatives:
    """What of a task's parent and subtasks counts when it ends."""

    subtasks: int = 0
    """How many it has; whoever ends it has seen them all terminal."""
    parent: bool = False
    """Whether a parent has to be told."""


NO_RELATIVES: Final = Relatives()
"""Of a task without a parent and without subtasks."""


def subtask_id(parent_id: str, operation: str, number: int) -> str:
    """The id of a subtask. It follows from its place, so that what starts it may be repeated.

    Whoever does not know the id of the parent, of which 128 bits are random, cannot guess it.
    """
    cell = parent_id.partition("-")[0]
    digest = hashlib.sha256(f"{parent_id}/{operation}/{number}".encode()).hexdigest()
    return f"{cell}-{digest[:32]}"
