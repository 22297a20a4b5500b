"""A tool that uses secrets of both services, and one whose secret nobody has created."""

from __future__ import annotations

import hashlib
import os
from datetime import timedelta

from mcp_tasks import TaskContext, tool

QUICK = timedelta(milliseconds=200)


@tool(
    task="optional",
    poll_every=QUICK,
    without_tasks="request",
    secrets={"API_KEY": "tests/api-key", "TOKEN": "/tests/token"},
    env={"TABLE_OF_ORDERS": "orders"},
)
def use_secrets(task: TaskContext) -> dict[str, str]:
    """Use two secrets. Return what tells them apart, and not the secrets."""
    digests = {n: hashlib.sha256(task.secret(n).encode()).hexdigest() for n in ("API_KEY", "TOKEN")}
    return {**digests, "table": os.environ["TABLE_OF_ORDERS"]}


@tool(
    task="optional",
    poll_every=QUICK,
    without_tasks="request",
    secrets={"API_KEY": "tests/missing"},
)
def miss_a_secret(task: TaskContext) -> str:
    """Use a secret that is not there."""
    return task.secret("API_KEY")
