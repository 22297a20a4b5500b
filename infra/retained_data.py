"""What outlives a stack and is not deleted by accident: `-c data=retain`, the default on AWS.

The tables that can be recovered, and the logs, which hold the audit log, are protected from
deletion, and stay when the stack goes or an update would replace them. The stack is protected from
termination. Mailboxes and sessions live for minutes, and have nothing to recover.

The logs of crashes' messages and of failed executions hold no audit log, and go with the option
that makes them, or with the stack. The latter's name is fixed: a group that was left behind would
fail the deployment that makes it again.
"""

from __future__ import annotations

from aws_cdk import RemovalPolicy, Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_logs as logs
from constructs import IConstruct

from .execution_log import ExecutionLog
from .tracebacks import TracebacksLog


def protect_data(stack: Stack, *, retain: bool) -> None:
    """Protect the tables and log groups that a stack has so far, and the stack; or none of them.

    With `RETAIN_ON_UPDATE_OR_DELETE`, a stack whose creation fails would end in `ROLLBACK_FAILED`:
    CloudFormation would delete what is protected from deletion (DynamoDB developer guide, "Using
    deletion protection"; CloudWatch Logs user guide, "Protecting log groups from deletion").
    """
    stack.termination_protection = retain
    for construct in stack.node.find_all():
        kept = retain and not _goes_with_its_option(construct)
        match construct:
            case dynamodb.CfnTable(point_in_time_recovery_specification=None):
                pass
            case dynamodb.CfnTable() | logs.CfnLogGroup():
                # Written out where it is off: that takes it away from a stack that had it.
                construct.deletion_protection_enabled = kept
                construct.apply_removal_policy(
                    RemovalPolicy.RETAIN if kept else RemovalPolicy.DESTROY
                )


def _goes_with_its_option(construct: IConstruct) -> bool:
    return any(isinstance(each, ExecutionLog | TracebacksLog) for each in construct.node.scopes)
