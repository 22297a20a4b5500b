"""Whether a deployment has changed the lists of tools, prompts and resources.

    pk      sk         attributes
    lists   versions   tools, prompts, resources: a hash of each list; in the table of mailboxes

A deployment does not run code of its own, and the functions that listen run on with the old code
for a while. So the sweeper, which runs every minute, compares its own lists with the last ones, and
announces those that differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from .event_bus import EventBus
from .mailbox_items import attributes, query
from .server_changes import LISTS

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

PK: Final = "lists"
SK: Final = "versions"


def changed_lists(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """The names of the lists that differ from what was known of them."""
    return [name for name in LISTS if name in before and before[name] != now[name]]


class AnnouncedLists:
    """The lists as the sweeper has announced them last."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def announce_changes(self, versions: Mapping[str, str], bus: EventBus) -> list[str]:
        """Announce the lists that have changed since the last call; returns their names.

        They are announced before they are remembered: after a failure they are announced again.
        Raises NotPublished, and ClientError.
        """
        known = next(query(self._client, self._table, PK), {})
        changed = changed_lists(known, versions)
        for name in changed:
            bus.announce(LISTS[name], {})
        if any(known.get(name) != version for name, version in versions.items()):
            self._client.put_item(
                TableName=self._table, Item=attributes(pk=PK, sk=SK, **dict(versions))
            )
        return changed
