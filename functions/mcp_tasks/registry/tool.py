"""The three kinds of tools, as their authors declare them.

    @tool                                     a function that runs within the request
    @tool(task="optional")                    a function that Step Functions runs as a task
    workflow_tool("name", definition=...)     an Amazon States Language file and its steps
    workflow_tool("name", state_machine_arn=...)   a state machine that already exists

Everything a declaration gets wrong is found when its module is imported, which `cdk synth` does.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal, TypeVar, overload

from pydantic import BaseModel, TypeAdapter

from ..json_schema import Mismatch
from ..protocol.headers import MirroredParameter, mirrored_parameters
from ..protocol.meta import RESERVED
from . import results, schema
from .context import TaskContext
from .definition import shown

AskFirst = Callable[..., Any]
"""A function that asks, within the request, before the call becomes a task."""

TaskSupport = Literal["forbidden", "optional", "required"]
"""Whether a tool runs as a task: never, for clients that know tasks, or only for those."""

Function = TypeVar("Function", bound=Callable[..., Any])

DECLARATION: Final = "__mcp_tool__"
"""The attribute under which `@tool` leaves its declaration on the function."""

LAMBDA_LIMIT: Final = timedelta(minutes=15)
_STATE_MACHINE: Final = re.compile(
    r"arn:aws[a-z-]*:states:[a-z0-9-]+:[0-9]{12}:stateMachine:[A-Za-z0-9_.+=@-]{1,80}"
)
_SCOPE: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,48}")


@dataclass(frozen=True, kw_only=True)
class Tool:
    """What the kinds have in common: how clients see the tool, and how its tasks live."""

    name: str
    title: str | None
    description: str
    annotations: Mapping[str, Any]
    icons: Sequence[Mapping[str, Any]]
    meta: Mapping[str, Any]
    arguments: type[BaseModel] | schema.WrittenSchema
    result: TypeAdapter[Any] | schema.WrittenSchema | None
    ask_first: AskFirst | None
    task: TaskSupport
    ttl: timedelta
    poll_every: timedelta
    timeout: timedelta
    memory_mb: int
    permissions: Sequence[Mapping[str, Any]]
    scopes: Sequence[str]

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"{self.name!r}: a tool's name is 1 to 48 of A-Z a-z 0-9 _ . -")
        if not self.description:
            raise ValueError(
                f"{self.name}: a tool needs a docstring; clients show it to their model"
            )
        if self.ttl <= timedelta(0) or self.poll_every <= timedelta(0):
            raise ValueError(f"{self.name}: ttl and poll_every must be positive")
        if not timedelta(seconds=1) <= self.timeout <= LAMBDA_LIMIT:
            raise ValueError(
                f"{self.name}: a function's timeout is 1 second to 15 minutes (Lambda's limit); "
                "longer work belongs into a workflow_tool, whose states may wait for a year"
            )
        if isinstance(self.scopes, str) or not all(map(_SCOPE.fullmatch, self.scopes)):
            raise ValueError(
                f"{self.name}: scopes is a list of scopes, each of printable ASCII without spaces, "
                "quotes and backslashes (RFC 6749, section 3.3)"
            )
        if RESERVED in self.input_schema.get("properties", {}):
            raise ValueError(f"{self.name}: an argument cannot be called {RESERVED}")
        if self.ask_first and self.task == "forbidden":
            raise ValueError(
                f"{self.name}: ask_first is for tools that become tasks; within a request a "
                "function asks whenever it likes"
            )
        if self.ask_first is not None:
            taken = schema.parameters(self._first.arguments)
            unknown = sorted(set(taken) - set(self.input_schema.get("properties", {})))
            if unknown:
                raise ValueError(
                    f"{self.name}: ask_first takes {', '.join(unknown)}, which is no argument"
                )
        self.mirrored  # noqa: B018  an annotation that clients would refuse is an error now

    @cached_property
    def input_schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments."""
        if isinstance(self.arguments, schema.WrittenSchema):
            return self.arguments.schema
        return schema.object_schema(self.arguments)

    @cached_property
    def mirrored(self) -> list[MirroredParameter]:
        """The parameters that clients repeat as `Mcp-Param-*` headers."""
        return mirrored_parameters(self.input_schema)

    @cached_property
    def _first(self) -> Step:
        """`ask_first`, with what it takes."""
        if self.ask_first is None:
            raise LookupError(f"{self.name} asks nothing first")
        return _step(self.ask_first)

    def ask_before(self, values: Mapping[str, Any], task: TaskContext) -> None:
        """Run `ask_first` on those of the checked arguments that it takes."""
        if self.ask_first is not None:
            step = self._first
            taken = schema.parameters(step.arguments)
            arguments = {name: value for name, value in values.items() if name in taken}
            step.run(arguments, task)

    def definition(self) -> dict[str, Any]:
        """The tool as `tools/list` shows it (tools.mdx, "Data Types")."""
        output: dict[str, Any] | None = None
        if isinstance(self.result, schema.WrittenSchema):
            output = self.result.schema
        elif self.result is not None:
            output = schema.result_schema(self.result)
        return shown(
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
        """Arguments as the tool's types. Raises schema.InvalidArguments naming each bad field."""
        if isinstance(self.arguments, schema.WrittenSchema):
            try:
                self.arguments.check(arguments, "arguments")
            except Mismatch as error:
                raise schema.InvalidArguments(str(error)) from None
            return dict(arguments)
        return schema.validate_arguments(self.arguments, arguments)


@dataclass(frozen=True, kw_only=True)
class FunctionTool(Tool):
    """A Python function."""

    function: Callable[..., Any]
    context: str | None
    whole: str | None
    """The parameter that takes all arguments at once, when their schema is a written one."""

    def run(self, values: Mapping[str, Any], task: TaskContext) -> dict[str, Any]:
        """Run the function on checked arguments and return its CallToolResult."""
        arguments: dict[str, Any] = {self.whole: values} if self.whole else dict(values)
        if self.context:
            arguments[self.context] = task
        return results.returned(self.function(**arguments), self.result)


@dataclass(frozen=True)
class Step:
    """One function that a workflow's states call, or that asks before there is a task."""

    function: Callable[..., Any]
    arguments: type[BaseModel]
    result: TypeAdapter[Any] | None
    context: str | None

    def call(self, arguments: Any, task: TaskContext) -> Any:
        """Check the input, run the function, and return its result as JSON values.

        Raises schema.InvalidArguments when the state machine passes what the step does not take.
        """
        value = self.run(schema.validate_arguments(self.arguments, arguments), task)
        if self.result is None:
            return value
        return self.result.dump_python(self.result.validate_python(value), mode="json")

    def run(self, values: Mapping[str, Any], task: TaskContext) -> Any:
        """Run the function on checked arguments."""
        context = {self.context: task} if self.context else {}
        return self.function(**values, **context)


@dataclass(frozen=True, kw_only=True)
class WorkflowTool(Tool):
    """A state machine: one of this repository's, or one that exists already."""

    definition_file: Path | None = None
    state_machine_arn: str | None = None
    steps: Mapping[str, Step] = field(default_factory=dict)
    state_permissions: Sequence[Mapping[str, Any]] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.definition_file is None) == (self.state_machine_arn is None):
            raise ValueError(f"{self.name}: give a definition file or a state machine's ARN")
        if self.definition_file is not None and not self.definition_file.is_file():
            raise ValueError(f"{self.name}: there is no file {self.definition_file}")
        if self.state_machine_arn is None:
            return
        if not _STATE_MACHINE.fullmatch(self.state_machine_arn):
            raise ValueError(
                f"{self.name}: {self.state_machine_arn!r} is no state machine's ARN; versions and "
                "aliases cannot be wrapped"
            )
        if self.steps or self.state_permissions:
            raise ValueError(f"{self.name}: a state machine that exists already has its own steps")
        if self.ask_first is not None:
            raise ValueError(
                f"{self.name}: a state machine that exists already gets its arguments and nothing "
                "else, so ask_first would ask in vain"
            )


