"""Tools that are state machines, as their authors declare them.

workflow_tool("name", definition=...)          an Amazon States Language file and its steps
workflow_tool("name", state_machine_arn=...)   a state machine that exists already
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel

from . import schema
from .step import Step
from .tool import AskFirst, Tool, WithoutTasks

_STATE_MACHINE_ARN: Final = re.compile(
    r"arn:aws[a-z-]*:states:[a-z0-9-]+:[0-9]{12}:stateMachine:[A-Za-z0-9_.+=@-]{1,80}"
)

_KEY_ARN: Final = re.compile(r"arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]+")

_CONCURRENT: Final = re.compile(r'"Type"\s*:\s*"(Parallel|Map)"')
"""A state that runs several others at once (Amazon States Language)."""


@dataclass(frozen=True, kw_only=True, eq=False)
class WorkflowTool(Tool):
    """A state machine that is a tool.

    It is deployed from a definition file, or it exists already and is named by its ARN.
    """

    definition_file: Path | None = None
    state_machine_arn: str | None = None
    kms_key_arn: str | None = None
    """Of a state machine that exists already: the key that encrypts its executions."""
    steps: Mapping[str, Step] = field(default_factory=dict)
    state_permissions: Sequence[Mapping[str, Any]] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.definition_file is None) == (self.state_machine_arn is None):
            raise ValueError(f"{self.name}: give a definition file or a state machine's ARN")
        if self.definition_file is not None and not self.definition_file.is_file():
            raise ValueError(f"{self.name}: there is no file {self.definition_file}")
        if self.state_machine_arn is not None:
            self._check_existing(self.state_machine_arn)
        elif self.kms_key_arn is not None:
            raise ValueError(
                f"{self.name}: kms_key_arn is of a state machine that exists already; one that is "
                "deployed with the stack is encrypted as encryption= says"
            )

    @property
    def sequential(self) -> bool:
        """Whether the definition has no Parallel, no Map, and no Catch of a state that asks.

        A step behind such a Catch runs while the task still seems to wait for an answer. Of a state
        machine that exists already, nobody knows.
        """
        if self.definition_file is None:
            return False
        text = self.definition_file.read_text(encoding="utf-8")
        return not _CONCURRENT.search(text) and not _catches_while_asking(text)

    def _check_existing(self, arn: str) -> None:
        if not _STATE_MACHINE_ARN.fullmatch(arn):
            raise ValueError(
                f"{self.name}: {arn!r} is not the ARN of a state machine; versions and aliases "
                "cannot be tools"
            )
        if self.kms_key_arn is not None and not _KEY_ARN.fullmatch(self.kms_key_arn):
            raise ValueError(
                f"{self.name}: {self.kms_key_arn!r} is not the ARN of a KMS key; an alias cannot "
                "be named in a policy"
            )
        if self.steps or self.state_permissions or self.max_concurrency is not None:
            raise ValueError(
                f"{self.name}: a state machine that exists already takes neither steps nor "
                "state_permissions nor max_concurrency"
            )
        if self.ask_first is not None:
            raise ValueError(
                f"{self.name}: a state machine that exists already gets only its arguments, so "
                "ask_first would ask in vain"
            )


def _catches_while_asking(definition: str) -> bool:
    """Whether a state that calls `${ask}` has a Catch, such as for `States.Timeout`."""
    found = []

    def note(state: dict[str, Any]) -> dict[str, Any]:
        found.append("Catch" in state and "${ask}" in json.dumps(state))
        return state

    try:
        json.loads(definition, object_hook=note)
    except ValueError:
        return True  # synthesis refuses it, and says where it is wrong
    return any(found)


def workflow_tool(
    name: str,
    *,
    description: str,
    arguments: type[BaseModel],
    result: Any = None,
    definition: Path | None = None,
    state_machine_arn: str | None = None,
    kms_key_arn: str | None = None,
    steps: Sequence[Callable[..., Any]] = (),
    state_permissions: Sequence[Mapping[str, Any]] = (),
    title: str | None = None,
    annotations: Mapping[str, Any] | None = None,
    icons: Sequence[Mapping[str, Any]] = (),
    meta: Mapping[str, Any] | None = None,
    ask_first: AskFirst | None = None,
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
) -> WorkflowTool:
    """Declare a state machine as a tool. It always runs as a task.

    The execution's input is the arguments as the client sent them. It has the member `_meta` too
    when there is a trace context, or answers to the questions of `ask_first`. The execution's name
    is the task's id, and its output is the tool's result. The result is an error (`isError`) when a
    step raises ToolError, or when a Fail state has the error name ToolError.

    Args:
        arguments: a pydantic model of the tool's arguments.
        result: the type of the output; None leaves it unchecked.
        definition: an Amazon States Language file. `${worker}` stands for the function that runs
            `steps`, and `${ask}` for the function that asks the client.
        state_machine_arn: instead of a definition, a state machine that exists already: of type
            Standard, in the region and the account of the deployment.
        kms_key_arn: the customer managed key of that state machine, if it has one. Without it, the
            server cannot read how its executions ended.
        steps: the functions that the definition's states call, by their names.
        ask_first: as for `tool`. The answers are in the input, under `_meta.answers`.
        without_tasks: as for `tool`: "task", which is the default, or "refuse".
        permissions: IAM policy statements for the function that runs the steps.
        state_permissions: IAM policy statements for the state machine, when its states call AWS
            services beyond `${worker}` and `${ask}`.
        timeout: how long one step may take, at most 15 minutes.
        max_concurrency: how many steps run at the same time, of all tasks together; others wait.
        scopes, secrets, env: as for `tool`.

    Raises TypeError or ValueError when the declaration cannot be deployed.
    """
    return WorkflowTool(
        name=name,
        title=title,
        description=inspect.cleandoc(description),
        annotations=annotations or {},
        icons=icons,
        meta=meta or {},
        arguments=_forbid_unknown(arguments),
        result=schema.result_adapter(result),
        ask_first=ask_first,
        task_support="required",
        without_tasks=without_tasks,
        ttl=ttl,
        poll_every=poll_every,
        permissions=permissions,
        scopes=scopes,
        secrets=secrets or {},
        env=env or {},
        definition_file=definition,
        state_machine_arn=state_machine_arn,
        kms_key_arn=kms_key_arn,
        steps=_steps(name, steps),
        state_permissions=state_permissions,
        timeout=timeout,
        memory_mb=memory_mb,
        max_concurrency=max_concurrency,
    )


def _forbid_unknown(arguments: type[BaseModel]) -> type[BaseModel]:
    """The model, refusing misspelt arguments as a function does, unless it says otherwise."""
    return arguments if "extra" in arguments.model_config else schema.forbid_extra(arguments)


def _steps(tool_name: str, functions: Sequence[Callable[..., Any]]) -> dict[str, Step]:
    names = [function.__name__ for function in functions]
    if len(set(names)) < len(names):
        raise ValueError(f"{tool_name}: two steps have the same name: {', '.join(sorted(names))}")
    return {function.__name__: Step.of(function) for function in functions}
