"""MiniStack as a process that holds every call to the caller's permissions, as AWS does.

The emulator runs this in its own interpreter, with AUTH=true. Two things it then judges otherwise
than AWS, and functions would be denied what their roles allow; both are mended here, in a version
of MiniStack that infra/local/requirements.txt pins:

- Policies that deny what comes without TLS, such as that of the CDK's bucket: what stays within
  this machine counts as TLS.
- Answers to a task token: AWS checks them against the token's state machine ("is not authorized to
  perform: states:SendTaskFailure on resource: arn:aws:states:...:stateMachine:..."), which the
  emulator does not know; it would ask for `*`.
"""

from __future__ import annotations

import json
import sys
from contextvars import ContextVar
from typing import Any

from ministack import app  # type: ignore[import-not-found]
from ministack.core import iam_actions  # type: ignore[import-not-found]
from ministack.services import stepfunctions  # type: ignore[import-not-found]

_execute_task = stepfunctions._execute_task
_extract_resource_arn = iam_actions.extract_resource_arn
_invoke_with_callback = stepfunctions._invoke_with_callback
_pin_request_origin = app.pin_request_origin

_state_machine: ContextVar[str] = ContextVar("state_machine")
_state_machines: dict[str, str] = {}
"""Task token -> the ARN of its state machine, also when it is used up."""


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


if __name__ == "__main__":
    app.pin_request_origin = pin_request_origin
    iam_actions.extract_resource_arn = extract_resource_arn
    stepfunctions._execute_task = execute_task
    stepfunctions._invoke_with_callback = invoke_with_callback
    sys.exit(app.main())
