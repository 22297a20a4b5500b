"""HTTP 429 with `Retry-After`: a caller's quota or rate limit is reached.

`tasks/quotas.py` decides about new tasks and calls, and `notifications/mailbox_quota.py` about
subscriptions. This module turns their refusals into the errors that clients get.
`poll_rate_limit.py` decides about polls.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from ...limits import Limits
from ...protocol.errors import TooManyRequests
from ...tasks.errors import Busy
from ...tasks.quotas import RECHECK_AFTER_MS, QuotaExceeded
from ...tasks.rate_limit import RateLimited

BUSY_RETRY_MS: Final = 1_000


@contextmanager
def task_quota_errors(limits: Limits) -> Iterator[None]:
    """Turn what `CallerQuotas.acquire_task` raises into TooManyRequests."""
    try:
        yield
    except QuotaExceeded:
        limit = limits.max_open_tasks
        message = (
            f"You have {limit} tasks that have not ended, or were cancelled while a step ran that "
            "may still run; wait for one"
        )
        raise TooManyRequests(message, RECHECK_AFTER_MS) from None
    except RateLimited as error:
        message = f"You create more than {limits.creations_per_minute} tasks a minute"
        raise TooManyRequests(message, error.retry_after_ms) from None
    except Busy:
        message = "Too many of your calls create tasks at the same time"
        raise TooManyRequests(message, BUSY_RETRY_MS) from None


@contextmanager
def subscription_quota_errors(limits: Limits) -> Iterator[None]:
    """Turn what `Mailboxes.open` raises into TooManyRequests."""
    try:
        yield
    except QuotaExceeded:
        limit = limits.max_open_subscriptions
        message = f"You have {limit} open subscriptions; end one, or name more tasks in one"
        raise TooManyRequests(message, RECHECK_AFTER_MS) from None
    except RateLimited as error:
        limit = limits.new_subscriptions_per_minute
        message = f"You begin more than {limit} subscriptions a minute"
        raise TooManyRequests(message, error.retry_after_ms) from None
    except Busy:
        message = "Too many of your subscriptions begin at the same time"
        raise TooManyRequests(message, BUSY_RETRY_MS) from None


@contextmanager
def call_quota_errors(limit: int) -> Iterator[None]:
    """Turn what `CallerQuotas.acquire_call` raises into TooManyRequests."""
    try:
        yield
    except (QuotaExceeded, Busy):
        message = f"{limit} of your calls are being answered; wait for one of them"
        raise TooManyRequests(message, BUSY_RETRY_MS) from None
