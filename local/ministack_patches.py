"""Run MiniStack with patches that make it behave more like AWS.

The patches replace functions of the version that uv.lock pins. The root user's keys come on
standard input, in one line: functions inherit MiniStack's environment. `emulator_access.py` has the
patches that keep web pages and strangers out, `state_machine_deletion.py` those that let a state
machine wait for its executions; `emulator_record.py` records for tests what MiniStack is asked.

With AUTH=true, MiniStack checks the signature and the identity policies of every call to an AWS
API, and the resource policies of queues, buckets, secrets, functions, keys and REST APIs. Functions
call with their roles. MiniStack does not check what its own services do for each other: the calls
of state machines, event source mappings, rules and failure destinations, the writing of logs, and
the use of keys.

Permissions. Without these patches, functions would be denied what their roles allow:

- Some policies deny requests without TLS, such as that of the CDK's bucket. Requests within this
  machine count as TLS here.
- AWS authorizes SendTaskSuccess and SendTaskFailure against the task token's state machine ("is not
  authorized to perform: states:SendTaskFailure on resource: arn:aws:states:...:stateMachine:...").
  MiniStack does not know a token's state machine and would ask for permission on `*`.
- MiniStack knows few of DynamoDB's condition keys; `dynamodb_conditions.py` has them.
- MiniStack does not know the condition keys of PutEvents.
- MiniStack takes a log stream for its log group, whose ARN no policy of a function names: on AWS it
  ends in `:*`.

Processes of functions:

- MiniStack ends the process of a function that raises an exception. Lambda keeps it. Each request
  that an authorizer refuses would cost a cold start.
- When one process does not start, MiniStack ends all processes of the function, including those
  that are starting.
- MiniStack unpacks a function's code for each process, 50 MB. That takes longer than the rest of a
  cold start and blocks all other requests. Here the processes share one folder.

What state machines see of functions:

- MiniStack gives all exceptions of functions one error name. On AWS, Retry and Catch match the name
  of the exception's class.
- MiniStack gives a function whose process was killed the same one. On AWS, that is
  Runtime.ExitError, and nobody knows what the function had done.
- MiniStack gives a call that finds no free instance no error name of its own. On AWS, Retry knows
  it as Lambda.TooManyRequestsException.
- MiniStack ignores that a function has failed which a state calls with a task token: the state
  would wait for ever. On AWS the state fails, and its retry passes another token.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
import zipfile
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ministack import app  # type: ignore[import-not-found]
from ministack.core import iam_actions, iam_evaluator, lambda_runtime  # type: ignore[import-not-found]
from ministack.services import dynamodb, stepfunctions  # type: ignore[import-not-found]

from . import dynamodb_conditions, emulator_access, emulator_record, state_machine_deletion
from .emulator import Keys
from .unpacked_code import Code

_call_lambda = stepfunctions._call_lambda
_execute_task = stepfunctions._execute_task
_dynamodb_service_context = iam_actions.dynamodb_service_context
_extract_resource_arn = iam_actions.extract_resource_arn
_enforce = iam_evaluator.enforce
_invoke_with_callback = stepfunctions._invoke_with_callback
_pin_request_origin = app.pin_request_origin

_invoke = lambda_runtime.Worker.invoke
_signal = lambda_runtime._signal
_collect = lambda_runtime._collect

REAP_SECONDS = 2.0
"""How long a function's process may take to end."""

