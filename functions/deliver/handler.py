"""Puts every change of a task, a resource or a list into the mailboxes that follow it.

The events come from the event bus through an SQS queue.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Final

from aws_lambda_powertools import Logger

from mcp_tasks import metrics
from mcp_tasks.aws.errors import error_code
from mcp_tasks.deployment import Deployment
from mcp_tasks.notifications.changes import read_change
from mcp_tasks.notifications.delivery import Delivery, deliver_all
from mcp_tasks.notifications.server_changes import METHODS, ServerChange, change_of_event
from mcp_tasks.tasks.task import now_ms

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.batch.types import PartialItemFailureResponse
    from aws_lambda_powertools.utilities.typing import LambdaContext

LAST_STEP_MS: Final = 3_000
"""How long before the function's time is up the last step begins: two calls, which may hang."""

logger = Logger()
deployment = Deployment(os.environ)


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> PartialItemFailureResponse:
    """Deliver a batch of events. SQS repeats those that failed, and no others."""
    until = now_ms() + context.get_remaining_time_in_millis() - LAST_STEP_MS
    deliveries: dict[str, Delivery | None] = {
        record["messageId"]: _delivery(record["body"]) for record in event["Records"]
    }
    deliver_all(
        deployment.mailboxes_for_delivery, [each for each in deliveries.values() if each], until
    )
    metrics.write({metrics.DELIVERY_DELAY: _delays(event["Records"])})
    failed = [message_id for message_id, each in deliveries.items() if not _delivered(each)]
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in failed]}


def _delays(records: list[dict[str, Any]]) -> list[float]:
    """How long each message has been in the queue, in seconds. One that fails again and again is in
    the metric at each attempt, when SQS has long left it out of its own
    (`infra/alarms.py`, `alarm_for_delivery_delay`)."""
    now = now_ms()
    return [max(0, now - int(each["attributes"]["SentTimestamp"])) / 1000 for each in records]


def _delivery(body: str) -> Delivery | None:
    """The delivery of an event; None for what is no event of this server."""
    try:
        event = json.loads(body)
        detail, kind = event["detail"], event.get("detail-type")
        change = change_of_event(event) if kind in METHODS else read_change(detail)
    except (KeyError, TypeError, ValueError) as error:
        _log_failure(error)
        return None
    return Delivery(change, change.detail())


def _delivered(delivery: Delivery | None) -> bool:
    if delivery is None:
        return False
    if delivery.error is not None:
        _log_failure(delivery.error)
        return False
    change = delivery.change
    if isinstance(change, ServerChange):
        about: dict[str, Any] = {"notification": change.method}
    else:
        about = {"task_id": change.task_id, "revision": change.revision}
    logger.info("change delivered", **about, mailboxes=delivery.mailboxes)
    return True


def _log_failure(error: Exception) -> None:
    logger.error("change could not be delivered", error=error_code(error))
