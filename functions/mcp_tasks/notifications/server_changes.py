"""Changes of resources and lists: what clients are told of besides tasks.

A resource that has changed is a `notifications/resources/updated` with its URI; a list that a
deployment has changed is a `notifications/.../list_changed` (server/resources.mdx, "Subscriptions";
server/tools.mdx, "List Changed Notification"). Both are events on the stack's bus, whose
`detail-type` is the notification's method and whose `detail` has its params. Whoever may put events
onto the bus can send one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ..tasks.caller_key import digest

RESOURCE_UPDATED: Final = "notifications/resources/updated"
LISTS: Final[Mapping[str, str]] = {
    "tools": "notifications/tools/list_changed",
    "prompts": "notifications/prompts/list_changed",
    "resources": "notifications/resources/list_changed",
}
"""List -> the method of its notification."""

METHODS: Final = frozenset({RESOURCE_UPDATED, *LISTS.values()})
MAX_URI_CHARACTERS: Final = 2048


class InvalidEvent(ValueError):
    """An event on the bus has no such detail."""


@dataclass(frozen=True, slots=True)
class ServerChange:
    """A resource or a list has changed."""

    method: str
    id: str
    """The event's id. An event that is delivered twice has one entry in a mailbox."""
    params: Mapping[str, Any] = field(default_factory=dict)

    @property
    def topics(self) -> tuple[str, ...]:
        """Mailboxes that follow one of these receive it."""
        uri = self.params.get("uri")
        return (list_topic(self.method) if uri is None else resource_topic(str(uri)),)

    @property
    def entry_key(self) -> str:
        """Its sort key in a mailbox."""
        return f"{self.topics[0]}#{self.id}"

    def detail(self) -> str:
        """The change as JSON, which `server_change` reads."""
        return json.dumps({"method": self.method, "id": self.id, "params": dict(self.params)})


def resource_topic(uri: str) -> str:
    """What mailboxes follow that receive the changes of a resource."""
    return f"resource#{digest(uri)[:32]}"


def list_topic(method: str) -> str:
    """What mailboxes follow that receive the changes of a list, by its notification's method."""
    return f"list#{method}"


def server_change(detail: Mapping[str, Any]) -> ServerChange:
    """Read what `ServerChange.detail` has written."""
    return ServerChange(detail["method"], detail["id"], detail["params"])


def change_of_event(event: Mapping[str, Any]) -> ServerChange:
    """Read an event of the bus with one of METHODS as its `detail-type`. Raises InvalidEvent."""
    method, detail = event["detail-type"], event.get("detail")
    if method != RESOURCE_UPDATED:
        return ServerChange(method, str(event["id"]))
    uri = detail.get("uri") if isinstance(detail, Mapping) else None
    if not isinstance(uri, str) or not 0 < len(uri) <= MAX_URI_CHARACTERS:
        raise InvalidEvent(f"detail.uri must be a text of at most {MAX_URI_CHARACTERS} characters")
    return ServerChange(method, str(event["id"]), {"uri": uri})
