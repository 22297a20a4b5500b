"""What a `subscriptions/listen` asks for (basic/patterns/subscriptions.mdx, "Notification Filter";
tasks.md, "Task Status Notifications").
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ...notifications.server_changes import (
    LISTS,
    MAX_URI_CHARACTERS,
    list_topic,
    resource_topic,
)
from ...protocol.errors import invalid_params
from ...registry.catalogue import Catalogue
from ...tasks.batch_read import MAX_BATCH_ROWS
from ...tasks.ids import cell_of
from ..call import Call
from .tasks import require_extension

MAX_TASKS: Final = MAX_BATCH_ROWS
MAX_URIS: Final = 100
LIST_FILTERS: Final = {f"{name}ListChanged": method for name, method in LISTS.items()}
"""Field of the filter -> the method of its notification."""


@dataclass(frozen=True, slots=True)
class ListenFilter:
    """What a subscription is for, as far as this server has it."""

    task_ids: list[str] | None = None
    """Those that can be of this cell; None when the client asks for no tasks."""
    uris: list[str] | None = None
    """Those that a resource has; None when the client asks for none."""
    lists: tuple[str, ...] = ()
    """Fields of LIST_FILTERS."""

    @property
    def topics(self) -> list[str]:
        """What a mailbox follows for the resources and lists."""
        resources = [resource_topic(uri) for uri in self.uris or ()]
        return [*resources, *(list_topic(LIST_FILTERS[field]) for field in self.lists)]

    def accepted(self) -> dict[str, Any]:
        """The acknowledged filter, without the tasks."""
        accepted: dict[str, Any] = dict.fromkeys(self.lists, True)
        if self.uris is not None:
            accepted["resourceSubscriptions"] = self.uris
        return accepted


def listen_filter(call: Call, catalogue: Catalogue, cell: str) -> ListenFilter:
    """Read `params.notifications`. Raises ProtocolError (-32602) for what is no filter."""
    filters = call.params.get("notifications")
    if not isinstance(filters, dict):
        raise invalid_params("params.notifications must be an object of what to listen to")
    return ListenFilter(
        _task_ids(call, filters["taskIds"], cell) if "taskIds" in filters else None,
        _uris(filters, catalogue) if "resourceSubscriptions" in filters else None,
        # A buffered subscription has no answer before its end, which would be that of the client's
        # cache as well.
        tuple(field for field in LIST_FILTERS if _flag(filters, field) and call.channel.streams),
    )


def _task_ids(call: Call, requested: Any, cell: str) -> list[str]:
    """The ids that can be of this cell. Raises ProtocolError (-32602) for anything but ids."""
    require_extension(call)
    task_ids = _texts(requested, "taskIds", MAX_TASKS)
    return [task_id for task_id in task_ids if cell_of(task_id) == cell]


def _uris(filters: Mapping[str, Any], catalogue: Catalogue) -> list[str]:
    requested = _texts(filters["resourceSubscriptions"], "resourceSubscriptions", MAX_URIS)
    short = [uri for uri in dict.fromkeys(requested) if len(uri) <= MAX_URI_CHARACTERS]
    return [uri for uri in short if catalogue.resource(uri) is not None]


def _flag(filters: Mapping[str, Any], field: str) -> bool:
    wanted = filters.get(field, False)
    if not isinstance(wanted, bool):
        raise invalid_params(f"params.notifications.{field} must be true or false")
    return wanted


def _texts(value: Any, field: str, most: int) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise invalid_params(f"params.notifications.{field} must be an array of strings")
    if len(value) > most:
        raise invalid_params(f"params.notifications.{field} has more than {most} entries")
    return value
