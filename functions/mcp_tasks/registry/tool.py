"""What all tools have in common, and what their declarations may get wrong.

A tool is a Python function (`function_tool`) or a state machine (`workflow_tool`). A wrong
declaration raises an error when its module is imported, which `cdk synth` does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Any, Final, Literal, get_args

from pydantic import BaseModel, TypeAdapter

from ..json_schema import SchemaMismatch
from ..protocol.headers import MirroredParameter, mirrored_parameters
from ..protocol.meta import META_MEMBER
from . import schema
from .context import Context
from .list_definition import build_definition
from .secret_reference import check_surroundings
from .step import Step

AskFirst = Callable[..., Any]
"""A function that asks the client, within the request, before the task is created."""

TaskSupport = Literal["forbidden", "optional", "required"]
"""Whether a tool runs as a task: never, for clients that declare the tasks extension, or always."""

WithoutTasks = Literal["request", "task", "refuse"]
"""What a client without tasks gets, whose connection can wait: the tool runs within the request, or
as a task of which the client sees only progress, questions and the result."""

MAX_WITHIN_REQUEST: Final = timedelta(seconds=25)
"""How long a function may run within a request: API Gateway waits 29 seconds."""

MAX_LAMBDA_TIMEOUT: Final = timedelta(minutes=15)
"""AWS Lambda developer guide, "Lambda quotas"."""

_SCOPE: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,48}")
"""An execution's state machine is named after its tool. Step Functions allows 80 characters, of
which the stack's name takes the rest."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Tool:
    """What a function and a workflow have in common as tools.

    Raises TypeError or ValueError, with the tool's name, for a declaration that cannot be offered.
    """

    name: str
    title: str | None
    description: str
    annotations: Mapping[str, Any]
    icons: Sequence[Mapping[str, Any]]
    meta: Mapping[str, Any]
    arguments: type[BaseModel] | schema.WrittenSchema
    result: TypeAdapter[Any] | schema.WrittenSchema | None
    ask_first: AskFirst | None
    task_support: TaskSupport
    without_tasks: WithoutTasks | None
    """None for the default: within the request if the tool's timeout allows it."""
    ttl: timedelta
    poll_every: timedelta
    timeout: timedelta
    """Of one run of the function, or of one step."""
    memory_mb: int
    max_concurrency: int | None
    """How many instances of the tool's worker may run; None for the deployment's `max_workers`."""
    permissions: Sequence[Mapping[str, Any]]
    scopes: Sequence[str]
    secrets: Mapping[str, str]
    """Name -> a secret of Secrets Manager or a parameter of Parameter Store."""
    env: Mapping[str, str]
    """Environment variables of the function that runs the tool."""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"{self.name!r}: a tool's name is 1 to 48 of A-Z a-z 0-9 _ . -")
        if not self.description:
            raise ValueError(
                f"{self.name}: a tool needs a docstring; clients show it to their model"
            )
        self._check_kinds()
        if self.ttl <= timedelta(0) or self.poll_every <= timedelta(0):
            raise ValueError(f"{self.name}: ttl and poll_every must be positive")
        if not timedelta(seconds=1) <= self.timeout <= MAX_LAMBDA_TIMEOUT:
            raise ValueError(
                f"{self.name}: a function's timeout is 1 second to 15 minutes (Lambda's limit); "
                "longer work is done in steps (task.step), each within a run, or by a workflow_tool"
            )
        if isinstance(self.scopes, str) or not all(map(_SCOPE.fullmatch, self.scopes)):
            raise ValueError(
                f"{self.name}: scopes is a list of scopes, each of printable ASCII without spaces, "
                "quotes or backslashes (RFC 6749, section 3.3)"
            )
        if META_MEMBER in self.input_schema.get("properties", {}):
            raise ValueError(f"{self.name}: an argument cannot be called {META_MEMBER}")
        if self.ask_first and self.task_support == "forbidden":
            raise ValueError(
                f"{self.name}: ask_first is for tools that become tasks; within a request a "
                "function may ask at any time"
            )
        self._check_without_tasks()
        check_surroundings(self.name, self.secrets, self.env)
        self._check_max_concurrency()
        self._check_ask_first()
        self.mirrored  # noqa: B018  Raises ValueError for annotations that clients would refuse.

    def _check_kinds(self) -> None:
        """What Python does not check: an int for a time, `task=True`."""
        for name in ("ttl", "poll_every", "timeout"):
            value = getattr(self, name)
            if not isinstance(value, timedelta):
                raise TypeError(
                    f"{self.name}: {name} is a timedelta, such as timedelta(seconds=30), and not "
                    f"{value!r}"
                )
        if self.task_support not in get_args(TaskSupport):
            raise TypeError(
                f'{self.name}: task is "forbidden", "optional" or "required", and not '
                f"{self.task_support!r}"
            )

    def _check_without_tasks(self) -> None:
        if self.without_tasks is None:
            return
        if self.task_support == "forbidden":
            raise ValueError(f"{self.name}: without_tasks is for tools that run as tasks")
        if self.without_tasks == "request" and self.task_support == "required":
            raise ValueError(f"{self.name}: a tool that always is a task cannot run in a request")

    @property
    def for_clients_without_tasks(self) -> WithoutTasks:
        """What a client without tasks gets."""
        if self.without_tasks is not None:
            return self.without_tasks
        quick = self.task_support != "required" and self.timeout <= MAX_WITHIN_REQUEST
        return "request" if quick else "task"

    def _check_max_concurrency(self) -> None:
        if self.max_concurrency is None:
            return
        if self.max_concurrency < 1:
            raise ValueError(f"{self.name}: max_concurrency is at least 1")
        if self.task_support == "forbidden":
            raise ValueError(
                f"{self.name}: max_concurrency limits the worker of a tool that runs as a task; "
                "calls within requests are limited for each caller (-c max_calls)"
            )

    def _check_ask_first(self) -> None:
        if self._first_step is None:
            return
        taken = schema.parameters(self._first_step.arguments)
        unknown = sorted(set(taken) - set(self.input_schema.get("properties", {})))
        if unknown:
            raise ValueError(
                f"{self.name}: ask_first has the parameter {', '.join(unknown)}, which is no "
                "argument of the tool"
            )

    @cached_property
    def input_schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments."""
        if isinstance(self.arguments, schema.WrittenSchema):
            return self.arguments.schema
        return schema.object_schema(self.arguments)

    @property
    def sequential(self) -> bool:
        """Whether no two steps run at once, and none while the task waits for an answer."""
        return True

    @cached_property
    def mirrored(self) -> list[MirroredParameter]:
        """The parameters that clients repeat as `Mcp-Param-*` headers. Raises ValueError."""
        return mirrored_parameters(self.input_schema)

    @cached_property
    def _first_step(self) -> Step | None:
        """`ask_first` as a step."""
        return Step.of(self.ask_first) if self.ask_first is not None else None

    def run_ask_first(self, values: Mapping[str, Any], task: Context) -> None:
        """Run `ask_first`, if there is one, on those of the checked arguments that it takes."""
        if self._first_step is not None:
            taken = schema.parameters(self._first_step.arguments)
            arguments = {name: value for name, value in values.items() if name in taken}
            self._first_step.run(arguments, task)

    def definition(self) -> dict[str, Any]:
        """The tool as `tools/list` shows it (tools.mdx, "Data Types")."""
        output: dict[str, Any] | None = None
        if isinstance(self.result, schema.WrittenSchema):
            output = self.result.schema
        elif self.result is not None:
            output = schema.result_schema(self.result)
        return build_definition(
            name=self.name,
            title=self.title,
            description=self.description,
            inputSchema=self.input_schema,
            outputSchema=output,
            annotations=self.annotations,
            icons=self.icons,
            meta=self.meta,
        )

    def check_arguments(self, arguments: Any) -> dict[str, Any]:
        """Check arguments and convert them to the parameters' types.

        Raises schema.InvalidArguments, which names each wrong field.
        """
        if isinstance(self.arguments, schema.WrittenSchema):
            try:
                self.arguments.check(arguments, "arguments")
            except SchemaMismatch as error:
                raise schema.InvalidArguments(str(error)) from None
            return dict(arguments)
        return schema.validate_arguments(self.arguments, arguments)
