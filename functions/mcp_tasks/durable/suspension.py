"""How a run of a tool ends before the tool does. None is an Exception: no tool catches them."""

from __future__ import annotations

from .record import Operation


class Suspended(BaseException):
    """Ends a run. The state machine runs the tool again at `until` (milliseconds since the epoch).

    A map that has items to run names itself and its lanes: they run first, side by side.
    """

    def __init__(self, until: int, map_id: str | None = None, lanes: int = 0) -> None:
        super().__init__()
        self.until = until
        self.map_id = map_id
        self.lanes = lanes


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