@overload
def tool(function: Function, /) -> Function: ...
@overload
def tool(
    *,
    name: str | None = None,
    title: str | None = None,
    annotations: Mapping[str, Any] | None = None,
    icons: Sequence[Mapping[str, Any]] = (),
    meta: Mapping[str, Any] | None = None,
    input_schema: Mapping[str, Any] | None = None,
    output_schema: Mapping[str, Any] | None = None,
    ask_first: AskFirst | None = None,
    task: TaskSupport = "forbidden",
    ttl: timedelta = timedelta(days=1),
    poll_every: timedelta = timedelta(seconds=2),
    timeout: timedelta = timedelta(minutes=1),
    memory_mb: int = 512,
    permissions: Sequence[Mapping[str, Any]] = (),
    scopes: Sequence[str] = (),
) -> Callable[[Function], Function]: ...
def tool(
    function: Function | None = None,
    /,
    *,
    name: str | None = None,
    title: str | None = None,
    annotations: Mapping[str, Any] | None = None,
    icons: Sequence[Mapping[str, Any]] = (),
    meta: Mapping[str, Any] | None = None,
    input_schema: Mapping[str, Any] | None = None,
    output_schema: Mapping[str, Any] | None = None,
    ask_first: AskFirst | None = None,
    task: TaskSupport = "forbidden",
    ttl: timedelta = timedelta(days=1),
    poll_every: timedelta = timedelta(seconds=2),
    timeout: timedelta = timedelta(minutes=1),
    memory_mb: int = 512,
    permissions: Sequence[Mapping[str, Any]] = (),
    scopes: Sequence[str] = (),
) -> Function | Callable[[Function], Function]:
    """Declare a function as a tool. The function stays what it is, and can be called in tests.

    Its name, docstring, parameters and return type become what clients see; `Annotated[T,
    Field(description=...)]` describes a parameter.

    Args:
        annotations: hints such as `readOnlyHint` (tools.mdx, "Tool").
        icons: `{"src": ..., "mimeType": ..., "sizes": [...]}` each.
        meta: the tool's `_meta`.
        input_schema: a JSON Schema that clients see as it is written, instead of one made from the
            parameters. The function then takes all arguments as one parameter, a dict.
        output_schema: likewise for the structured content.
        ask_first: for tools that become tasks: a function that asks what has to be known before the
            task is made, in multi round-trip requests. It takes the context and, by name, those of
            the tool's arguments that it needs. The task finds its answers under the same keys, so
            it may call the same function again. Within a request it runs before the tool, too.
        task: "forbidden" runs within the request (about 25 seconds at most). "optional" runs as a
            task for clients that declare the tasks extension and within the request for others.
            "required" refuses those others.
        ttl: how long a task and its result are kept, from its creation.
        poll_every: how often clients should ask, `pollIntervalMs`.
        timeout: how long one run of a task may take, at most 15 minutes.
        permissions: what the function's role may do beyond the task itself: IAM policy statements,
            `{"actions": ["s3:GetObject"], "resources": ["arn:..."]}`.
        scopes: what a caller's access token must be good for to call the tool (`-c auth=oauth`).
            Whoever lacks one is told which are needed (authorization/index.mdx, "Scope Challenge
            Handling").

    Raises TypeError or ValueError when the declaration cannot be offered to clients.
    """

    def declare(target: Function) -> Function:
        arguments, whole = _arguments(target, input_schema)
        declaration = FunctionTool(
            name=name or target.__name__,
            title=title,
            description=inspect.getdoc(target) or "",
            annotations=annotations or {},
            icons=icons,
            meta=meta or {},
            arguments=arguments,
            result=schema.WrittenSchema(output_schema)
            if output_schema is not None
            else schema.result_adapter(_return_type(target)),
            ask_first=ask_first,
            task=task,
            ttl=ttl,
            poll_every=poll_every,
            permissions=permissions,
            scopes=scopes,
            function=target,
            context=schema.context_parameter(target, TaskContext),
            whole=whole,
            timeout=timeout,
            memory_mb=memory_mb,
        )
        setattr(target, DECLARATION, declaration)
        return target

    return declare if function is None else declare(function)


