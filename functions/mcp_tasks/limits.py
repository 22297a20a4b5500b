"""What one caller may do, and what one request may be. Each is a choice of the deployment.

A caller is a principal: a user, a machine client, an ARN. In a deployment without authentication
all callers are one, and share what is one caller's.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits, with their defaults. The first four are none when they are 0."""

    tasks: int = 100
    """Tasks of one caller that are not over."""
    creations: int = 120
    """Tasks that one caller may create a minute; so many at once, then evenly."""
    polls: int = 2
    """`tasks/get` a second that one caller may keep up for one task. A tool that suggests to poll
    more often may be polled twice as often as it suggests. A burst may be 30 times as large."""
    listens: int = 10
    """Listens of one caller that are open at a time."""
    body: int = 1024 * 1024
    """Bytes of a request's body."""
    arguments: int = 1024 * 1024
    """Bytes of what an execution starts with: the arguments, and the answers that were asked for
    first. A state machine that exists already takes 256 KiB at most, whatever this says."""
    depth: int = 100
    """Levels of arrays and objects in a body."""

    @classmethod
    def from_json(cls, text: str | None) -> Limits:
        """Read what `to_json` wrote; the defaults when there is nothing."""
        return cls(**json.loads(text)) if text else cls()

    def to_json(self) -> str:
        """All limits, for a function's environment."""
        return json.dumps(asdict(self), separators=(",", ":"))
