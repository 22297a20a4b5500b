"""One mailbox, as its subscription holds it. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from .changes import Change
from .live_mailboxes import LiveMailbox
from .server_changes import ServerChange

REUSABLE_MS: Final = 60_000
"""How long a released mailbox goes on receiving, for the next subscription of its client."""

GRACE_MS: Final = 10_000
"""How much longer than planned a mailbox receives: its subscription may end late. No function lives
longer."""


AnyChange = Change | ServerChange


@dataclass(frozen=True, slots=True)
class Subscriber:
    """Who subscribes."""

    principal: str
    """Whose tasks may be subscribed to."""
    client: str
    """A short hash by which the next subscription of the same client is recognized."""


@dataclass(frozen=True, slots=True)
class MailboxEntry:
    """A change in a mailbox, under its sort key."""

    key: str
    change: AnyChange
    arrived_at: int
    """Milliseconds since the epoch."""


@dataclass(slots=True)
class Mailbox:
    """What collects the changes of some tasks for one subscription."""

    caller: str
    """The partition key of its caller's items."""
    number: int
    """Its place among its caller's live mailboxes, which it keeps while it is live."""
    live: LiveMailbox
    follows_until: int = 0
    """Until when its `task#` items are good, in milliseconds since the epoch."""
    delivered: dict[str, int] = field(default_factory=dict)
    """The last revision of each task that its client was sent."""
    as_released: bool = False
    """Whether it was taken over, and nothing was removed from it since."""
    replaced: bool = False
    """Whether the same client has subscribed again, and that subscription goes on in its place."""

    @property
    def id(self) -> str:
        """Another one for each mailbox."""
        return self.live.id
