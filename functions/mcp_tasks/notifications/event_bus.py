"""The stack's event bus, to which every change of a task, a resource and a list is published.

Any EventBridge rule on the bus can match the events.

Source: EventBridge API reference, "PutEvents"; user guide, "Handling failures with PutEvents".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from aws_lambda_powertools import Logger
from botocore.exceptions import BotoCoreError, ClientError

from ..aws.errors import error_code
from ..tasks.task import Task
from ..workflows.executions import execution_arn
from .changes import MAX_DETAIL_BYTES, Change
from .server_changes import MAX_URI_CHARACTERS, RESOURCE_UPDATED

if TYPE_CHECKING:
    from mypy_boto3_events import EventBridgeClient
    from mypy_boto3_events.type_defs import PutEventsRequestEntryTypeDef

SOURCE: Final = "mcp.tasks"
DETAIL_TYPE: Final = "notifications/tasks"

MAX_ENTRIES: Final = 10
"""Of one call of PutEvents."""


logger = Logger()


class NotPublished(Exception):
    """EventBridge did not take all events of a call. The message has its error codes."""


class EventBus:
    """Publishes changes, those of one task in their order."""

    def __init__(self, client: EventBridgeClient, name: str) -> None:
        self._client = client
        self._name = name

    def publish(self, changes: Iterable[tuple[Task, Change]]) -> int:
        """Publish every change, and return how many there were.

        Raises NotPublished when EventBridge did not take some of them. It took those before. The
        stream repeats all of them, so an event comes at least once.
        """
        count = 0
        for entries in _batches(self._entry(task, change) for task, change in changes):
            response = self._client.put_events(Entries=entries)
            if response["FailedEntryCount"]:
                codes = {e["ErrorCode"] for e in response["Entries"] if "ErrorCode" in e}
                raise NotPublished(", ".join(sorted(codes)))
            count += len(entries)
        return count

    def announce(self, method: str, params: Mapping[str, Any]) -> None:
        """Publish a change of a resource or a list. Raises NotPublished, and ClientError."""
        response = self._client.put_events(
            Entries=[
                {
                    "EventBusName": self._name,
                    "Source": SOURCE,
                    "DetailType": method,
                    "Detail": json.dumps(dict(params)),
                }
            ]
        )
        if response["FailedEntryCount"]:
            raise NotPublished(str(response["Entries"][0].get("ErrorCode")))

    def resource_changed(self, uri: str) -> None:
        """Announce that a resource has changed.

        An announcement that fails is logged: what the author's function has done stays done.
        Raises ValueError for what is no URI.
        """
        if not isinstance(uri, str) or not 0 < len(uri) <= MAX_URI_CHARACTERS:
            raise ValueError(f"a URI is a text of at most {MAX_URI_CHARACTERS} characters")
        try:
            self.announce(RESOURCE_UPDATED, {"uri": uri})
        except (NotPublished, BotoCoreError, ClientError) as error:
            logger.error("A change of a resource was not published", error=error_code(error))

    def _entry(self, task: Task, change: Change) -> PutEventsRequestEntryTypeDef:
        return {
            "EventBusName": self._name,
            "Source": SOURCE,
            "DetailType": DETAIL_TYPE,
            "Detail": change.detail(),
            # A rule can match the tool, the account and the region.
            "Resources": [execution_arn(task.state_machine_arn, task.task_id)],
            "Time": datetime.fromtimestamp(task.last_updated_at / 1000, UTC),
        }


def _batches(
    entries: Iterable[PutEventsRequestEntryTypeDef],
) -> Iterator[list[PutEventsRequestEntryTypeDef]]:
    """Split the entries into calls of PutEvents, no two entries of one task in the same call.

    EventBridge may refuse an entry and take a later one of the same call.
    """
    batch: list[PutEventsRequestEntryTypeDef] = []
    tasks: set[str] = set()
    size = 0
    for entry in entries:
        (task,), length = entry["Resources"], _size(entry)
        full = len(batch) == MAX_ENTRIES or size + length > MAX_DETAIL_BYTES
        if batch and (full or task in tasks):
            yield batch
            batch, tasks, size = [], set(), 0
        batch.append(entry)
        tasks.add(task)
        size += length
    if batch:
        yield batch


def _size(entry: Mapping[str, Any]) -> int:
    """Bytes as EventBridge counts them (user guide, "PutEvents event entry size")."""
    texts = (entry["Source"], entry["DetailType"], entry["Detail"], *entry["Resources"])
    return 14 + sum(len(text.encode()) for text in texts)
