"""Run a step's function for a limited time."""

from __future__ import annotations

import inspect
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from types import FrameType
from typing import Any


class _TimeUp(BaseException):
    """Ends a function whose time is up. It is no Exception, so that the function does not catch
    it."""


async def run_limited(function: Callable[[], Any], limit: timedelta | None) -> Any:
    """Run a function, `def` or `async def`, to its end. Raises TimeoutError after the limit.

    A `def` is interrupted by a signal, between two of its Python instructions.
    """
    if limit is None:
        returned = function()
        return await returned if inspect.isawaitable(returned) else returned
    message = f"The step ran for more than {limit.total_seconds():g} s"
    try:
        with _alarm(limit):
            returned = function()
    except _TimeUp:
        raise TimeoutError(message) from None
    if not inspect.isawaitable(returned):
        return returned
    import asyncio  # there is a loop that awaits this; most functions need none

    try:
        async with asyncio.timeout(limit.total_seconds()):
            return await returned
    except TimeoutError:
        raise TimeoutError(message) from None


@contextmanager
def _alarm(limit: timedelta) -> Iterator[None]:
    """Raise _TimeUp in the main thread when the time is up. Raises RuntimeError in another one."""
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError("a step with a timeout runs in the main thread only")

    def time_up(_signal: int, _frame: FrameType | None) -> None:
        raise _TimeUp

    before = signal.signal(signal.SIGALRM, time_up)
    signal.setitimer(signal.ITIMER_REAL, limit.total_seconds())
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
