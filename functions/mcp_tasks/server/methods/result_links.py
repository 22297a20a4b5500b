"""Results that are too large for a task's row: whole, as far as an answer carries them, or a link.

API Gateway passes on 10 MB, but what a Lambda function answers in one piece has 6 MB at most
(Lambda developer guide, "Quotas").
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any, Final

from aws_lambda_powertools import Logger

from ...payloads.pointer import PayloadPointer
from ...payloads.s3_store import PayloadNotFound, PayloadStore
from ...tasks.task import Task, iso
from ..response_channel import MOST_CARRIED, carried_size

POLLED: Final = MOST_CARRIED - 20_000
"""Of them, what a result may have in the answer to a poll."""

LISTENED: Final = 2_000_000
"""What a result may have among the notifications of a listen."""

LONGEST_LINK_S: Final = 7 * 24 * 3600
"""How long a presigned URL may be good (S3 user guide, "Download and upload objects with presigned
URLs"). It also ends with the credentials that it was made with: a function's are good for hours."""

logger = Logger()


@dataclass(frozen=True, slots=True)
class ResultLinks:
    """Puts a task's result where a client finds it."""

    payloads: PayloadStore

    def of(self, task: Task, now: int, most: int = POLLED) -> Task:
        """The task with its result, or with a link to it, when that has more than `most` bytes."""
        stored = task.result_payload
        if stored is None:
            return task
        try:
            return replace(task, result=self._whole(stored, most) or self._link(task, stored, now))
        except PayloadNotFound:
            from ...registry.results import error_result

            logger.error("A result is not there any more", task_id=task.task_id)
            return replace(task, result=error_result("The result is not there any more"))

    def _whole(self, stored: PayloadPointer, most: int) -> dict[str, Any] | None:
        if stored.size > most:
            return None
        result: dict[str, Any] = json.loads(self.payloads.get(stored))
        return result if carried_size(json.dumps(result)) <= most else None

    def _link(self, task: Task, stored: PayloadPointer, now: int) -> dict[str, Any]:
        """A result that says where the result is. The link is made anew for each answer."""
        seconds = min(max(1, (task.expires_at - now) // 1000), LONGEST_LINK_S)
        text = (
            f"The result is too large for an answer: {stored.size} bytes. The link leads to all of "
            f"it, as JSON. When it does not any more, ask for the task again, which lives until "
            f"{iso(task.expires_at)}."
        )
        return {
            "content": [
                {"type": "text", "text": text},
                {
                    "type": "resource_link",
                    "uri": self.payloads.presigned_url(stored, seconds),
                    "name": "result.json",
                    "description": "The whole CallToolResult",
                    "mimeType": "application/json",
                    "size": stored.size,
                },
            ]
        }
