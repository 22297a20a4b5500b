"""The resources of a stack that alarms, dashboard and queries are about, found in the stack."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self, TypeVar

from aws_cdk import Stack
from aws_cdk import aws_apigateway as apigateway
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from .dead_letter_queue import DeadLetterQueue
from .figures import Each

TOOLS: Final = "Tools/"
AUTHORIZER: Final = "Authorizer"
MAX_GROUPS_OF_A_QUERY: Final = 50
"""CloudWatch Logs API reference, "StartQuery", `logGroupNames`."""

Found = TypeVar("Found", bound=Construct)


@dataclass(frozen=True, slots=True)
class Watched:
    """The resources, each by the name of its part of the stack: `Finish`, `Tools/count/Worker`."""

    apis: dict[str, apigateway.RestApi]
    functions: dict[str, lambda_.Function]
    state_machines: dict[str, sfn.StateMachine]
    tables: dict[str, dynamodb.Table]
    dead_letter_queues: dict[str, DeadLetterQueue]
    log_groups: dict[str, logs.LogGroup]

    @classmethod
    def of(cls, stack: Stack) -> Self:
        """What a stack has now."""
        return cls(
            _found(stack, apigateway.RestApi),
            _found(stack, lambda_.Function),
            _found(stack, sfn.StateMachine),
            _found(stack, dynamodb.Table),
            _found(stack, DeadLetterQueue),
            _found(stack, logs.LogGroup),
        )

    @property
    def own_functions(self) -> dict[str, lambda_.Function]:
        """The functions that are no workers: what they meet is never a tool's doing."""
        return {n: f for n, f in self.functions.items() if not n.startswith(TOOLS)}

    def dimension_values(self, each: Each) -> list[tuple[str, str]]:
        """For each resource of a kind its name for people, and the value of its dimension."""
        return [(_tool(name), value) for name, value in self._dimension_values(each).items()]

    def _dimension_values(self, each: Each) -> dict[str, str]:
        match each:
            case Each.API:
                return {name: api.rest_api_name for name, api in self.apis.items()}
            case Each.FUNCTION:
                return {name: f.function_name for name, f in self.functions.items()}
            case Each.STATE_MACHINE:
                return {n: s.state_machine_arn for n, s in self.state_machines.items()}
            case Each.TABLE:
                return {name: table.table_name for name, table in self.tables.items()}
            case Each.DEAD_LETTER_QUEUE:
                return {name: queue.queue_name for name, queue in self.dead_letter_queues.items()}
            case Each.LOG_GROUP:
                return {n: group.log_group_name for n, group in self.log_groups.items()}
            case Each.TOOL:
                return {name: _tool(name) for name in self.state_machines}

    def logs_of(self, *parts: str) -> list[str]:
        """The names of the log groups of some functions of the stack; of all, without any.

        Workers come last: with more than forty tools, a query reads the first ones' only.
        """
        ordered = sorted(self.functions, key=lambda name: name.startswith(TOOLS))
        names = [name for name in ordered if not parts or name in parts]
        groups = [self.log_groups[name].log_group_name for name in names]
        return groups[:MAX_GROUPS_OF_A_QUERY]


def _found(stack: Stack, kind: type[Found]) -> dict[str, Found]:
    """All constructs of a kind, by the path of what they are in."""
    prefix = f"{stack.node.path}/"
    return {
        construct.node.scope.node.path.removeprefix(prefix): construct
        for construct in stack.node.find_all()
        if isinstance(construct, kind) and construct.node.scope
    }


def _tool(name: str) -> str:
    """The tool of a worker or a state machine; the name itself for everything else."""
    return name.removeprefix(TOOLS).removesuffix("/Worker") if name.startswith(TOOLS) else name
