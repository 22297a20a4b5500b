"""Where a stack goes: to AWS, or to an emulator on one machine.

`LOCAL` lists every way in which the two differ. Each is something that the emulator cannot do;
a test compares the two templates and fails on any other difference.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

from .bundle import Target


@dataclass(frozen=True, slots=True)
class Profile:
    """One kind of place."""

    name: str
    target: Target
    allowed_origins: tuple[str, ...]
    reserved_concurrency: int | None
    checked: bool
    """Whether `cdk synth` runs cdk-nag."""


AWS = Profile(
    name="aws",
    target=Target(python=(3, 13), architecture="aarch64"),
    allowed_origins=(),
    reserved_concurrency=None,
    checked=True,
)

LOCAL = Profile(
    name="local",
    # The emulator runs every Python function in its own interpreter, on this machine.
    target=Target(python=(sys.version_info[0], sys.version_info[1]), architecture=None),
    # Pages of this machine: nobody else can reach a server that listens on 127.0.0.1.
    allowed_origins=("http://localhost:*", "http://127.0.0.1:*"),
    # The emulator starts a process for each of a first burst of calls, which takes seconds.
    reserved_concurrency=4,
    checked=False,
)
