"""Questions to the IAM simulator: may a role of a stack make a call?"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from local.emulator import ACCOUNT
from tests.infra.second_opinions import programs
from tests.infra.second_opinions.resolved_template import ResolvedTemplate, Resource

ALLOWED: Final = "Allowed"
TLS: Final = {"aws:SecureTransport": "true"}
"""What all of the stack's calls have: boto3 and the services call by HTTPS."""
UNCHECKED: Final = ("states:SendTaskSuccess", "states:SendTaskFailure", "states:SendTaskHeartbeat")
"""What AWS authorizes against the token's state machine, though its service authorization reference
knows no resource of it, and the simulator therefore takes `*` only. AWS's denials name the state
machine, and the CDK's `grantTaskResponse` grants it so after a test on AWS (aws/aws-cdk#8486)."""
ENCRYPTION_CONTEXT: Final = "kms:EncryptionContext:aws:states:stateMachineArn"
STAND_IN: Final = "kms:RequestAlias"
"""Another condition key of kms:Decrypt with one string, which the simulator knows. It does not know
keys that end in a variable after a colon, as AWS documents ENCRYPTION_CONTEXT (developer guide of
Step Functions, "Data at rest encryption in Step Functions")."""


@dataclass(frozen=True, slots=True)
class Question:
    """A call by a role of a stack."""

    variant: str
    """Which stack."""
    role: Resource
    action: str
    resource: str
    context: Mapping[str, str | list[str]]

    def asked(self, template: ResolvedTemplate) -> dict[str, Any]:
        """As `node/simulate_iam.cjs` takes it."""
        return {
            "account": ACCOUNT,
            "principal": f"arn:aws:sts::{ACCOUNT}:assumed-role/{self.role.name}/session",
            "policies": template.policies(self.role),
            "resourcePolicy": template.resource_policy(self.resource),
            "action": self.action,
            "resource": self.resource,
            "context": {**TLS, **self.context},
            "unchecked": self.action in UNCHECKED,
        }

    def __str__(self) -> str:
        context = f" with {dict(self.context)}" if self.context else ""
        return f"{self.variant}: {self.role.path}: {self.action} on {self.resource}{context}"


def answers(
    templates: Mapping[str, ResolvedTemplate], questions: Sequence[Question]
) -> list[tuple[Question, str]]:
    """The simulator's answers: `Allowed`, `ImplicitlyDenied` or `ExplicitlyDenied`."""
    asked = [question.asked(templates[question.variant]) for question in questions]
    assert STAND_IN not in json.dumps(asked)
    known = json.loads(json.dumps(asked).replace(ENCRYPTION_CONTEXT, STAND_IN))
    found = programs.node("simulate_iam.cjs", *known)
    return [(question, answer["result"]) for question, answer in zip(questions, found, strict=True)]