def workflow_tool(
    name: str,
    *,
    description: str,
    arguments: type[BaseModel],
    result: Any = None,
    definition: Path | None = None,
    state_machine_arn: str | None = None,
    steps: Sequence[Callable[..., Any]] = (),
    state_permissions: Sequence[Mapping[str, Any]] = (),
    title: str | None = None,
    annotations: Mapping[str, Any] | None = None,
    icons: Sequence[Mapping[str, Any]] = (),
    meta: Mapping[str, Any] | None = None,
    ask_first: AskFirst | None = None,
    ttl: timedelta = timedelta(days=1),
    poll_every: timedelta = timedelta(seconds=2),
    timeout: timedelta = timedelta(minutes=1),
    memory_mb: int = 512,
    permissions: Sequence[Mapping[str, Any]] = (),
    scopes: Sequence[str] = (),
) -> WorkflowTool:
    """Declare a state machine as a tool. It always runs as a task.

    The execution's input is the arguments as the client sent them, and `_meta`, where there is
    something to put into it: trace context, and what `ask_first` was answered. Its name is the
    task's id, and its output is the tool's result. It ends as the tool's error when a step raises
    ToolError or a Fail state has the error name ToolError.

    Args:
        arguments: a pydantic model of the tool's arguments.
        result: the type of the output; None leaves it unchecked.
        definition: an Amazon States Language file. `${worker}` stands for the function that runs
            `steps`, `${ask}` for the one that asks the client.
        state_machine_arn: instead of a definition, a state machine that exists already.
        steps: the functions that the definition's states call, by their names.
        ask_first: as for `tool`; the states find its answers in the input, under `_meta.answers`.
        permissions: IAM statements for the function that runs the steps.
        state_permissions: IAM statements for the state machine itself, when its states call AWS
            services other than the worker and `ask`.
        timeout: how long one step may take, at most 15 minutes.
        scopes: as for `tool`.

    Raises TypeError or ValueError when the declaration cannot be deployed.
    """
    if "extra" not in arguments.model_config:
        # A misspelt argument is an error, as it is for a function.
        arguments = schema.closed(arguments)
    names = [function.__name__ for function in steps]
    if len(set(names)) < len(names):
        raise ValueError(f"{name}: two steps have the same name: {', '.join(sorted(names))}")
    return WorkflowTool(
        name=name,
        title=title,
        description=inspect.cleandoc(description),
        annotations=annotations or {},
        icons=icons,
        meta=meta or {},
        arguments=arguments,
        result=schema.result_adapter(result),
        ask_first=ask_first,
        task="required",
        ttl=ttl,
        poll_every=poll_every,
        permissions=permissions,
        scopes=scopes,
        definition_file=definition,
        state_machine_arn=state_machine_arn,
        steps={function.__name__: _step(function) for function in steps},
        state_permissions=state_permissions,
        timeout=timeout,
        memory_mb=memory_mb,
    )


def _arguments(
    function: Callable[..., Any], written: Mapping[str, Any] | None
) -> tuple[type[BaseModel] | schema.WrittenSchema, str | None]:
    """What a function takes, and the parameter that takes all of it, if one does."""
    if written is None:
        return schema.parameters_model(function, TaskContext), None
    context = schema.context_parameter(function, TaskContext)
    names = [name for name in inspect.signature(function).parameters if name != context]
    if len(names) != 1 or written.get("type") != "object":
        raise TypeError(
            f"{function.__module__}.{function.__qualname__}: with an input_schema, which is of the "
            "type object, a function takes one parameter besides its context"
        )
    return schema.WrittenSchema(written), names[0]


def _step(function: Callable[..., Any]) -> Step:
    return Step(
        function=function,
        arguments=schema.parameters_model(function, TaskContext),
        result=schema.result_adapter(_return_type(function)),
        context=schema.context_parameter(function, TaskContext),
    )


def _return_type(function: Callable[..., Any]) -> Any:
    hint = schema.hints(function).get("return")
    return None if hint is results.ToolResult else hint
