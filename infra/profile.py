"""Where a stack goes: to AWS, or to an emulator on one machine.

`AWS` and `LOCAL` list every way in which the two differ. Each is something that the emulator cannot
do, or that a server which only this machine can reach does not need; a test compares the two
templates and fails on any other difference.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

from mcp_tasks.server.caller import Auth

from .bundle import Target


@dataclass(frozen=True, slots=True)
class Profile:
    """One kind of place."""

    name: str
    target: Target
    """What the functions' code is built for."""
    auth: Auth | None
    """Who may call, unless `-c auth=` says otherwise; None where it must say."""
    loopback: bool
    """Whether servers of this machine may be named, by http: an issuer of access tokens."""
    allowed_origins: tuple[str, ...]
    """The browsers' pages that may call, besides those of `-c origins=`."""
    allowed_hosts: tuple[str, ...]
    """The names it answers under, besides those of `-c hosts=`; all, when there are none."""
    reserved_concurrency: int | None
    """How many instances of each function may run."""
    checked: bool
    """Whether `cdk synth` runs cdk-nag."""


AWS = Profile(
    name="aws",
    target=Target(python=(3, 13), architecture="aarch64"),
    # No way in is the default: each has to be asked for by its name.
    auth=None,
    loopback=False,
    allowed_origins=(),
    # API Gateway itself only answers to names that lead to the API; -c hosts= narrows them.
    allowed_hosts=(),
    reserved_concurrency=None,
    checked=True,
)

LOCAL = Profile(
    name="local",
    # The emulator runs every Python function in its own interpreter, on this machine.
    target=Target(python=(sys.version_info[0], sys.version_info[1]), architecture=None),
    # The emulator listens on 127.0.0.1: whoever can call it can do all else here, too.
    auth="none",
    loopback=True,
    # Pages of this machine: nobody else can reach a server that listens on 127.0.0.1.
    allowed_origins=("http://localhost:*", "http://127.0.0.1:*"),
    # A name that somebody else owns and lets resolve to this machine is not one of them.
    allowed_hosts=("localhost:*", "127.0.0.1:*", "*.execute-api.localhost:*"),
    # The emulator starts a process for each of a first burst of calls, which takes seconds. Not
    # fewer: each listen that waits holds one for up to 25 seconds.
    reserved_concurrency=10,
    # The same constructs, which the AWS profile has checked.
    checked=False,
)
