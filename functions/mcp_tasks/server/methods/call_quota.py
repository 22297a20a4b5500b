"""How many calls of one caller run within their requests at a time.

A tool that does not become a task, `ask_first`, a prompt, a resource and a completion run an
author's code in the function that answers requests. Each of them holds an entry in its caller's
quota while it runs.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from aws_lambda_powertools import Logger
from botocore.exceptions import BotoCoreError, ClientError

from ...aws.errors import error_code
from ...tasks.quotas import CallerQuotas
from ...tasks.task import now_ms
from ..call import Call
from .too_many_requests import call_quota_errors

MAX_CALL_MS: Final = 30_000
"""How long a call whose response is buffered may run: its function's timeout
(`infra/response_transfer.py`)."""

GRACE_MS: Final = 5_000
"""How much longer than its function an entry may stand that is never removed: clocks differ."""

logger = Logger()


@dataclass(frozen=True, slots=True)
class CallQuota:
    """Counts the calls that run within their requests; a `limit` of 0 is no limit."""

    quotas: CallerQuotas
    limit: int

    @contextmanager
    def hold(self, call: Call) -> Iterator[None]:
        """Count a call while it runs. Raises TooManyRequests.

        A function that dies leaves its entry behind, which stands until its timeout.
        """
        if call.is_counted:
            yield
            return
        call_id, now = secrets.token_hex(8), now_ms()
        until = (call.channel.deadline_ms or now + MAX_CALL_MS) + GRACE_MS
        self.acquire(call.principal, call_id, until, now)
        try:
            yield
        finally:
            self.release(call.principal, call_id)

    def acquire(self, principal: str, call_id: str, until: int, now: int) -> None:
        """Count a call until it is released, or until a time. Raises TooManyRequests."""
        if self.limit:
            with call_quota_errors(self.limit):
                self.quotas.acquire_call(principal, call_id, until, self.limit, now)

    def release(self, principal: str, call_id: str) -> None:
        """Count a call no longer."""
        if not self.limit:
            return
        try:
            self.quotas.release_call(principal, call_id)
        except (BotoCoreError, ClientError) as error:
            # The call is answered nevertheless, and its entry stands until its time is over.
            logger.warning("Call quota was not released", error=error_code(error))
