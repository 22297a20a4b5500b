"""A state machine that is not part of the stack, and that a tool wraps by its ARN."""

from __future__ import annotations

import json
from typing import Any

NAME = "legacy-report"
ARN = f"arn:aws:states:us-east-1:000000000000:stateMachine:{NAME}"

DEFINITION = {
    "QueryLanguage": "JSONata",
    "StartAt": "Report",
    "States": {
        "Report": {
            "Type": "Pass",
            "Output": {"quarter": "{% $states.input.quarter %}", "revenue": 1234.5},
            "End": True,
        }
    },
}


def create_legacy_report(stepfunctions: Any, iam: Any) -> None:
    """Create the state machine and its role, as another team would have."""
    trust = {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Allow",
                "Principal": {"Service": "states.amazonaws.com"},
                "Action": "sts:AssumeRole",
            }
        ],
    }
    role = iam.create_role(RoleName=NAME, AssumeRolePolicyDocument=json.dumps(trust))
    stepfunctions.create_state_machine(
        name=NAME, definition=json.dumps(DEFINITION), roleArn=role["Role"]["Arn"]
    )
