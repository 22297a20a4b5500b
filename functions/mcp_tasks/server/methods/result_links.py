"""Task results that are stored in S3: returned whole, or as a link when they are too large.

API Gateway passes on 10 MB, but a Lambda function returns 6 MB at most (Lambda developer guide,
"Quotas").
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any, Final

from aws_lambda_powertools import Logger

from ...payloads.pointer import PayloadPointer
from ...payloads.s3_store import PayloadNotFound, PayloadStore
from ...tasks.task import Task, iso
from ..response_channel import MAX_RESPONSE_BYTES, response_size

MAX_POLLED_RESULT_BYTES: Final = MAX_RESPONSE_BYTES - 20_000
"""Bytes of a result in the response to `tasks/get`."""

MAX_NOTIFIED_RESULT_BYTES: Final = 2_000_000
"""Bytes of a result in a notification to a subscription."""

MAX_LINK_SECONDS: Final = 7 * 24 * 3600
"""How long a presigned URL may be valid (S3 user guide, "Download and upload objects with presigned
URLs"). It also ends with the credentials that signed it: a function's are valid for hours."""

logger = Logger()


@dataclass(frozen=True, slots=True)
class ResultLinks:
    """Puts a task's stored result, or a link to it, into the task."""

    payloads: PayloadStore

    def with_result(self, task: Task, now: int, max_bytes: int = MAX_POLLED_RESULT_BYTES) -> Task:
        """The task with its result, or with a link to a result of more than `max_bytes`.

        `max_bytes` are those of the function's return value (`response_size`).
        """
        stored = task.result_payload
        if stored is None:
            return task
        try:
            result = self._load(stored, max_bytes) or self._link(task, stored, now)
        except PayloadNotFound:
            from ...registry.results import error_result

            logger.error("Task result is missing in S3", task_id=task.task_id)
            result = error_result("The result is not there any more")
        return replace(task, result=result)

    def _load(self, stored: PayloadPointer, max_bytes: int) -> dict[str, Any] | None:
        if stored.size > max_bytes:
            return None
        result: dict[str, Any] = json.loads(self.payloads.get(stored))
        return result if response_size(json.dumps(result)) <= max_bytes else None

    def _link(self, task: Task, stored: PayloadPointer, now: int) -> dict[str, Any]:
        """A CallToolResult that links to the result. Each response gets a link of its own."""
        seconds = min(max(1, (task.expires_at - now) // 1000), MAX_LINK_SECONDS)
        text = (
            f"The result has {stored.size} bytes, too many for a response. The link leads to the "
            f"whole result, as JSON. When the link has expired, get the task again for a new one; "
            f"the task expires at {iso(task.expires_at)}."
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
