"""Where the tracebacks of crashes are kept, with the messages of exceptions (`-c log_messages=on`).

A message may quote arguments, answers and results. So tracebacks have a log group of their own, and
its KMS key is its own as well: whoever may read the functions' logs needs `kms:Decrypt` on this key
besides `logs:FilterLogEvents` (CloudWatch Logs user guide, "Encrypt log data using AWS KMS"). The
functions only write, for which they need nothing of the key.
"""

from __future__ import annotations

from typing import Final

from aws_cdk import CfnOutput, RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from constructs import Construct

from .encryption import let_logs_use

RETENTION: Final = logs.RetentionDays.ONE_WEEK
RUN_AUTHORS_CODE: Final = frozenset({"api", "worker", "ask", "finish", "sweep"})
"""The handlers that run code of tools, or check what a tool's definition says."""


class TracebacksLog(Construct):
    """A log group with a key of its own."""

    def __init__(self, scope: Construct, construct_id: str) -> None:
        super().__init__(scope, construct_id)
        key = kms.Key(
            self,
            "Key",
            description=f"Encrypts the messages of exceptions of {Stack.of(self).stack_name}",
            enable_key_rotation=True,
            removal_policy=RemovalPolicy.DESTROY,
        )
        let_logs_use(key)
        self._group = logs.LogGroup(
            self,
            "Logs",
            retention=RETENTION,
            removal_policy=RemovalPolicy.DESTROY,
            encryption_key=key,
        )
        CfnOutput(
            Stack.of(self), "TracebacksLogGroup", value=self.name, description="Holds messages"
        )

    @property
    def name(self) -> str:
        """The log group's name."""
        return self._group.log_group_name

    def allow_writing(self, role: iam.IRole) -> None:
        """Allow to create streams and to write events, and not to read any."""
        self._group.grant_write(role)
