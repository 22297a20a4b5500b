"""Calls that no role of a stack may be allowed, whatever the stack's options are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from local.emulator import ACCOUNT, REGION
from tests.infra.second_opinions.calls import DURABLE_WORKER, WORKER, Call

REPORTED: Final = ("lastUpdatedAt", "revision", "status", "statusMessage", "taskId")
"""Attributes that a worker's report names."""
TO_NOBODY: Final = {
    "table Tasks": ("Scan", "DeleteItem", "DeleteTable", "UpdateTable", "PartiQLSelect"),
    "table Mailboxes": ("Scan", "DeleteTable"),
    "table Callers": ("Scan", "DeleteTable"),
    "table Sessions": ("Scan", "DeleteTable"),
    "table Journal": ("Scan", "DeleteItem", "UpdateItem", "DeleteTable"),
    "object": ("DeleteObject", "PutObjectAcl", "GetObjectVersion"),
    "bucket": ("DeleteBucket", "PutBucketPolicy", "PutLifecycleConfiguration"),
    "state machine": ("UpdateStateMachine", "DeleteStateMachine", "ListExecutions"),
    "execution": ("GetExecutionHistory", "RedriveExecution"),
    "event bus": ("DeleteEventBus", "DescribeEventBus"),
    "secret Api/RequestStateKey": ("PutSecretValue", "DeleteSecret", "UpdateSecret"),
}
"""What nothing in the stack does: resource -> actions of its service."""
SERVICES: Final = {
    "table": "dynamodb",
    "object": "s3",
    "bucket": "s3",
    "state": "states",
    "execution": "states",
    "event": "events",
    "secret": "secretsmanager",
}
ELSEWHERE: Final = (
    ("iam:PassRole", f"arn:aws:iam::{ACCOUNT}:role/admin"),
    ("sts:AssumeRole", f"arn:aws:iam::{ACCOUNT}:role/admin"),
    ("lambda:UpdateFunctionCode", f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:some"),
    ("lambda:InvokeFunction", f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:of-another-stack"),
    ("dynamodb:GetItem", f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/of-another-stack"),
    ("dynamodb:PutItem", f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/of-another-stack"),
    ("s3:GetObject", "arn:aws:s3:::of-another-stack/some_tool/secret"),
    ("s3:PutObject", "arn:aws:s3:::of-another-stack/some_tool/secret"),
    ("events:PutEvents", f"arn:aws:events:{REGION}:{ACCOUNT}:event-bus/default"),
    ("sqs:PurgeQueue", f"arn:aws:sqs:{REGION}:{ACCOUNT}:of-another-stack"),
    ("states:StartExecution", f"arn:aws:states:{REGION}:{ACCOUNT}:stateMachine:of-another-stack"),
    (
        "states:StopExecution",
        f"arn:aws:states:{REGION}:{ACCOUNT}:execution:of-another-stack:c1-4f2b9c1e",
    ),
    ("secretsmanager:GetSecretValue", f"arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret:x-a1B2c3"),
    ("ssm:GetParameter", f"arn:aws:ssm:{REGION}:{ACCOUNT}:parameter/of-another-stack"),
    ("logs:DeleteLogGroup", f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:of-another-stack"),
)
"""Actions and ARNs of what the stack does not own."""


def of_anybody() -> Iterator[tuple[str, str]]:
    """Actions and resources that no role may use."""
    for resource, actions in TO_NOBODY.items():
        service = SERVICES[resource.split()[0]]
        yield from ((f"{service}:{action}", resource) for action in actions)
    yield from ELSEWHERE


def of_roles() -> Iterator[Call]:
    """What single roles may not do."""
    yield from _of_workers()
    yield from _of_durable_workers()
    for role in ("Ask", "Subtasks", "Finish", "Deliver", "Publish"):
        yield _call(role, "secretsmanager:GetSecretValue", "secret Api/RequestStateKey")
    for role in ("Api", "Subtasks", "Finish", "Sweep", "Deliver", "Ask"):
        detail_type = {"events:detail-type": "notifications/tasks", "events:source": "mcp.tasks"}
        yield _call(role, "events:PutEvents", "event bus", **detail_type)
    for role in ("Deliver", "Publish", "Authorizer", "SubscriptionsApi"):
        yield _call(role, "states:StartExecution", "state machine")
        yield _call(role, "states:SendTaskSuccess", "state machine")
        yield _call(role, "states:StopExecution", "execution")
        yield _call(role, "dynamodb:PutItem", "table Tasks", **_attributes("taskId"))
        yield _call(role, "dynamodb:UpdateItem", "table Tasks", **_attributes(*REPORTED))
    for role in ("Ask", "Deliver", "Publish", "Authorizer"):
        yield _call(role, "s3:GetObject", "object")
        yield _call(role, "s3:PutObject", "object")
    yield _call("SubscriptionsApi", "s3:PutObject", "object")
    for role in ("Authorizer", "Publish"):
        yield _call(role, "dynamodb:GetItem", "table Tasks", **_attributes("taskId"))
        yield _call(role, "dynamodb:Query", "table Mailboxes")
    yield _call("Api", "dynamodb:PutItem", "table Journal")
    yield _call("Api", "dynamodb:Query", "table Journal")


def _of_workers() -> Iterator[Call]:
    """What a tool's code may not do, which may be anybody's."""
    update = "dynamodb:UpdateItem"
    for attribute in ("principal", "input", "result", "stateMachineArn", "reconcileAt", "tool"):
        yield _call(WORKER, update, "table Tasks", **_attributes(*REPORTED, attribute))
    for values in ("ALL_OLD", "ALL_NEW", "UPDATED_OLD", "UPDATED_NEW"):
        asked = {**_attributes(*REPORTED), "dynamodb:ReturnValues": values}
        yield _call(WORKER, update, "table Tasks", **asked)
    # A request that names no attribute, if there were one, would name none outside of the list.
    yield _call(WORKER, update, "table Tasks")
    whole_row = {**_attributes("taskId"), "dynamodb:Select": "ALL_ATTRIBUTES"}
    yield _call(WORKER, "dynamodb:GetItem", "table Tasks", **whole_row)
    for attribute in ("principal", "input", "answers", "requestState"):
        row = {**_attributes("taskId", attribute), "dynamodb:Select": "SPECIFIC_ATTRIBUTES"}
        yield _call(WORKER, "dynamodb:GetItem", "table Tasks", **row)
    yield _call(WORKER, "dynamodb:PutItem", "table Tasks", **_attributes("taskId"))
    yield _call(WORKER, "dynamodb:Query", "index Tasks/byPrincipal", **_attributes("principal"))
    yield _call(WORKER, "dynamodb:BatchGetItem", "table Tasks", **_attributes("taskId"))
    for table in ("Mailboxes", "Callers", "Sessions"):
        for action in ("GetItem", "PutItem", "UpdateItem", "Query"):
            yield _call(WORKER, f"dynamodb:{action}", f"table {table}")
    for action in ("StartExecution", "SendTaskSuccess", "SendTaskFailure", "SendTaskHeartbeat"):
        yield _call(WORKER, f"states:{action}", "state machine")
    for action in ("StopExecution", "DescribeExecution"):
        yield _call(WORKER, f"states:{action}", "execution")
    for detail_type in ("notifications/tasks", "notifications/tools/list_changed"):
        yield _call(WORKER, "events:PutEvents", "event bus", **{"events:detail-type": detail_type})
    yield _call(WORKER, "secretsmanager:GetSecretValue", "secret Api/RequestStateKey")
    yield _call(WORKER, "s3:GetObject", "object of another tool")
    yield _call(WORKER, "s3:PutObject", "object of another tool")
    yield _call(WORKER, "s3:ListBucket", "bucket")


def _of_durable_workers() -> Iterator[Call]:
    for action in ("PutItem", "Query"):
        for keys in (("other_tool#{task}",), ("{tool}2#{task}",), ("{tool}#{task}", "x#{task}")):
            journal = {"dynamodb:LeadingKeys": keys}
            yield _call(DURABLE_WORKER, f"dynamodb:{action}", "table Journal", **journal)
    yield _call(DURABLE_WORKER, "dynamodb:GetItem", "table Journal")


def _attributes(*names: str) -> dict[str, tuple[str, ...]]:
    return {"dynamodb:Attributes": names}


def _call(role: str, action: str, resource: str, **context: Any) -> Call:
    return Call(role, action, resource, tuple(sorted(context.items())), allowed=False)
