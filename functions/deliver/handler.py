"""Puts every change of a task into the mailboxes of its subscriptions.

The events come from the event bus through an SQS queue.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.batch import (
    BatchProcessor,
    EventType,
    process_partial_response,
)

from mcp_tasks.deployment import Deployment
from mcp_tasks.notifications.changes import read_change
from mcp_tasks.tasks.task import now_ms

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.batch.types import PartialItemFailureResponse
    from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
    from aws_lambda_powertools.utilities.typing import LambdaContext

logger = Logger()
deployment = Deployment(os.environ)
processor = BatchProcessor(EventType.SQS, raise_on_entire_batch_failure=False)


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> PartialItemFailureResponse:
    """Deliver a batch of events. SQS repeats those that failed."""
    return process_partial_response(event, deliver, processor, context)


def deliver(record: SQSRecord) -> None:
    """Deliver one event. Raises what reading the event or writing to DynamoDB raises."""
    try:
        change = read_change(json.loads(record.body)["detail"])
        mailboxes = deployment.mailboxes.deliver(change, change.detail(), now_ms())
    except Exception as error:
        logger.error("change could not be delivered", error=type(error).__name__)
        raise
    logger.info(
        "change delivered", task_id=change.task_id, revision=change.revision, mailboxes=mailboxes
    )
