"""What leaves a function when it fails: a name for Retry and Catch, and nothing of its values."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from ..faults import passing


class Unavailable(Exception):
    """AWS has no room for what a function of ours needs; its state is tried again."""

    def __init__(self) -> None:
        super().__init__(f"[{UNAVAILABLE}] try again")


UNAVAILABLE: Final = Unavailable.__name__


@contextmanager
def tried_again() -> Iterator[None]:
    """For calls to AWS that are not the tool's: faults of them that pass raise Unavailable."""
    try:
        yield
    except Exception as fault:
        if passing(fault):
            raise Unavailable from None
        raise


def failure(name: str) -> Exception:
    """An exception called `name`, with a message that contains the name and nothing else.

    On AWS the class name becomes the error name that Retry and Catch match; the message carries
    it as well, which is what `outcome` reads.
    """
    exception: type[Exception] = type(name, (Exception,), {})
    return exception(f"[{name}] see the task, or the server's log")
