"""The log of executions that fail (`-c execution_log=on`): one group for all state machines."""

from __future__ import annotations

from aws_cdk import Stack
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct, IConstruct

from .cdk_nag_findings import acknowledge_wildcard
from .encryption import EXECUTION_LOGS, Encryption
from .log_groups import log_group


class ExecutionLog(Construct):
    """The group, and how state machines log into it: events of errors, without what executions
    take and give. An event has the error's name and cause: the class of an exception, or what a
    state of a workflow says.
    """

    def __init__(self, scope: Construct, construct_id: str, encryption: Encryption) -> None:
        super().__init__(scope, construct_id)
        name = f"{EXECUTION_LOGS}{Stack.of(self).stack_name}"
        self.group = log_group(self, "Logs", encryption, name)
        self.options = sfn.LogOptions(
            destination=self.group, level=sfn.LogLevel.ERROR, include_execution_data=False
        )
        """Of a state machine."""

    def accept_delivery(self, role: IConstruct) -> None:
        """Accept what each role of a state machine needs then: the actions on deliveries of logs
        take no resource (Step Functions developer guide, "Using CloudWatch Logs to log execution
        history").
        """
        acknowledge_wildcard(role, "*", "Actions on deliveries of logs take no resource")
