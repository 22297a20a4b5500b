"""The time, and a way to let it pass."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ..tasks.task import now_ms


@dataclass(frozen=True, slots=True)
class Clock:
    """The time, and a way to let it pass. Tests have their own."""

    now_ms: Callable[[], int] = now_ms
    sleep: Callable[[float], None] = time.sleep
    """Takes seconds."""


SYSTEM_CLOCK: Final = Clock()
