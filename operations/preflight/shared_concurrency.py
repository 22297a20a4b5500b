"""Is the concurrency that no function reserves enough for more than one caller?

Requests, subscriptions and the workers of running tasks share it (Lambda developer guide,
"Understanding Lambda function scaling"). In a new account it may be 10.
"""

from __future__ import annotations

import math
from typing import Final

from .account_quotas import Quota
from .check import Check, Finding
from .deployment import Deployment
from .reserved_concurrency import QUOTA_CODE, USUAL_QUOTA, concurrency, reservations
from .stack_load import StackLoad

SMALL_ACCOUNT: Final = "reserved=off max_subscriptions=1 max_calls=2 max_tasks=5 rate=20 burst=20"
"""What works in an account with 10 (docs/operations.md, "A new account")."""


def find(deployment: Deployment) -> Finding:
    """Compare what one caller may hold with what no function reserves."""
    load = StackLoad.read(deployment.template)
    found = concurrency(deployment)
    free = max(0, found.left(sum(reservations(deployment.template).values())))
    held = load.held_by_one_caller
    limits = load.limits
    shared = (
        f"requests, subscriptions and running tasks share {free} concurrent executions in "
        f"{deployment.region}. One caller may hold "
        f"{'all' if math.isinf(held) else held} of them: {_number(limits.max_open_subscriptions)} "
        f"by subscriptions of up to {'15 minutes' if load.streams else '25 seconds'} each, "
        f"{_number(limits.max_open_calls)} by calls; and {_number(limits.max_open_tasks)} more by "
        "tasks, where max_workers and max_concurrency do not bound their workers"
    )
    if held < free:
        return Finding(shared)
    quota = Quota("lambda", found.quota, QUOTA_CODE)
    return Finding(
        f"WARNING: {shared}.\n"
        "    So one caller may stop all others: requests get 503 with Retry-After, tasks wait for\n"
        "    a worker, and ends, notifications and checks of tokens come late where they reserve\n"
        "    nothing of their own. No task is lost. What helps:\n"
        f"    {quota.command(deployment.region, max(USUAL_QUOTA, found.quota))}\n"
        f"    or, until the quota is raised, make deploy {SMALL_ACCOUNT}"
    )


def _number(limit: int) -> str:
    return str(limit) if limit else "any number"


CHECK: Final = Check("one caller leaves room for others", find)