_spared: ContextVar[list[Any] | None] = ContextVar("_spared", default=None)
"""The processes that MiniStack would have ended during the current call."""
_context: ContextVar[dict[str, Any]] = ContextVar("_context")
"""The context object (`$states.context`) of the state that is being executed."""
_passed_token: ContextVar[str | None] = ContextVar("_passed_token", default=None)
"""The task token of the state that calls a function, or waits for the token."""
_put_events: ContextVar[Sequence[Mapping[str, Any]]] = ContextVar("_put_events", default=())
"""The entries of the PutEvents that is being authorized."""
_raised: ContextVar[list[str] | None] = ContextVar("_raised", default=None)
"""The class names of the exceptions that the function of the current state has raised."""
THROTTLED = "Lambda.TooManyRequestsException"
"""The error of a call that found as many instances running as the function may have."""
EXIT_ERROR = "Runtime.ExitError"
"""The error of a function whose process has ended."""
TIMED_OUT = "Task timed out"
KILLED = ("Worker process died", "Worker process exited immediately", "[Errno 32] Broken pipe")
"""What MiniStack says of it: during a call, at its start, and before it took the call."""
_state_machines: dict[str, str] = {}
"""The ARN of each task token's state machine. Used tokens stay in it."""


class TokenFunctionError(Exception):
    """A function that was called with a task token has failed.

    MiniStack ignores its own error class at this place, but not this one.
    """


# Permissions


def pin_request_origin(source_ip: str, secure_transport: bool) -> None:
    """Record a request's origin, with TLS."""
    _pin_request_origin(source_ip, True)


def execute_task(state: Any, raw_input: Any, execution: Any, context: Any) -> Any:
    """Execute a task state, and record its context object."""
    _context.set(context)
    return _execute_task(state, raw_input, execution, context)


def invoke_with_callback(resource: Any, input_data: Any, token: str, state: Any) -> Any:
    """Call a function with a task token and wait for the token's answer.

    Records the token's state machine. When the call or the wait fails, the token is replaced: the
    state's retry passes another one.
    """
    context = _context.get()
    _state_machines[token] = context["StateMachine"]["Id"]
    before = _passed_token.set(token)
    try:
        return _invoke_with_callback(resource, input_data, token, state)
    except Exception as error:
        context["Task"] = {"Token": stepfunctions.new_uuid()}
        if isinstance(error, TokenFunctionError):
            raise stepfunctions._ExecutionError(*error.args) from None
        raise
    finally:
        _passed_token.reset(before)


def call_lambda(function: Any, event: Any) -> Any:
    """Call a function for a state.

    The error of a function that has a task token fails the state, unless the function has answered
    the token before.
    """
    raised: list[str] = []
    before = _raised.set(raised)
    try:
        return _call_lambda(function, event)
    except stepfunctions._ExecutionError as error:
        if '"__type": "TooManyRequestsException"' in error.cause:
            error = stepfunctions._ExecutionError(THROTTLED, error.cause)
        if raised:
            payload = json.loads(error.cause) | {"errorType": raised[-1]}
            error = stepfunctions._ExecutionError(raised[-1], json.dumps(payload))
        token = _passed_token.get()
        waiting = stepfunctions._task_tokens.pop(token, None)
        if waiting is None:
            raise error from None
        if waiting["event"].is_set():
            stepfunctions._task_tokens[token] = waiting
            raise error from None
        raise TokenFunctionError(error.error, error.cause) from None
    finally:
        _raised.reset(before)


def extract_resource_arn(service: str, *request: Any) -> str:
    """The resource of a request: for an answer to a task token, the token's state machine; for a
    log stream, the stream.

    `request` is method, path, headers, body and so on.
    """
    resource: str = _extract_resource_arn(service, *request)
    if service == "events":
        _put_events.set(json.loads(request[3] or b"{}").get("Entries", ()))
    if service == "states" and resource == "*":
        token = json.loads(request[3] or b"{}").get("taskToken")
        return _state_machines.get(token, resource)
    if service == "logs":
        stream = json.loads(request[3] or b"{}").get("logStreamName")
        return resource if stream is None else f"{resource}:log-stream:{stream}"
    return resource


def enforce(*request: Any, **options: Any) -> Any:
    """Check a permission; that of PutEvents for each entry (EventBridge user guide)."""
    if "events:PutEvents" not in request:
        return _enforce(*request, **options)
    names = {"events:detail-type": "DetailType", "events:source": "Source"}
    for entry in _put_events.get():
        options["service_context"] = {key: entry.get(name) for key, name in names.items()}
        if denied := _enforce(*request, **options):
            return denied
    return None


