"""What roles must not be allowed, asked of IAM itself by simulation.

Source: IAM user guide, "Testing IAM policies with the IAM policy simulator".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ..deployed_stack import DeployedStack
from .check import Check, expect
from .deployed import Deployed

TASKS, JOURNAL, ANY = "tasks", "journal", "*"


@dataclass(frozen=True, slots=True)
class Denied:
    """Calls that a role of the stack must not be able to make."""

    role: str
    """The beginning of its logical id."""
    actions: tuple[str, ...]
    on: str


DENIED: Final = (
    Denied("AuthorizerRole", ("dynamodb:GetItem", "dynamodb:Query"), TASKS),
    Denied("AuthorizerRole", ("s3:GetObject", "states:StartExecution"), ANY),
    Denied("ApiRole", ("dynamodb:DeleteTable", "dynamodb:Scan", "dynamodb:DeleteItem"), TASKS),
    Denied("ApiRole", ("iam:PassRole", "lambda:UpdateFunctionCode"), ANY),
    Denied("AskRole", ("dynamodb:PutItem", "dynamodb:DeleteItem", "dynamodb:Scan"), TASKS),
    Denied("FinishRole", ("dynamodb:PutItem", "dynamodb:Scan", "dynamodb:DeleteTable"), TASKS),
    Denied("PublishRole", ("dynamodb:UpdateItem", "dynamodb:PutItem", "dynamodb:GetItem"), TASKS),
    Denied("DeliverRole", ("dynamodb:UpdateItem", "dynamodb:PutItem", "dynamodb:GetItem"), TASKS),
    Denied("SweepRole", ("dynamodb:PutItem", "dynamodb:Scan", "dynamodb:DeleteItem"), TASKS),
    # A worker writes single attributes of rows, and none without naming them.
    Denied("Tools", ("dynamodb:PutItem", "dynamodb:DeleteItem", "dynamodb:Scan"), TASKS),
    Denied("Tools", ("states:StartExecution", "iam:PassRole", "lambda:UpdateFunctionCode"), ANY),
)


def simulate(deployed: Deployed) -> str:
    """IAM denies each of the calls in the list."""
    stack = deployed.account()
    account = stack.client("sts").get_caller_identity()
    partition, number = account["Arn"].split(":")[1], account["Account"]
    asked = 0
    allowed: list[str] = []
    for denied in DENIED:
        roles = stack.physical_ids("AWS::IAM::Role", denied.role)
        expect(roles, f"the stack has no role {denied.role}")
        for role in roles:
            arn = f"arn:{partition}:iam::{number}:role/{role}"
            answer = stack.client("iam").simulate_principal_policy(
                PolicySourceArn=arn,
                ActionNames=list(denied.actions),
                ResourceArns=[_resource(stack, denied.on, partition, number)],
            )
            for result in answer["EvaluationResults"]:
                asked += 1
                if result["EvalDecision"] == "allowed":
                    allowed.append(f"{role}: {result['EvalActionName']}")
    expect(not allowed, f"allowed: {', '.join(allowed)}")
    return f"{asked} calls are denied"


def _resource(stack: DeployedStack, on: str, partition: str, account: str) -> str:
    if on == ANY:
        return "*"
    region = stack.client("dynamodb").meta.region_name
    table = stack.outputs["TasksTable" if on == TASKS else "JournalTable"]
    return f"arn:{partition}:dynamodb:{region}:{account}:table/{table}"


CHECKS: Final = (Check("Denied calls (IAM)", simulate, only_aws=True, of_stack=True),)
