"""What each action of a task calls, and what it logs. Tests count both
(`tests/unit/operations/costs/test_calls.py`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

CREATE: Final[Mapping[str, int]] = {
    "dynamodb:UpdateItem": 1,  # the caller's quota
    "dynamodb:PutItem": 1,  # the row
    "stepfunctions:StartExecution": 1,
}
POLL: Final[Mapping[str, int]] = {"dynamodb:GetItem": 1}
REPORT: Final[Mapping[str, int]] = {"dynamodb:UpdateItem": 1}
END: Final[Mapping[str, int]] = {"dynamodb:GetItem": 1, "dynamodb:UpdateItem": 1}
"""Of `finish`, which gets the end from its event."""

INDEX_WRITES_OF_CREATE: Final = 2
"""A new row is in the reconcile schedule and in the caller's list: a write unit each."""
INDEX_WRITES_OF_END: Final = 1
"""It leaves the schedule."""

LOG_BYTES: Final[Mapping[str, int]] = {"create": 1_050, "poll": 1_050, "end": 1_000, "run": 400}
"""What our functions log, in bytes of JSON: `api` for a create and a poll, `finish`, and a worker.
With 200 bytes for the client's identity in a token's claims."""
PLATFORM_LOG_BYTES: Final = 340
"""What Lambda logs of each invocation: START, END and REPORT, with 26 bytes of CloudWatch's for
each event (CloudWatch Logs API reference, "PutLogEvents")."""
BACKGROUND_LOG_BYTES: Final = 300
"""What `publish`, `deliver` and the authorizer log of a call."""
