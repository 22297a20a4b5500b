"""The limits of one caller and of one request. Each of them is an option of the deployment.

A caller is a principal: a user, a machine client, or an IAM ARN. In a deployment without
authentication there is one principal, so all callers share its limits.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits and their defaults. The limits of a caller, which come first, are off at 0."""

    max_open_tasks: int = 100
    """Tasks of one caller that are not terminal."""
    creations_per_minute: int = 120
    """Tasks that one caller may create. As many may be created at once; the allowance then comes
    back evenly over the minute."""
    polls_per_second: int = 2
    """`tasks/get` requests of one caller for one task. A task may always be polled twice as often
    as its tool's `poll_every` suggests. A burst may be 30 times as large."""
    max_open_subscriptions: int = 10
    """`subscriptions/listen` requests of one caller that are open at a time. One that has ended
    counts for another minute, but gives way."""
    new_subscriptions_per_minute: int = 300
    """Subscriptions that one caller may begin: as with creations. A client whose responses are
    buffered begins one after each change."""
    max_open_calls: int = 20
    """Calls of one caller that run an author's code within their requests at a time: tools that do
    not become tasks, `ask_first`, prompts, resources and completions."""
    max_body_bytes: int = 1024 * 1024
    """Size of a request's body."""
    max_argument_bytes: int = 1024 * 1024
    """Size of an execution's input: the arguments, and the answers that `ask_first` was given. A
    state machine that exists already takes at most 256 KiB, whatever this limit says."""
    max_json_depth: int = 100
    """Levels of nested arrays and objects in a request's body."""
    max_json_values: int = 100_000
    """Values in a request's body: texts, numbers, arrays, objects and all that is in them."""

    @classmethod
    def from_json(cls, text: str | None) -> Limits:
        """Read what `to_json` wrote; without a text, the defaults."""
        return cls(**json.loads(text)) if text else cls()

    def to_json(self) -> str:
        """The limits as the value of a function's environment variable."""
        return json.dumps(asdict(self), separators=(",", ":"))
