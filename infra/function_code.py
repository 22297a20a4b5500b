"""What all functions have in common: code, runtime, a log group and a role of their own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from aws_cdk import Duration
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs_
from constructs import Construct, IConstruct

from mcp_tasks import environment as names

from .cdk_nag_findings import acknowledge, acknowledge_wildcard
from .encryption import Encryption
from .log_groups import log_group
from .reserved_concurrency import ReservedConcurrency
from .tracebacks import RUN_AUTHORS_CODE, TracebacksLog

LOG_SETTINGS: Final = {"POWERTOOLS_LOGGER_LOG_EVENT": "false"}
"""An event holds arguments and answers."""


class FunctionCode:
    """The bundle that all functions run; each has its own handler, role and environment."""

    def __init__(
        self,
        folder: Path,
        reserved: ReservedConcurrency,
        encryption: Encryption,
        tracing: bool = False,
        tracebacks: TracebacksLog | None = None,
    ) -> None:
        self._code = lambda_.Code.from_asset(str(folder))
        self.reserved = reserved
        self.encryption = encryption
        self.tracing = tracing
        """Whether AWS X-Ray traces the functions."""
        self._tracebacks = tracebacks

    def function(
        self,
        scope: Construct,
        handler: str,
        *,
        description: str,
        environment: Mapping[str, str],
        timeout: Duration,
        memory_mb: int = 512,
    ) -> lambda_.Function:
        """A function of the bundle's `<handler>/handler.py`. It has no permissions but to log."""
        logs = log_group(scope, "Logs", self.encryption)
        role = _role(scope, logs)
        function = lambda_.Function(
            scope,
            "Function",
            description=description,
            code=self._code,
            handler=f"{handler}.handler.handler",
            runtime=lambda_.Runtime.PYTHON_3_13,
            architecture=lambda_.Architecture.ARM_64,
            timeout=timeout,
            memory_size=memory_mb,
            role=role,
            log_group=logs,
            reserved_concurrent_executions=self.reserved.of(handler),
            environment={**self._settings(handler, role), **environment},
            # Lambda gives the role a grant to decrypt it.
            environment_encryption=self.encryption.key,
            tracing=lambda_.Tracing.ACTIVE if self.tracing else None,
        )
        if self.tracing:
            accept_tracing(role)
        acknowledge(
            function,
            "AwsSolutions-L1",
            "Python 3.13, for which the dependencies are locked and built; the next version is a "
            "change of both",
        )
        return function

    def _settings(self, handler: str, role: iam.IRole) -> dict[str, str]:
        """A function's settings for what it logs; what runs code of tools may write tracebacks."""
        settings = {**LOG_SETTINGS, "POWERTOOLS_SERVICE_NAME": handler}
        if self._tracebacks is not None and handler in RUN_AUTHORS_CODE:
            self._tracebacks.allow_writing(role)
            settings[names.TRACEBACK_LOG_GROUP] = self._tracebacks.name
        return settings


def accept_tracing(construct: IConstruct) -> None:
    """Accept that a role may write traces: X-Ray's actions for it take no resource (service
    authorization reference, "Actions, resources, and condition keys for AWS X-Ray")."""
    acknowledge_wildcard(construct, "*", "X-Ray's actions take no resource")


def _role(scope: Construct, logs: logs_.ILogGroup) -> iam.Role:
    role = iam.Role(scope, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
    logs.grant_write(role)
    return role
