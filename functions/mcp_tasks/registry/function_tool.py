"""Tools that are Python functions, as their authors declare them.

@tool                      a function that runs within the request
@tool(task="optional")     a function that Step Functions runs as a task
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, overload

from pydantic import BaseModel, TypeAdapter

from . import results, schema
from .context import CONTEXTS, Context
from .decorated_function import Function, attach, call, context_parameter
from .tool import AskFirst, TaskSupport, Tool, WithoutTasks


@dataclass(frozen=True, kw_only=True, eq=False)
class FunctionTool(Tool):
    """A Python function that is a tool."""

    function: Callable[..., Any]
    context_parameter: str | None
    """The parameter that takes the TaskContext."""
    arguments_parameter: str | None
    """The parameter that takes all arguments as one dict, for a tool with an `input_schema`."""

    def run(self, values: Mapping[str, Any], task: Context) -> dict[str, Any]:
        """Run the function on checked arguments and return its CallToolResult.

        Raises ValueError when the result does not have the declared type, and whatever the function
        raises. A function that ends its process (`sys.exit`, which `argparse` calls) has crashed:
        Lambda would log the exit's message, fail the request with a 502, and run a task again.
        """
        arguments = {self.arguments_parameter: values} if self.arguments_parameter else values
        try:
            returned = call(self.function, arguments, self.context_parameter, task)
        except SystemExit as ended:
            crash = RuntimeError("The tool called sys.exit")
            raise crash.with_traceback(ended.__traceback__) from ended
        return results.function_result(returned, self.result)


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
    without_tasks: WithoutTasks | None = None,
    ttl: timedelta = timedelta(days=1),
    poll_every: timedelta = timedelta(seconds=2),
    timeout: timedelta = timedelta(minutes=1),
    memory_mb: int = 512,
    max_concurrency: int | None = None,
    permissions: Sequence[Mapping[str, Any]] = (),
    scopes: Sequence[str] = (),
    secrets: Mapping[str, str] | None = None,
    env: Mapping[str, str] | None = None,
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
    without_tasks: WithoutTasks | None = None,
    ttl: timedelta = timedelta(days=1),
    poll_every: timedelta = timedelta(seconds=2),
    timeout: timedelta = timedelta(minutes=1),
    memory_mb: int = 512,
    max_concurrency: int | None = None,
    permissions: Sequence[Mapping[str, Any]] = (),
    scopes: Sequence[str] = (),
    secrets: Mapping[str, str] | None = None,
    env: Mapping[str, str] | None = None,
) -> Function | Callable[[Function], Function]:
    """Declare a function as a tool. The function stays what it is, so tests can call it.

    Its name, docstring, parameters and return type become what clients see; `Annotated[T,
    Field(description=...)]` describes a parameter.

    Args:
        annotations: hints such as `readOnlyHint` (tools.mdx, "Tool").
        icons: `{"src": ..., "mimeType": ..., "sizes": [...]}` each.
        meta: the tool's `_meta`.
        input_schema: a JSON Schema that clients see as it is written, instead of one made from the
            parameters. The function then takes all arguments as one parameter, a dict.
        output_schema: a JSON Schema of the structured content, instead of one made from the return
            type.
        ask_first: for tools that run as tasks: a function that asks the client for what has to be
            known before the task is created, in multi round-trip requests. It takes the context
            and, by name, those of the tool's arguments that it needs. The task gets the answers
            under the same keys, so it may call the same function again. When the tool runs within
            the request, `ask_first` runs before it too.
        task: "forbidden" runs within the request (25 seconds at most). "optional" and "required"
            run as a task for clients that declare tasks; "required" does so for all.
        without_tasks: what the tool is for clients without tasks. "request" runs an "optional" one
            within the request. "task" runs it as a task that the client does not see: its call
            gets the task's progress, questions and result, on a connection that it resumes for as
            long as the task takes. A client that does not resume gets the companion tools
            task_result, task_answer and task_cancel. "refuse" gives a "required" one's error, and
            runs an "optional" one within the request. Without it, `timeout` of an "optional" tool
            decides: up to 25 seconds, "request"; else "task".
        ttl: how long a task and its result are kept, from its creation.
        poll_every: how often clients should poll a task, `pollIntervalMs`.
        timeout: how long one run of a task may take, at most 15 minutes.
        max_concurrency: how many tasks of the tool run its function at the same time, of all
            callers together; others wait. It is taken from the account's concurrency for Lambda.
            Without it, the deployment's `max_workers` counts.
        permissions: IAM policy statements for the role of the tool's function, besides what it
            needs to run tasks: `{"actions": ["s3:GetObject"], "resources": ["arn:..."]}`.
        scopes: the scopes that an access token needs for calling the tool (`-c auth=oauth`). A
            caller that lacks one gets a challenge that names all of them
            (authorization/index.mdx, "Scope Challenge Handling").
        secrets: what `TaskContext.secret` reads: a name of the tool's own, and the secret's name
            in Secrets Manager, a parameter's path in Parameter Store (`/weather/api-key`), or the
            ARN of either. The tool's function may read exactly these.
        env: environment variables of the function. No secrets: everybody who may read the
            function's configuration sees them.

    Raises TypeError or ValueError when the declaration cannot be offered to clients.
    """

    def declare(target: Function) -> Function:
        context = context_parameter(target)
        arguments, arguments_parameter = _arguments(target, input_schema)
        declaration = FunctionTool(
            name=name or target.__name__,
            title=title,
            description=inspect.getdoc(target) or "",
            annotations=annotations or {},
            icons=icons,
            meta=meta or {},
            arguments=arguments,
            result=_result(target, output_schema),
            ask_first=ask_first,
            task_support=task,
            without_tasks=without_tasks,
            ttl=ttl,
            poll_every=poll_every,
            permissions=permissions,
            scopes=scopes,
            secrets=secrets or {},
            env=env or {},
            function=target,
            context_parameter=context,
            arguments_parameter=arguments_parameter,
            timeout=timeout,
            memory_mb=memory_mb,
            max_concurrency=max_concurrency,
        )
        return attach(target, declaration)

    return declare if function is None else declare(function)


def _arguments(
    function: Callable[..., Any], written: Mapping[str, Any] | None
) -> tuple[type[BaseModel] | schema.WrittenSchema, str | None]:
    """A tool's arguments, and the parameter that takes all of them, if there is a written schema.

    Raises TypeError for parameters that a JSON object cannot carry, or that a written schema does
    not go with.
    """
    if written is None:
        return schema.parameters_model(function, CONTEXTS), None
    context = context_parameter(function)
    names = [name for name in inspect.signature(function).parameters if name != context]
    if len(names) != 1 or written.get("type") != "object":
        raise TypeError(
            f"{function.__module__}.{function.__qualname__}: an input_schema has to be of the "
            "type object, and its function has to have one parameter besides the context"
        )
    return schema.WrittenSchema(written), names[0]


def _result(
    function: Callable[..., Any], written: Mapping[str, Any] | None
) -> TypeAdapter[Any] | schema.WrittenSchema | None:
    """The type of a tool's structured content; None when it is not checked."""
    return results.result_type(function) if written is None else schema.WrittenSchema(written)
