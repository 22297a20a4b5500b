"""Where a stack goes: to AWS, or to an emulator on one machine.

`AWS` and `LOCAL` list every way in which the two differ. Each is something that the emulator cannot
do, or that a server which only this machine can reach does not need; a test compares the two
templates and fails on any other difference.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Final

from mcp_tasks.environment import Auth

from .cdk_context import refusal
from .packages import LAMBDA, Target


@dataclass(frozen=True, slots=True)
class Profile:
    """One kind of place to deploy to."""

    name: str
    target: Target
    """What the functions' code is built for."""
    auth: Auth | None
    """Who may call, unless `-c auth=` says otherwise; None where it must be given."""
    loopback: bool
    """Whether URLs may name this machine, by http: an issuer of access tokens, for instance."""
    allowed_origins: tuple[str, ...]
    """The browsers' pages that may call, besides those of `-c origins=`."""
    allowed_hosts: tuple[str, ...]
    """The names it answers under, besides those of `-c hosts=`; all, when there are none."""
    reserved_concurrency: int | None
    """How many instances of each function may run."""
    monitored: bool
    """Whether there are alarms that compute, a dashboard, saved queries and a budget."""
    data: str
    """`retain` or `destroy`, unless `-c data=` says otherwise."""
    checked: bool
    """Whether `cdk synth` runs cdk-nag, and refuses state machines of another account."""


AWS: Final = Profile(
    name="aws",
    target=LAMBDA,
    # Each way in has to be asked for by its name.
    auth=None,
    loopback=False,
    allowed_origins=(),
    # API Gateway itself only answers to names that lead to the API; -c hosts= narrows them.
    allowed_hosts=(),
    reserved_concurrency=None,
    monitored=True,
    data="retain",
    checked=True,
)

LOCAL: Final = Profile(
    name="local",
    # The emulator runs every Python function in its own interpreter, on this machine.
    target=Target(python=(sys.version_info[0], sys.version_info[1]), architecture=None),
    # The emulator listens on 127.0.0.1 and refuses web pages: a program that can call it can do
    # everything else here, too.
    auth="none",
    loopback=True,
    # Pages of this machine: nobody else can reach a server that listens on 127.0.0.1.
    allowed_origins=("http://localhost:*", "http://127.0.0.1:*"),
    # Not a name of somebody else's that resolves to this machine (DNS rebinding).
    allowed_hosts=("localhost:*", "127.0.0.1:*", "*.execute-api.localhost:*"),
    # The emulator starts a process for each of a first burst of calls, which takes seconds. Not
    # fewer: each subscription that waits holds one for up to 25 seconds.
    reserved_concurrency=10,
    # The emulator's CloudFormation knows no metric math, no saved queries and no budgets.
    monitored=False,
    # It ends with the emulator.
    data="destroy",
    # The constructs are the same, and cdk-nag has checked them in the AWS profile.
    checked=False,
)


def profile_of(name: str) -> Profile:
    """The profile of `-c profile=`; AWS when it is not given. Raises ValueError."""
    profiles = {AWS.name: AWS, LOCAL.name: LOCAL}
    profile = profiles.get(name or AWS.name)
    if profile is None:
        raise refusal("profile", name, f"one of {', '.join(profiles)}")
    return profile
