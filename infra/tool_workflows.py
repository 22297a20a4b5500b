"""A state machine, its role and its worker for every tool that runs as a task.

A file or a folder in the tools folder is enough: `Catalogue.discover` finds it, and `ToolWorkflows`
builds what it needs. For a state machine that exists already it builds nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from aws_cdk import ArnFormat, Aws, Duration, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from mcp_tasks import environment, metrics
from mcp_tasks.notifications.server_changes import RESOURCE_UPDATED
from mcp_tasks.registry.catalogue import Catalogue
from mcp_tasks.registry.tool import Tool
from mcp_tasks.registry.workflow_tool import WorkflowTool
from mcp_tasks.tasks.row_updates import DURABLE_ATTRIBUTES, WORKER_ATTRIBUTES

from .alarms import alarm_for_count, metrics_namespace
from .ask import AskFunction
from .cdk_nag_findings import acknowledge
from .encryption import Encryption, allow_decrypting_executions
from .event_bus import TaskEvents
from .execution_log import ExecutionLog
from .function_code import FunctionCode, accept_tracing
from .grants import allow_declared, allow_of_all_tools, role_of
from .payloads_bucket import PayloadsBucket
from .reserved_concurrency import reserve
from .secrets import allow_secrets
from .state_machine_definition import (
    ASK,
    PARTITION,
    SUBTASKS,
    WORKER,
    Definition,
    is_durable,
    worker_timeout,
)
from .subtasks import SubtasksFunction
from .tables import Tables
from .wrapped_state_machines import WrappedStateMachines

NO_LOG: Final = sfn.LogOptions(level=sfn.LogLevel.OFF)


@dataclass(frozen=True, slots=True)
class WorkflowProps:
    """What the workflows of all tools share."""

    code: FunctionCode
    tables: Tables
    payloads: PayloadsBucket
    ask: AskFunction
    subtasks: SubtasksFunction
    task_events: TaskEvents
    max_workers: int | None
    """Instances of a worker whose tool says nothing else."""
    execution_log: ExecutionLog | None
    """Where errors of executions are logged (`-c execution_log=on`)."""


class ToolWorkflows(Construct):
    """The state machines of all tools, and the names of those that exist elsewhere."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        props: WorkflowProps,
        catalogue: Catalogue,
        cell: str,
    ) -> None:
        super().__init__(scope, construct_id)
        self.execution_prefix = f"{cell}-"
        """The beginning of the names of executions that are tasks of this cell."""
        tools = catalogue.tools.values()
        self._wrapped = WrappedStateMachines.of(catalogue)
        self._foreign = self._wrapped.arns
        self.own: list[str] = []
        """The ARNs of the state machines that are made here."""
        for tool in tools:
            if tool.task_support != "forbidden" and tool.state_machine_arn is None:
                workflow = ToolWorkflow(self, tool.load(), self._name(tool.name), props)
                self.own.append(self._arn(tool.name))
                props.code.encryption.allow_going_on(workflow.role, self.own[-1])
        self._wrapped.describe_in_template(Stack.of(self))
        props.ask.allow_stop(self.executions)
        props.subtasks.allow_starting(self.arn_prefix, self.state_machines, self.own)
        props.subtasks.allow_stopping(self.executions)
        alarm_for_count(
            self,
            metrics.NOT_UNDONE,
            "A task was cancelled or failed, and something that it did was not undone; the audit "
            "log names the task and its steps",
        )
        alarm_for_count(
            self,
            metrics.NON_DETERMINISM,
            "A task failed because its tool, when it ran again, took another way than its journal",
        )

    @property
    def arn_prefix(self) -> str:
        """The beginning of a state machine's ARN; the tool's name completes it."""
        return self._arn("")

    @property
    def state_machines(self) -> list[str]:
        """The ARNs of all state machines."""
        return [*self.own, *self._foreign]

    @property
    def executions(self) -> list[str]:
        """The executions that are tasks of this cell, as IAM resources.

        They include those of tools that were removed from the stack, whose tasks still have to be
        reconciled and ended.
        """
        own = [self._arn("*")] if self.own else []
        return [
            f"{arn.replace(':stateMachine:', ':execution:', 1)}:{self.execution_prefix}*"
            for arn in (*own, *self._foreign)
        ]

    @property
    def event_patterns(self) -> list[list[Any]]:
        """EventBridge matchers of the state machines' ARNs, those of one rule in each list. One
        prefix stands for all of the stack's own.
        """
        first, *others = self._wrapped.in_rules
        return [[{"prefix": self.arn_prefix}, *first], *others]

    def allow_seeing_removal(self, function: lambda_.Function) -> None:
        """Allow to see whether the state machine of a removed tool waits for its last executions:
        whoever reconciles tasks then ends them, polls included."""
        if self.own:
            allow_of_all_tools(function, ["states:DescribeStateMachine"], f"{self.arn_prefix}*")

    def allow_reading_executions(self, function: lambda_.Function, encryption: Encryption) -> None:
        """Allow to decrypt how executions ended, also of state machines with a key of their own."""
        encryption.allow_reading_executions(function, self.own)
        for key_arn, state_machines in self._wrapped.by_key.items():
            allow_decrypting_executions(function, key_arn, state_machines)

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
    """One tool's state machine, which may call the tool's worker and `ask` if it names them."""

    def __init__(self, scope: Construct, tool: Tool, name: str, props: WorkflowProps) -> None:
        super().__init__(scope, tool.name)
        definition = Definition.of(tool)
        arns = {}
        if ASK in definition.placeholders:
            arns[ASK] = props.ask.function.function_arn
        if SUBTASKS in definition.placeholders:
            arns[SUBTASKS] = props.subtasks.function.function_arn
        if WORKER in definition.placeholders:
            arns[WORKER] = self._worker(tool, props).function_arn
        partition = {PARTITION: Aws.PARTITION} if PARTITION in definition.placeholders else {}
        key = props.code.encryption.key
        self.role = self._role(tool, arns)
        """What the executions act as."""
        state_machine = sfn.StateMachine(
            self,
            "StateMachine",
            state_machine_name=name,
            state_machine_type=sfn.StateMachineType.STANDARD,
            definition_body=sfn.DefinitionBody.from_string(definition.text),
            definition_substitutions={**arns, **partition},
            role=self.role,
            # Each is written out where it is off: an update that leaves a configuration out keeps
            # what the state machine has (API reference, "UpdateStateMachine"; aws/aws-cdk#30796,
            # aws/aws-cdk#30814), and its role has lost the rights.
            encryption_configuration=sfn.CustomerManagedEncryptionConfiguration(key)
            if key
            else sfn.AwsOwnedEncryptionConfiguration(),
            logs=props.execution_log.options if props.execution_log else NO_LOG,
            tracing_enabled=props.code.tracing,
        )
        if partition or is_durable(tool):
            _ignore_schema_of_definition(state_machine)
        _accept_findings(state_machine, props)

    def _role(self, tool: Tool, functions: Mapping[str, str]) -> iam.Role:
        role = iam.Role(
            self, "StateMachineRole", assumed_by=iam.ServicePrincipal("states.amazonaws.com")
        )
        if functions:
            role.add_to_policy(
                iam.PolicyStatement(
                    actions=["lambda:InvokeFunction"], resources=list(functions.values())
                )
            )
        if isinstance(tool, WorkflowTool):
            allow_declared(role, tool.name, tool.state_permissions)
        return role

    def _worker(self, tool: Tool, props: WorkflowProps) -> lambda_.Function:
        durable = is_durable(tool)
        journal = {environment.JOURNAL_TABLE: props.tables.journal.name, **metrics_namespace(self)}
        worker = props.code.function(
            Construct(self, "Worker"),
            "worker",
            description=f"Runs the tool {tool.name}",
            environment={
                environment.TASKS_TABLE: props.tables.tasks.name,
                environment.PAYLOADS_BUCKET: props.payloads.name,
                environment.EVENT_BUS: props.task_events.name,
                environment.TOOL: tool.name,
                **(journal if durable else {}),
                **tool.env,
            },
            timeout=Duration.seconds(worker_timeout(tool)),
            memory_mb=tool.memory_mb,
        )
        instances = tool.max_concurrency or props.max_workers
        if instances is not None:
            reserve(worker, instances)
        props.tables.tasks.allow_reports(
            worker, DURABLE_ATTRIBUTES if durable else WORKER_ATTRIBUTES
        )
        if durable:
            props.tables.tasks.allow_reading_status(worker)
            props.tables.journal.allow_own(worker, tool.name)
        props.task_events.allow_announcing(worker, RESOURCE_UPDATED)
        props.payloads.allow(worker, ["s3:GetObject", "s3:PutObject"], f"{tool.name}/")
        allow_declared(role_of(worker), tool.name, tool.permissions)
        allow_secrets(worker, tool)
        return worker


def _accept_findings(state_machine: sfn.StateMachine, props: WorkflowProps) -> None:
    role = state_machine.role
    acknowledge(
        state_machine,
        "AwsSolutions-SF1",
        "Step Functions keeps a Standard execution's history for 90 days; logging all of it again "
        "is charged per event. -c execution_log=on logs the errors",
    )
    if props.execution_log:
        props.execution_log.accept_delivery(role)
    if props.code.tracing:
        accept_tracing(role)
    else:
        acknowledge(
            state_machine,
            "AwsSolutions-SF2",
            "Tracing is charged per trace; -c tracing=on turns it on",
        )


def _ignore_schema_of_definition(state_machine: sfn.StateMachine) -> None:
    """E3601: cfn-lint wants `arn:aws:` in a resource, which is of one partition of several; and a
    number for a Map's MaxConcurrency, which may be a JSONata expression (CDK API reference,
    "MapJsonataProps", `jsonata_max_concurrency`)."""
    resource = state_machine.node.default_child
    if not isinstance(resource, sfn.CfnStateMachine):
        raise TypeError(f"{state_machine.node.path} is no state machine")
    resource.add_metadata("cfn-lint", {"config": {"ignore_checks": ["E3601"]}})
