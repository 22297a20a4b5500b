"""What is billed for a load: quantities by service. Pure.

A change of a task is a record of the table's stream (free), a call of `publish`, an event, a
message of SQS (sent, received, deleted), and a call of `deliver` with a query for subscriptions.
`publish` and `deliver` may take many changes at once: one for each is the most that they cost.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from .calls import (
    BACKGROUND_LOG_BYTES,
    CREATE,
    END,
    INDEX_WRITES_OF_CREATE,
    INDEX_WRITES_OF_END,
    LOG_BYTES,
    PLATFORM_LOG_BYTES,
    POLL,
    REPORT,
)
from .load import Load

API_MB: Final = 1024
FINISH_MB: Final = 1024
OTHER_MB: Final = 512
MINUTES: Final = 43_800
"""Of a month."""
SWEEP_MS: Final = 120
EMPTY_RECEIVES: Final = 657_000
"""Five pollers, each of which waits 20 seconds (Lambda developer guide, "Using Lambda with Amazon
SQS"; SQS developer guide, "long polling")."""
ALARM_METRICS: Final = {"iam": 41, "none": 41, "oauth": 43}
"""Of the stack's alarms, by `auth=`. A query of Metrics Insights counts once here; CloudWatch
counts each metric that it finds, of tables that were throttled or failed. Subscriptions that are
streamed at a domain have an API of their own, with four more."""
KEPT_ALARM_METRICS: Final = 11
"""Of those that are there with `alarms=off`, too: what is lost, late or not undone."""
KEY_ALARM_METRICS: Final = 1
"""Of the one that a key of the stack's own brings."""
OPERATION_METRICS: Final = 1
"""`ReconcileDelay`, which has a value each minute; the others have one when something happens."""
USED_METRICS: Final = 11
KMS_USERS: Final = 24
"""With a key of the stack's own: pairs of a function's role and a table, queue, bucket or bus, and
state machines. A service asks KMS once in five minutes for each that is in use, at most (DynamoDB
developer guide, "DynamoDB encryption at rest: How it works"; SQS developer guide, "Key
management"; Step Functions developer guide, "Data at rest encryption")."""
KMS_REQUESTS_OF_A_USER: Final = MINUTES // 5
GB: Final = 1_000_000_000

Of = Literal["task", "month"]


@dataclass(frozen=True, slots=True)
class Usage:
    """A line of the bill."""

    service: str
    what: str
    price: str
    """The price's name in `prices.toml`."""
    quantity: float
    """In a month."""
    of: Of = "task"
    """Whether it grows with the tasks, or is there without one."""


def usage(load: Load) -> list[Usage]:
    """What is billed in a month."""
    return [*_idle(load), *_compute(load), *_tables(load), *_changes(load), *_logs(load)]


def _idle(load: Load) -> Iterator[Usage]:
    """What a stack costs that nobody calls."""
    yield Usage("CloudWatch", "metrics", "metric", OPERATION_METRICS, "month")
    alarms = ALARM_METRICS[load.auth] if load.alarms == "on" else KEPT_ALARM_METRICS
    alarms += KEY_ALARM_METRICS if load.encryption == "customer" else 0
    yield Usage("CloudWatch", "alarms", "alarm_metric", alarms, "month")
    if load.dashboard == "on":
        yield Usage("CloudWatch", "dashboard", "dashboard", 1, "month")
    yield Usage("Secrets Manager", "key of requestState", "secret", 1, "month")
    yield Usage("SQS", "empty receives of deliver", "sqs_request", EMPTY_RECEIVES, "month")
    yield Usage("EventBridge", "the sweeper's schedule", "scheduled_call", MINUTES, "month")
    yield Usage("Lambda", "the sweeper's runs", "lambda_request", MINUTES, "month")
    seconds = MINUTES * SWEEP_MS / 1000 * FINISH_MB / 1024
    yield Usage("Lambda", "the sweeper's time", "lambda_gb_second", seconds, "month")
    yield Usage("DynamoDB", "the sweeper's queries", "dynamodb_read", MINUTES / 2, "month")
    logs = MINUTES * (PLATFORM_LOG_BYTES + BACKGROUND_LOG_BYTES) / GB
    yield Usage("CloudWatch Logs", "the sweeper", "log_gb", logs, "month")
    keys = (load.encryption == "customer") + (load.log_messages == "on")
    if keys:
        yield Usage("KMS", "keys", "kms_key", keys, "month")
    if load.encryption == "customer":
        requests = KMS_USERS * KMS_REQUESTS_OF_A_USER if load.tasks else 4 * KMS_REQUESTS_OF_A_USER
        yield Usage("KMS", "requests, at most", "kms_request", requests, "month")
    if load.tasks:
        metrics = USED_METRICS - OPERATION_METRICS
        yield Usage("CloudWatch", "metrics of tasks", "metric", metrics, "month")


def _compute(load: Load) -> Iterator[Usage]:
    requests = load.tasks * (1 + load.polls)
    yield Usage("API Gateway", "requests", "api_gateway_request", requests)
    sent = requests * load.response_kb * 1_000 / GB
    yield Usage("API Gateway", "data transfer out", "data_transfer_gb", sent)
    yield Usage("Step Functions", "transitions", "state_transition", load.tasks * load.transitions)
    yield from _function("api", requests, load.api_ms, API_MB)
    if load.auth == "oauth":
        yield from _function("authorizer", requests, load.background_ms, OTHER_MB)
    yield from _function("worker", load.tasks, load.worker_ms, load.worker_mb)
    yield from _function("finish", load.tasks, load.background_ms, FINISH_MB)


def _function(name: str, calls: float, ms: float, mb: int) -> Iterator[Usage]:
    yield Usage("Lambda", f"{name}, requests", "lambda_request", calls)
    yield Usage("Lambda", f"{name}, time", "lambda_gb_second", calls * ms / 1000 * mb / 1024)


def _tables(load: Load) -> Iterator[Usage]:
    row_writes = CREATE["dynamodb:PutItem"] + load.reports * REPORT["dynamodb:UpdateItem"]
    row_writes += END["dynamodb:UpdateItem"]
    quota = CREATE["dynamodb:UpdateItem"]
    units = row_writes * load.row_kb + quota + load.writes
    yield Usage("DynamoDB", "writes", "dynamodb_write", load.tasks * units)
    indexes = INDEX_WRITES_OF_CREATE + INDEX_WRITES_OF_END
    yield Usage("DynamoDB", "writes of indexes", "dynamodb_write", load.tasks * indexes)
    reads = load.polls * POLL["dynamodb:GetItem"] + END["dynamodb:GetItem"]
    each = -(-load.row_kb // 4)
    yield Usage("DynamoDB", "reads", "dynamodb_read", load.tasks * reads * each)
    kept = load.tasks * (load.row_kb + load.writes) * 1_000 / GB * load.ttl_days / 30
    yield Usage("DynamoDB", "storage", "dynamodb_gb_month", kept)
    yield Usage("DynamoDB", "recovery", "dynamodb_recovery_gb_month", kept)


def _changes(load: Load) -> Iterator[Usage]:
    changes = load.tasks * (2 + load.reports)
    yield Usage("DynamoDB", "reads of the stream", "dynamodb_stream_read", changes)
    yield Usage("EventBridge", "changes", "event", changes)
    yield Usage("SQS", "changes", "sqs_request", 3 * changes)
    for name in ("publish", "deliver"):
        yield from _function(name, changes, load.background_ms / 2, OTHER_MB)
    yield Usage("DynamoDB", "queries for subscriptions", "dynamodb_read", changes / 2)


def _logs(load: Load) -> Iterator[Usage]:
    background = PLATFORM_LOG_BYTES + BACKGROUND_LOG_BYTES
    polls = load.polls * (LOG_BYTES["poll"] + PLATFORM_LOG_BYTES)
    ends = LOG_BYTES["run"] + LOG_BYTES["end"] + 2 * PLATFORM_LOG_BYTES
    each = LOG_BYTES["create"] + PLATFORM_LOG_BYTES + polls + ends
    each += (2 + load.reports) * 2 * background
    if load.auth == "oauth":
        each += (1 + load.polls) * background
    taken = load.tasks * each / GB
    yield Usage("CloudWatch Logs", "taken in", "log_gb", taken)
    yield Usage("CloudWatch Logs", "kept for a month", "log_gb_month", taken)
