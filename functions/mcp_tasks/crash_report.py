"""What a log says of a crash: exception classes, and where each was raised; no message, no value.

    {"reference": "5b0c1f9a7e34", "exception": "ClientError", "code": "AccessDeniedException",
     "place": "tools/orders.py:41 charge",
     "frames": ["tools/orders.py:41 charge", "tools/orders.py:12 order"],
     "raised_in": "botocore/client.py:1094 BaseClient._make_api_call",
     "cause": {"exception": "TimeoutError", "place": ..., "frames": [...]}}

`frames` are those of the author's own code, the innermost first; of this library's, where the
author has none: a result of the wrong type is found after the tool has returned. `cause` is
`__cause__`, and `context` an exception that was being handled; `exceptions` are those of an
ExceptionGroup, such as asyncio.TaskGroup raises. `place` is the innermost frame, and of a group
that of its first exception: one string, by which crashes are counted. `code` is AWS's.

Class names, functions and files are the author's own words. They hold nothing of a caller's, unless
code makes a class at run time and names it after what it was given.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from types import FrameType
from typing import Any, Final

from botocore.exceptions import ClientError

from .aws.errors import error_code
from .registry.durable_errors import StepFailed, SubtaskFailed

OWN: Final = "tools"
"""The package of the author's code: the tools folder, wherever it is deployed from."""
LIBRARY: Final = __package__ or ""
MAX_FRAMES: Final = 40
"""Of one exception. A recursion has a thousand; its innermost and outermost ones are kept."""
MAX_EXCEPTIONS: Final = 20
"""Of one report. CloudWatch takes a line of 1 MB (CloudWatch Logs user guide, "CloudWatch Logs
quotas")."""

_REFERENCE: Final = re.compile(r"\(reference (?P<reference>[0-9a-f]{12})\)")

Frame = tuple[str, str]
"""The package of a frame's module, and how the frame is shown."""


def crash_report(error: BaseException) -> dict[str, Any]:
    """Describe an exception and those behind it."""
    left = iter(range(MAX_EXCEPTIONS))
    next(left)
    return {"reference": reference_of(error), **_described(error, left, {id(error)})}


def with_reference(message: str, reference: str | None) -> str:
    """A message, with the reference by which an operator finds the crash in the log."""
    return message if reference is None else f"{message} (reference {reference})"


def without_reference(message: str) -> str:
    """A message without the reference that it ends with."""
    return message.removesuffix(with_reference("", reference_in(message)))


def reference_in(message: str) -> str | None:
    """The reference that a message has, or quotes."""
    found = _REFERENCE.search(message)
    return found["reference"] if found else None


def reference_of(error: BaseException) -> str:
    """What finds the log's line: that of the step or the subtask that failed before, or a new one.

    So the reference that a client gets for a tool that did not catch StepFailed leads to the line
    of the tool and, before it, to that of the step.
    """
    seen: set[int] = set()
    each: BaseException | None = error
    while each is not None and id(each) not in seen:
        if isinstance(each, StepFailed) and each.reference:
            return each.reference
        if isinstance(each, SubtaskFailed) and (of_subtask := reference_in(each.message)):
            return of_subtask
        seen.add(id(each))
        each = _behind(each)
    return secrets.token_hex(6)


def _described(error: BaseException, left: Iterator[int], seen: set[int]) -> dict[str, Any]:
    frames = list(_frames(error))
    own = [shown for package, shown in frames if package == OWN]
    own = own or [shown for package, shown in frames if package == LIBRARY]
    report: dict[str, Any] = {"exception": type(error).__name__}
    if isinstance(error, ClientError):
        report["code"] = error_code(error)
    if isinstance(error, BaseExceptionGroup):
        report["exceptions"] = [
            _described(each, left, seen | {id(each)})
            for each in error.exceptions
            if next(left, None) is not None
        ]
    report["place"] = _place(report.get("exceptions", ()), own)
    report["frames"] = _shortened(own)
    if frames and frames[0][1] not in own[:1]:
        report["raised_in"] = frames[0][1]
    behind = _behind(error)
    if behind is not None and id(behind) not in seen and next(left, None) is not None:
        name = "cause" if behind is error.__cause__ else "context"
        report[name] = _described(behind, left, seen | {id(behind)})
    return report


def _behind(error: BaseException) -> BaseException | None:
    """The exception that Python's own traceback would show before this one."""
    if error.__cause__ is not None:
        return error.__cause__
    return None if error.__suppress_context__ else error.__context__


def _place(exceptions: Sequence[dict[str, Any]], own: Sequence[str]) -> str:
    for each in exceptions:
        if each["place"]:
            return str(each["place"])
    return own[0] if own else ""


def _frames(error: BaseException) -> Iterator[Frame]:
    """The frames of an exception's traceback, the innermost first."""
    frames, entry = [], error.__traceback__
    while entry is not None:
        frames.append((entry.tb_frame, entry.tb_lineno))
        entry = entry.tb_next
    for frame, line in reversed(frames):
        package, file = _file(frame)
        yield package, f"{file}:{line} {frame.f_code.co_qualname}"


def _file(frame: FrameType) -> Frame:
    """The package of a frame's module, and its file from there on: `tools/orders.py`.

    The path before it is the machine's. Code that was made at run time, whose file may be named
    after anything, is not shown by its file.
    """
    package = str(frame.f_globals.get("__name__") or "").partition(".")[0]
    path = PurePath(frame.f_code.co_filename)
    if path.suffix != ".py":
        return package, "generated code"
    folders = path.parts[:-1]
    if package not in folders:
        return package, path.name
    last = max(number for number, folder in enumerate(folders) if folder == package)
    return package, "/".join(path.parts[last:])


def _shortened(frames: list[str]) -> list[str]:
    if len(frames) <= MAX_FRAMES:
        return frames
    half = MAX_FRAMES // 2
    return [*frames[:half], f"{len(frames) - MAX_FRAMES} more", *frames[-half:]]
