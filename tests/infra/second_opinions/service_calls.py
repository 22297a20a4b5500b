"""Calls that services make with a stack's roles, as AWS documents them. The emulator authorizes
none of these."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from local.emulator import REGION
from tests.infra.second_opinions.calls import STATE_MACHINE
from tests.infra.second_opinions.resolved_template import STREAM, ResolvedTemplate, Resource


def calls_of_services(template: ResolvedTemplate) -> Iterator[tuple[Resource, str, str]]:
    """The calls that services make with a stack's roles: role, action, ARN.

    Lambda developer guide, "Using Lambda with CloudWatch Logs", "Permissions" of event source
    mappings for DynamoDB and SQS, "Retaining records of asynchronous invocations"; EventBridge
    Scheduler user guide, "Setting up the execution role".
    """
    by_name = {resource.name: resource for resource in template.resources}

    def role_of(function: str) -> Resource:
        arn = by_name[function].properties["Role"]
        return by_name[arn.rpartition("/")[2]]

    for function in template.of_type("AWS::Lambda::Function"):
        logs = by_name[function.properties["LoggingConfig"]["LogGroup"]].arn.removesuffix("*")
        for action in ("logs:CreateLogStream", "logs:PutLogEvents"):
            yield role_of(function.name), action, f"{logs}log-stream:2026/01/01/[$LATEST]0a1b"
    for mapping in template.of_type("AWS::Lambda::EventSourceMapping"):
        source = mapping.properties["EventSourceArn"]
        actions = STREAM_ACTIONS if source.endswith(STREAM) else QUEUE_ACTIONS
        for action in actions:
            yield role_of(mapping.properties["FunctionName"]), action, source
    for kind in ("AWS::Lambda::EventSourceMapping", "AWS::Lambda::EventInvokeConfig"):
        for source in template.of_type(kind):
            if destination := source.properties.get("DestinationConfig"):
                queue = destination["OnFailure"]["Destination"]
                yield role_of(source.properties["FunctionName"]), "sqs:SendMessage", queue
    for schedule in template.of_type("AWS::Scheduler::Schedule"):
        target = schedule.properties["Target"]
        role = by_name[target["RoleArn"].rpartition("/")[2]]
        yield role, "lambda:InvokeFunction", target["Arn"]
        yield role, "sqs:SendMessage", target["DeadLetterConfig"]["Arn"]
    for machine in template.of_type(STATE_MACHINE):
        role = by_name[machine.properties["RoleArn"].rpartition("/")[2]]
        for value in machine.properties.get("DefinitionSubstitutions", {}).values():
            if value.startswith("arn:aws:lambda:"):
                yield role, "lambda:InvokeFunction", value


STREAM_ACTIONS: Final = (
    "dynamodb:DescribeStream",
    "dynamodb:GetRecords",
    "dynamodb:GetShardIterator",
)
QUEUE_ACTIONS: Final = ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes")


def uses_of_key(action: str, resource: str) -> Iterator[tuple[str, dict[str, str]]]:
    """The calls to KMS that a service makes in its caller's name, where the stack has its own key:
    actions, and condition keys.

    DynamoDB developer guide, "DynamoDB encryption at rest: How it works"; S3 user guide, "Using
    server-side encryption with AWS KMS keys"; SQS developer guide, "Key management"; Secrets
    Manager user guide, "Secret encryption and decryption".
    """
    service, _, name = action.partition(":")
    needed = {
        "dynamodb": ("kms:Decrypt",),
        "secretsmanager": ("kms:Decrypt",),
        "sqs": ("kms:GenerateDataKey", "kms:Decrypt")
        if name == "SendMessage"
        else ("kms:Decrypt",),
        "s3": ("kms:GenerateDataKey",) if name == "PutObject" else ("kms:Decrypt",),
    }
    if action in ("s3:ListBucket", "sqs:DeleteMessage", "sqs:GetQueueAttributes"):
        return
    for operation in needed.get(service, ()):
        yield operation, {"kms:ViaService": f"{service}.{REGION}.amazonaws.com"}
    if action == "states:DescribeExecution":
        machine = resource.replace(":execution:", ":stateMachine:").rpartition(":")[0]
        context = {"kms:EncryptionContext:aws:states:stateMachineArn": machine}
        yield "kms:Decrypt", context
