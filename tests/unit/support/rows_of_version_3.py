"""Rows of the tasks table as the version before this one wrote them, to the letter.

Such a task may still wait for its answer when this version is deployed.
"""

from __future__ import annotations

import json
from typing import Any, Final

from tests.unit.support.aws import TABLE, real
from tests.unit.support.example_task import ID

KEY: Final = "sure-3c469e9d6c58"
"""What the client answers the ask under."""
ASK: Final = "3c469e9d6c58"
TOKEN: Final = "token"

_FORM: Final = {
    "message": "Sure?",
    "schema": {
        "type": "object",
        "properties": {"sure": {"type": "boolean"}},
        "required": ["sure"],
    },
}

WORKING: Final[dict[str, Any]] = {
    "accepts": {"M": {"form": {"BOOL": True}}},
    "asks": {"M": {}},
    "createdAt": {"N": "1700000000000"},
    "expiresAt": {"N": "1700003601"},
    "expiresAtMs": {"N": "1700003600000"},
    "input": {"S": '{"upto":3}'},
    "inputRevision": {"N": "0"},
    "lastUpdatedAt": {"N": "1700000000000"},
    "pollIntervalMs": {"N": "2000"},
    "principal": {"S": "alice"},
    "revision": {"N": "1"},
    "schemaVersion": {"N": "3"},
    "stateMachineArn": {"S": "arn:aws:states:us-east-1:123456789012:stateMachine:count"},
    "status": {"S": "working"},
    "taskId": {"S": ID},
    "tool": {"S": "count"},
    "ttlMs": {"N": "3600000"},
}
"""As it was created at example_task.NOW."""

ASKING: Final[dict[str, Any]] = {
    **WORKING,
    "asks": {
        "M": {
            ASK: {
                "M": {
                    "answers": {"M": {}},
                    "names": {"M": {KEY: {"S": "sure"}}},
                    "questions": {"M": {KEY: {"S": json.dumps(_FORM)}}},
                    "token": {"S": TOKEN},
                }
            },
            "17b9639c99ee": {"M": {"delivered": {"BOOL": True}}},
        }
    },
    "inputRevision": {"N": "3"},
    "lastUpdatedAt": {"N": "1700000000003"},
    "revision": {"N": "5"},
    "status": {"S": "input_required"},
    "statusMessage": {"S": "half-way"},
}
"""After one question was answered, while another waits."""

COMPLETED: Final[dict[str, Any]] = {
    **{name: value for name, value in WORKING.items() if name not in ("asks", "input")},
    "lastUpdatedAt": {"N": "1700000000004"},
    "result": {"S": '{"content": []}'},
    "revision": {"N": "2"},
    "status": {"S": "completed"},
}


def put(row: dict[str, Any]) -> None:
    """Write a row as it is."""
    real("dynamodb").put_item(TableName=TABLE, Item=row)
