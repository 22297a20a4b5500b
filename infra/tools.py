"""A state machine, its role and its worker for every tool that runs as a task.

Adding a file or a folder to the tools folder is all it takes: `Catalogue.discover` finds it, and
this construct builds what it needs.
"""

from __future__ import annotations

import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

from aws_cdk import ArnFormat, Duration, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from mcp_tasks.registry.catalogue import Catalogue
from mcp_tasks.registry.tool import LAMBDA_LIMIT, Tool, WorkflowTool

from .ask import AskFunction
from .functions import FunctionCode
from .nag import acknowledge
from .table import TasksTable

FUNCTION_TASK = Path(__file__).with_name("function_task.asl.json")
ONE_YEAR = timedelta(days=365)
"""How long an execution may run (Step Functions developer guide, "Quotas")."""


class ToolWorkflows(Construct):
    """The state machines of all tools, those that exist elsewhere included."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        code: FunctionCode,
        table: TasksTable,
        ask: AskFunction,
        catalogue: Catalogue,
    ) -> None:
        super().__init__(scope, construct_id)
        self.name_prefix = f"{Stack.of(self).stack_name}-"
        self.foreign = [e.state_machine_arn for e in catalogue if e.state_machine_arn]
        for entry in catalogue:
            if entry.task != "forbidden" and entry.state_machine_arn is None:
                ToolWorkflow(self, entry.load(), self.name_prefix, code, table, ask)
        ask.grant_stop(self.executions)

    @property
    def arn_prefix(self) -> str:
        """What a tool's name completes to its state machine's ARN."""
        return self._arn("stateMachine", self.name_prefix)

    @property
    def state_machines(self) -> list[str]:
        """IAM resources: the stack's state machines, and those that exist elsewhere."""
        return [f"{self.arn_prefix}*", *self.foreign]

    @property
    def executions(self) -> list[str]:
        """IAM resources: the executions of `state_machines`."""
        return [
            f"{self._arn('execution', self.name_prefix)}*",
            *(f"{arn.replace(':stateMachine:', ':execution:', 1)}:*" for arn in self.foreign),
        ]

    @property
    def event_patterns(self) -> list[Any]:
        """EventBridge matchers of the state machines' ARNs."""
        return [{"prefix": self.arn_prefix}, *self.foreign]

    def _arn(self, resource: str, name: str) -> str:
        return Stack.of(self).format_arn(
            service="states",
            resource=resource,
            resource_name=name,
            arn_format=ArnFormat.COLON_RESOURCE_NAME,
        )


class ToolWorkflow(Construct):
    """One tool's state machine and worker."""

    def __init__(
        self,
        scope: Construct,
        tool: Tool,
        name_prefix: str,
        code: FunctionCode,
        table: TasksTable,
        ask: AskFunction,
    ) -> None:
        super().__init__(scope, _construct_id(tool))
        role = iam.Role(
            self, "StateMachineRole", assumed_by=iam.ServicePrincipal("states.amazonaws.com")
        )
        substitutions = {"ask": ask.function.function_arn}
        ask.function.grant_invoke(role)
        if not isinstance(tool, WorkflowTool) or tool.steps:
            worker = self._worker(tool, code, table)
            worker.grant_invoke(role)
            substitutions["worker"] = worker.function_arn
        state_machine = sfn.StateMachine(
            self,
            "StateMachine",
            state_machine_name=f"{name_prefix}{tool.name}",
            state_machine_type=sfn.StateMachineType.STANDARD,
            definition_body=sfn.DefinitionBody.from_string(_definition(tool)),
            definition_substitutions=substitutions,
            role=role,
        )
        acknowledge(
            state_machine,
            "AwsSolutions-SF1",
            "Step Functions keeps the history of a Standard execution for 90 days; a second copy "
            "in CloudWatch would hold arguments and answers",
        )
        acknowledge(
            state_machine, "AwsSolutions-SF2", "Tracing is a fork's choice; it is charged per trace"
        )
        acknowledge(
            role,
            "AwsSolutions-IAM5",
            "grant_invoke includes the function's versions; the function is this tool's own",
        )

    def _worker(self, tool: Tool, code: FunctionCode, table: TasksTable) -> lambda_.Function:
        scope = Construct(self, "Worker")
        # The state's timeout comes first, so that a tool that runs over its time is named so.
        timeout = min(tool.timeout + timedelta(seconds=5), LAMBDA_LIMIT)
        worker = code.function(
            scope,
            "worker",
            description=f"Runs the tool {tool.name}",
            environment={"TASKS_TABLE": table.name, "TOOL": tool.name},
            timeout=Duration.seconds(int(timeout.total_seconds())),
            memory_mb=tool.memory_mb,
        )
        table.grant(worker, "dynamodb:UpdateItem")
        for statement in tool.permissions:
            worker.add_to_role_policy(iam.PolicyStatement(**statement))
        return worker


def _definition(tool: Tool) -> str:
    """The tool's Amazon States Language, with the limits that a definition left out."""
    own = tool.definition_file if isinstance(tool, WorkflowTool) else None
    file = own or FUNCTION_TASK
    definition: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    # An execution must not outlive its task.
    definition.setdefault("TimeoutSeconds", int(min(tool.ttl, ONE_YEAR).total_seconds()))
    if own is None:
        definition["States"]["Run"]["TimeoutSeconds"] = int(tool.timeout.total_seconds())
    return json.dumps(definition)


def _construct_id(tool: Tool) -> str:
    return re.sub("[^A-Za-z0-9]", "", tool.name.title())
