"""Tools that the deployment removes while tasks of them run, and tools that it adds too early.

A state machine is deleted only when all its executions have ended, and until then none of its name
can be created (Step Functions API reference, "DeleteStateMachine", "CreateStateMachine":
StateMachineDeleting). The stack would wait as long as the tasks do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..running_executions import STATE_MACHINE, running_executions
from ..state_machine_metadata import state_machine_metadata
from .check import Check, Finding
from .deployment import Deployment, properties_of


def run(deployment: Deployment) -> Finding:
    """Refuse to remove tools with running tasks that `remove=` does not name."""
    wanted, deployed = _names(deployment.template), _names(deployment.deployed)
    prefix = f"{deployment.stack}-"
    going = {name.removeprefix(prefix): name for name in sorted(deployed - wanted)}
    staying = sorted(deployment.removed - set(going))
    if staying:
        return Finding(
            f"remove= names tools that this deployment does not remove: {', '.join(staying)}. "
            "Their tasks would be ended for nothing",
            refused=True,
        )
    added = sorted(wanted - deployed) if deployment.deployed else []
    if not going and not added:
        return Finding("")
    arn = _arn_prefix(deployment)
    deleting = [name for name in added if _is_deleting(deployment, arn + name)]
    if deleting:
        return Finding(_too_early([name.removeprefix(prefix) for name in deleting]), refused=True)
    running = {tool: _running(deployment, arn + name) for tool, name in going.items()}
    undrained = {tool: n for tool, n in running.items() if n and tool not in deployment.removed}
    if undrained:
        return Finding(_refusal(undrained, deployment.removed), refused=True)
    if not going:
        return Finding("")
    counted = ", ".join(f"{tool} ({count} running tasks)" for tool, count in running.items())
    return Finding(f"the deployment removes tools: {counted}")


def _names(template: Mapping[str, Any]) -> set[str]:
    return {each["StateMachineName"] for each in properties_of(template, STATE_MACHINE)}


def _arn_prefix(deployment: Deployment) -> str:
    identity = deployment.client("sts").get_caller_identity()
    partition = identity["Arn"].split(":")[1]
    return f"arn:{partition}:states:{deployment.region}:{identity['Account']}:stateMachine:"


def _is_deleting(deployment: Deployment, arn: str) -> bool:
    states = deployment.client("stepfunctions")
    try:
        found = state_machine_metadata(states, arn)
    except states.exceptions.StateMachineDoesNotExist:
        return False
    return bool(found["status"] == "DELETING")


def _running(deployment: Deployment, arn: str) -> int:
    return len(running_executions(deployment.client("stepfunctions"), arn))


def _refusal(running: Mapping[str, int], removed: frozenset[str]) -> str:
    lines = "\n".join(f"    {tool}: {count} running tasks" for tool, count in running.items())
    words = " ".join(sorted({*removed, *running}))
    return f"""\
it removes tools whose tasks run:
{lines}
Their state machines are deleted only when these have ended, which may take as long as the tasks
live, and nothing of the same name can be deployed meanwhile. Let them end, or add

    remove='{words}'

to end them before the deployment: they fail, their clients are told that the tool is gone, and what
they did is undone, for ten minutes at most."""


def _too_early(tools: list[str]) -> str:
    lines = "\n".join(f"    make drain tool={tool}" for tool in tools)
    return f"""\
these tools were removed, and their state machines still wait for their last tasks. End those, wait
for a minute, and deploy again:
{lines}"""


CHECK: Final = Check("a tool is removed while its tasks run", run)
