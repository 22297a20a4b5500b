"""A state machine, its role and its worker for every tool that runs as a task.

Adding a file or a folder to the tools folder is all it takes: `Catalogue.discover` finds it, and
this construct builds what it needs. A state machine that exists already needs nothing.
"""

from __future__ import annotations

from typing import Any

from aws_cdk import ArnFormat, Duration, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from mcp_tasks.registry.catalogue import Catalogue
from mcp_tasks.registry.tool import Tool
from mcp_tasks.registry.workflow_tool import WorkflowTool

from .ask import AskFunction
from .cdk_nag_findings import acknowledge
from .function_code import FunctionCode
from .grants import allow_declared, role_of
from .payloads_bucket import PayloadsBucket
from .state_machine_definition import ASK, WORKER, Definition, worker_timeout
from .table import TasksTable


class ToolWorkflows(Construct):
    """The state machines of all tools, those that exist elsewhere included."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        code: FunctionCode,
        table: TasksTable,
        payloads: PayloadsBucket,
        ask: AskFunction,
        catalogue: Catalogue,
        cell: str,
    ) -> None:
        super().__init__(scope, construct_id)
        self.execution_prefix = f"{cell}-"
        self._foreign = [
            e.state_machine_arn for e in catalogue.tools.values() if e.state_machine_arn
        ]
        self.own: list[str] = []
        """The ARNs of the state machines that are made here."""
        for entry in catalogue.tools.values():
            if entry.task_support != "forbidden" and entry.state_machine_arn is None:
                ToolWorkflow(self, entry.load(), self._name(entry.name), code, table, payloads, ask)
                self.own.append(self._arn(entry.name))
        ask.allow_stop(self.executions)

    @property
    def arn_prefix(self) -> str:
        """What a tool's name completes to its state machine's ARN."""
        return self._arn("")

    @property
    def state_machines(self) -> list[str]:
        """The state machines' ARNs."""
        return [*self.own, *self._foreign]

    @property
    def executions(self) -> list[str]:
        """IAM resources: the executions that are tasks of this cell. Those of all tools that the
        stack ever had: tasks of one that was removed have to be looked after, and ended.
        """
        own = [self._arn("*")] if self.own else []
        return [
            f"{arn.replace(':stateMachine:', ':execution:', 1)}:{self.execution_prefix}*"
            for arn in (*own, *self._foreign)
        ]

    @property
    def event_patterns(self) -> list[Any]:
        """EventBridge matchers of the state machines' ARNs; a pattern has 2048 characters."""
        return [{"prefix": self.arn_prefix}, *self._foreign]

    def _name(self, tool: str) -> str:
        return f"{Stack.of(self).stack_name}-{tool}"

    def _arn(self, tool: str) -> str:
        return Stack.of(self).format_arn(
            service="states",
            resource="stateMachine",
            resource_name=self._name(tool),
            arn_format=ArnFormat.COLON_RESOURCE_NAME,
        )


class ToolWorkflow(Construct):
    """One tool's state machine, which may call its own worker, and `ask`, if it does."""

    def __init__(
        self,
        scope: Construct,
        tool: Tool,
        name: str,
        code: FunctionCode,
        table: TasksTable,
        payloads: PayloadsBucket,
        ask: AskFunction,
    ) -> None:
        super().__init__(scope, tool.name)
        definition = Definition.of(tool)
        functions = {}
        if ASK in definition.placeholders:
            functions[ASK] = ask.function
        if WORKER in definition.placeholders:
            functions[WORKER] = self._worker(tool, code, table, payloads)
        arns = {name: function.function_arn for name, function in functions.items()}
        role = iam.Role(
            self, "StateMachineRole", assumed_by=iam.ServicePrincipal("states.amazonaws.com")
        )
        if arns:
            role.add_to_policy(
                iam.PolicyStatement(
                    actions=["lambda:InvokeFunction"], resources=list(arns.values())
                )
            )
        if isinstance(tool, WorkflowTool):
            allow_declared(role, tool.name, tool.state_permissions)
        state_machine = sfn.StateMachine(
            self,
            "StateMachine",
            state_machine_name=name,
            state_machine_type=sfn.StateMachineType.STANDARD,
            definition_body=sfn.DefinitionBody.from_string(definition.text),
            definition_substitutions=arns,
            role=role,
            encryption_configuration=sfn.CustomerManagedEncryptionConfiguration(code.encryption.key)
            if code.encryption.key
            else None,
        )
        acknowledge(
            state_machine,
            "AwsSolutions-SF1",
            "Step Functions keeps a Standard execution's history for 90 days; logging it again is "
            "charged per event, and lets the role change the delivery of every log",
        )
        acknowledge(
            state_machine, "AwsSolutions-SF2", "Tracing is a fork's choice; it is charged per trace"
        )

    def _worker(
        self, tool: Tool, code: FunctionCode, table: TasksTable, payloads: PayloadsBucket
    ) -> lambda_.Function:
        worker = code.function(
            Construct(self, "Worker"),
            "worker",
            description=f"Runs the tool {tool.name}",
            environment={
                "TASKS_TABLE": table.name,
                "PAYLOADS_BUCKET": payloads.name,
                "TOOL": tool.name,
            },
            timeout=Duration.seconds(worker_timeout(tool)),
            memory_mb=tool.memory_mb,
        )
        table.grant(worker, "dynamodb:UpdateItem")
        payloads.allow(worker, ["s3:GetObject", "s3:PutObject"], f"{tool.name}/")
        allow_declared(role_of(worker), tool.name, tool.permissions)
        return worker
