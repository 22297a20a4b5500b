"""Let MiniStack delete state machines as AWS does: only when all their executions have ended.

Step Functions API reference, "DeleteStateMachine": "It sets the state machine's status to DELETING
and begins the deletion process. A state machine is deleted only when all its executions are
completed." Until then it starts none (StateMachineDeleting), none of its name can be created, and
CloudFormation waits. MiniStack forgets the state machine and its executions at once.

On AWS an execution also ends at its next transition; here it runs on.
"""

from __future__ import annotations

import contextvars
import threading
import time
from typing import Any, Final

from ministack.services import stepfunctions  # type: ignore[import-not-found]
from ministack.services.cloudformation import provisioners, stacks  # type: ignore[import-not-found]

RESOURCE_TYPE: Final = "AWS::StepFunctions::StateMachine"
DELETING: Final = "DELETING"
PAUSE: Final = 0.1

_runs_on_worker_thread = stacks._runs_on_worker_thread
_start_execution = stepfunctions._start_execution
_create = provisioners._RESOURCE_HANDLERS[RESOURCE_TYPE]["create"]


def delete_state_machine(data: Any) -> Any:
    """Begin to delete a state machine; one that does not exist is deleted already."""
    arn = data.get("stateMachineArn")
    machine = stepfunctions._state_machines.get(arn)
    if machine is not None and machine["status"] != DELETING:
        machine["status"] = DELETING
        context = contextvars.copy_context()  # which account and region it is in
        threading.Thread(target=context.run, args=(_forget, arn), daemon=True).start()
    return stepfunctions.json_response({})


def _forget(arn: str) -> None:
    while _runs(arn):
        time.sleep(PAUSE)
    stepfunctions._state_machines.pop(arn, None)
    stepfunctions._tags.pop(arn, None)


def _runs(arn: str) -> bool:
    return any(
        execution["stateMachineArn"] == arn and execution["status"] == "RUNNING"
        for execution in list(stepfunctions._executions.values())
    )


def start_execution(data: Any) -> Any:
    """Start an execution, unless its state machine is being deleted."""
    machine = stepfunctions._state_machines.get(data.get("stateMachineArn"))
    if machine is not None and machine["status"] == DELETING:
        return stepfunctions.error_response_json(
            "StateMachineDeleting", f"State machine is being deleted: {machine['name']}", 400
        )
    return _start_execution(data)


def create_in_stack(logical_id: str, props: Any, stack_name: str) -> Any:
    """Create a stack's state machine, unless one of its name is being deleted."""
    for machine in list(stepfunctions._state_machines.values()):
        if machine["name"] == props.get("StateMachineName") and machine["status"] == DELETING:
            raise ValueError(f"State machine is being deleted: {machine['name']}")
    return _create(logical_id, props, stack_name)


def delete_in_stack(physical_id: str, props: Any) -> None:
    """Delete a stack's state machine, and wait until it is gone."""
    delete_state_machine({"stateMachineArn": physical_id})
    while physical_id in stepfunctions._state_machines:
        time.sleep(PAUSE)


def runs_on_worker_thread(resource_type: str) -> bool:
    """Whether a resource is made and deleted outside of the event loop."""
    return resource_type == RESOURCE_TYPE or bool(_runs_on_worker_thread(resource_type))


def install() -> None:
    """Replace MiniStack's functions."""
    stepfunctions._delete_state_machine = delete_state_machine
    stepfunctions._start_execution = start_execution
    provisioners._RESOURCE_HANDLERS[RESOURCE_TYPE] |= {
        "create": create_in_stack,
        "delete": delete_in_stack,
    }
    stacks._runs_on_worker_thread = runs_on_worker_thread