def dynamodb_service_context(body: bytes) -> dict[str, Any]:
    """The condition keys of a request to DynamoDB."""
    context: dict[str, Any] = _dynamodb_service_context(body)
    return dynamodb_conditions.with_condition_keys(context, body, _partition_key)


def _partition_key(table: str, index: str | None) -> str | None:
    """The name of the partition key of a table or of its index."""
    found = dynamodb._tables.get(table.rpartition("/")[2]) or {}
    if index is not None:
        indexes = found.get("GlobalSecondaryIndexes") or ()
        found = next((one for one in indexes if one["IndexName"] == index), {})
    keys = (key for key in found.get("KeySchema") or () if key["KeyType"] == "HASH")
    return next((key["AttributeName"] for key in keys), None)


# Processes of functions


def signal(process: Any) -> None:
    """End a function's process. During `invoke`, only remember it: `invoke` decides."""
    spared = _spared.get()
    if spared is None:
        _signal(process)
    else:
        spared.append(process)


def collect(process: Any, deadline: float) -> None:
    """Wait for the end of a function's process, unless `invoke` decides on it."""
    if _spared.get() is None:
        _collect(process, deadline)


def invoke(worker: Any, *request: Any, **options: Any) -> Any:
    """Call a function. Its process is kept after an exception, and ended after a timeout."""
    processes: list[Any] = []
    token = _spared.set(processes)
    try:
        response = _invoke(worker, *request, **options)
    except Exception as error:  # the process did not start
        response = {"status": "error", "error": str(error), "cold_start": True, "log": ""}
        processes, worker._proc = [], None
    finally:
        _spared.reset(token)
    raised = _raised.get()
    if raised is not None and (name := error_name(response)):
        raised.append(name)
    for process in processes:
        if process.poll() is None and not response["error"].startswith(TIMED_OUT):
            worker._proc = process
        else:
            _signal(process)
            _collect(process, time.monotonic() + REAP_SECONDS)
    return response


def error_name(response: Mapping[str, Any]) -> str | None:
    """The error name of what a function's process answered; None to leave it to MiniStack."""
    if response["status"] == "error" and str(response["error"]).startswith(KILLED):
        return EXIT_ERROR
    if response["status"] == "error" and str(response["error"]).startswith(TIMED_OUT):
        return "Sandbox.Timedout"
    # The class name of the exception at the end of the traceback.
    names = re.findall(r"^([A-Za-z_][\w.]*)(?::|$)", response.get("trace", ""), re.MULTILINE)
    return names[-1].rpartition(".")[2] if names else None


if __name__ == "__main__":
    os.environ.pop("PYTHONPATH")  # it leads to this module; functions do not need it
    emulator_access.install(Keys(**json.loads(sys.stdin.readline())))
    state_machine_deletion.install()
    app.app = emulator_access.AccessCheck(app.app)
    app.pin_request_origin = pin_request_origin
    iam_actions.dynamodb_service_context = dynamodb_service_context
    iam_actions.extract_resource_arn = extract_resource_arn
    iam_evaluator.enforce = enforce
    stepfunctions._call_lambda = call_lambda
    stepfunctions._execute_task = execute_task
    stepfunctions._invoke_with_callback = invoke_with_callback
    lambda_runtime.zipfile = SimpleNamespace(ZipFile=Code, BadZipFile=zipfile.BadZipFile)
    lambda_runtime._signal = signal
    lambda_runtime._collect = collect
    lambda_runtime.Worker.invoke = invoke
    if record := os.environ.pop(emulator_record.FOLDER_VARIABLE, None):
        emulator_record.install(Path(record), iam_evaluator, stepfunctions)
    sys.exit(app.main())
