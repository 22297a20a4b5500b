"""How a run of a tool ends before the tool does. None is an Exception: no tool catches them."""

from __future__ import annotations

from dataclasses import dataclass

from ..registry.tool import Tool
from .record import Operation


@dataclass(frozen=True, slots=True)
class RunLanes:
    """What the state machine does before it runs the tool again: run the lanes of a map."""

    map_id: str
    count: int


@dataclass(frozen=True, slots=True)
class StartSubtasks:
    """What the state machine does before it runs the tool again: start subtasks, and wait for
    their ends."""

    operation_id: str
    count: int
    tool: Tool


class Suspended(BaseException):
    """Ends a run. The state machine runs the tool again at `until` (milliseconds since the epoch),
    or when it has done what comes `first`.
    """

    def __init__(self, until: int, first: RunLanes | StartSubtasks | None = None) -> None:
        super().__init__()
        self.until = until
        self.first = first


class ReplayEnded(BaseException):
    """Ends a run that only repeats what is recorded: the record has ended, or its map is done."""


class NonDeterminism(BaseException):
    """The tool came to another operation than the one that its journal has at this place."""

    def __init__(self, expected: Operation, came: Operation | None) -> None:
        arrived = f"comes to {came}" if came is not None else "ends"
        differs = ""
        if came is not None and str(came) == str(expected):
            differs = ", with other arguments"
        super().__init__(
            f"The tool takes another way than before: its journal has {expected}, and now it "
            f"{arrived}{differs}. Let old tasks take the old way: task.version()"
        )
