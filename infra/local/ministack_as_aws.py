"""MiniStack, as a process that is in three things more like AWS, of the version that
infra/local/requirements.txt pins.

With AUTH=true, MiniStack checks the signature and the identity policies of every call to an AWS
API, and the policies of queues, buckets, secrets, functions, keys and REST APIs; functions call
with their roles. What it does not check is what its own services do for each other: the calls of
state machines, of event source mappings, of rules and of failure destinations, the writing of logs,
and the use of keys.

Two things it judges otherwise than AWS, and functions would be denied what their roles allow:

- Policies that deny what comes without TLS, such as that of the CDK's bucket: what stays within
  this machine counts as TLS.
- Answers to a task token: AWS checks them against the token's state machine ("is not authorized to
  perform: states:SendTaskFailure on resource: arn:aws:states:...:stateMachine:..."), which the
  emulator does not know; it would ask for `*`.

And it ends the process of a function that raises something, where Lambda goes on with it: each
request that an authorizer refuses would cost a cold start.
"""

from __future__ import annotations

import json
import sys
import time
from contextvars import ContextVar
from typing import Any

from ministack import app  # type: ignore[import-not-found]
from ministack.core import iam_actions, lambda_runtime  # type: ignore[import-not-found]
from ministack.services import stepfunctions  # type: ignore[import-not-found]

_execute_task = stepfunctions._execute_task
_extract_resource_arn = iam_actions.extract_resource_arn
_invoke_with_callback = stepfunctions._invoke_with_callback
_pin_request_origin = app.pin_request_origin

_invoke = lambda_runtime.Worker.invoke
_signal = lambda_runtime._signal
_collect = lambda_runtime._collect

REAP_SECONDS = 2.0
"""How long a process may take to end."""

_spared: ContextVar[list[Any] | None] = ContextVar("_spared", default=None)
"""The processes that would have been ended in the call that is being made."""
_state_machine: ContextVar[str] = ContextVar("state_machine")
_state_machines: dict[str, str] = {}
"""Task token -> the ARN of its state machine, also when it is used up."""


# Permissions


def pin_request_origin(source_ip: str, secure_transport: bool) -> None:
    """Note where a request comes from: over TLS."""
    _pin_request_origin(source_ip, True)


def execute_task(state: Any, raw_input: Any, execution: Any, context: Any) -> Any:
    """Execute a task state; note whose it is."""
    _state_machine.set(context["StateMachine"]["Id"])
    return _execute_task(state, raw_input, execution, context)


def invoke_with_callback(resource: Any, input_data: Any, token: str, state: Any) -> Any:
    """Call what will answer to a token, and wait for the answer; note whose the token is."""
    _state_machines[token] = _state_machine.get()
    return _invoke_with_callback(resource, input_data, token, state)


def extract_resource_arn(service: str, *request: Any) -> str:
    """The resource that a request is about. `request` is method, path, headers, body and so on."""
    resource: str = _extract_resource_arn(service, *request)
    if service == "states" and resource == "*":
        token = json.loads(request[3] or b"{}").get("taskToken")
        return _state_machines.get(token, resource)
    return resource


# Processes of functions


def signal(process: Any) -> None:
    """End a function's process, unless `invoke` is to judge that."""
    spared = _spared.get()
    if spared is None:
        _signal(process)
    else:
        spared.append(process)


def collect(process: Any, deadline: float) -> None:
    """Wait for the end of a function's process, if it is to end."""
    if _spared.get() is None:
        _collect(process, deadline)


def invoke(worker: Any, *request: Any, **options: Any) -> Any:
    """Call a function; keep its process when it raised something, and not when it ran too long."""
    processes: list[Any] = []
    token = _spared.set(processes)
    try:
        response = _invoke(worker, *request, **options)
    finally:
        _spared.reset(token)
    for process in processes:
        if process.poll() is None and not response["error"].startswith("Task timed out"):
            worker._proc = process
        else:
            _signal(process)
            _collect(process, time.monotonic() + REAP_SECONDS)
    return response


if __name__ == "__main__":
    app.pin_request_origin = pin_request_origin
    iam_actions.extract_resource_arn = extract_resource_arn
    stepfunctions._execute_task = execute_task
    stepfunctions._invoke_with_callback = invoke_with_callback
    lambda_runtime._signal = signal
    lambda_runtime._collect = collect
    lambda_runtime.Worker.invoke = invoke
    sys.exit(app.main())
