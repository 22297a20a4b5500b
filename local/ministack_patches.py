"""MiniStack, as a process that is in a few things more like AWS, of the version that
local/requirements.txt pins.

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

Three it does to the processes of functions. It ends that of a function that raises something, where
Lambda goes on with it: each request that an authorizer refuses would cost a cold start. When one
does not start, it ends all others of the same function, which may be starting, too. And it unpacks
the code for each of them, 50 MB, which takes longer than all else in a cold start, and meanwhile
nobody is answered; here, they share it.

And two to what state machines see of functions. It calls whatever a function raises by one name,
where on AWS Retry and Catch match the exception's class. And it overlooks that a function has
failed which a state calls to wait for a token: the state would wait for ever, where on AWS it
fails, and is retried with another token.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import tempfile
import time
import zipfile
from contextvars import ContextVar
from pathlib import Path
from threading import Lock
from types import SimpleNamespace
from typing import Any

from ministack import app  # type: ignore[import-not-found]
from ministack.core import iam_actions, lambda_runtime  # type: ignore[import-not-found]
from ministack.services import stepfunctions  # type: ignore[import-not-found]

_call_lambda = stepfunctions._call_lambda
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
_context: ContextVar[dict[str, Any]] = ContextVar("_context")
"""The context object (`$states.context`) of the state that is executed."""
_handed_out: ContextVar[str | None] = ContextVar("_handed_out", default=None)
"""The task token that a function is called with, or waited for."""
_raised: ContextVar[list[str] | None] = ContextVar("_raised", default=None)
"""What the function that a state calls has raised: the names of the classes."""
_state_machines: dict[str, str] = {}
"""Task token -> the ARN of its state machine, also when it is used up."""


class HandOutError(Exception):
    """A function that was to get a token has failed. Not an error that the emulator overlooks."""


# Permissions


def pin_request_origin(source_ip: str, secure_transport: bool) -> None:
    """Note where a request comes from: over TLS."""
    _pin_request_origin(source_ip, True)


def execute_task(state: Any, raw_input: Any, execution: Any, context: Any) -> Any:
    """Execute a task state; note whose it is."""
    _context.set(context)
    return _execute_task(state, raw_input, execution, context)


def invoke_with_callback(resource: Any, input_data: Any, token: str, state: Any) -> Any:
    """Call what will answer to a token, and wait for the answer; note whose the token is.

    When either fails, nobody waits for the token any more, and a retry hands out another.
    """
    context = _context.get()
    _state_machines[token] = context["StateMachine"]["Id"]
    before = _handed_out.set(token)
    try:
        return _invoke_with_callback(resource, input_data, token, state)
    except Exception as error:
        context["Task"] = {"Token": stepfunctions.new_uuid()}
        if isinstance(error, HandOutError):
            raise stepfunctions._ExecutionError(*error.args) from None
        raise
    finally:
        _handed_out.reset(before)


def call_lambda(function: Any, event: Any) -> Any:
    """Call a function for a state; if it was given a token, it fails unless that was answered."""
    raised: list[str] = []
    before = _raised.set(raised)
    try:
        return _call_lambda(function, event)
    except stepfunctions._ExecutionError as error:
        if raised:
            payload = json.loads(error.cause) | {"errorType": raised[-1]}
            error = stepfunctions._ExecutionError(raised[-1], json.dumps(payload))
        token = _handed_out.get()
        waiting = stepfunctions._task_tokens.pop(token, None)
        if waiting is None:
            raise error from None
        if waiting["event"].is_set():
            stepfunctions._task_tokens[token] = waiting
            raise error from None
        raise HandOutError(error.error, error.cause) from None
    finally:
        _raised.reset(before)


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
    except Exception as error:  # it did not start
        response = {"status": "error", "error": str(error), "cold_start": True, "log": ""}
        processes, worker._proc = [], None
    finally:
        _spared.reset(token)
    raised = _raised.get()
    if raised is not None and (name := exception_name(response.get("trace", ""))):
        raised.append(name)
    for process in processes:
        if process.poll() is None and not response["error"].startswith("Task timed out"):
            worker._proc = process
        else:
            _signal(process)
            _collect(process, time.monotonic() + REAP_SECONDS)
    return response


class Code(zipfile.ZipFile):
    """A function's code. All its processes see the same folder, which they only read."""

    _unpacking = Lock()

    def extractall(self, path: Any = None, members: Any = None, pwd: Any = None) -> None:
        """Let `path`, an empty folder, be the code's."""
        archive = Path(str(self.filename))
        digest = hashlib.sha256(archive.read_bytes()).hexdigest()
        folder = Path(tempfile.gettempdir()) / f"code-{digest}"
        with self._unpacking:
            if not folder.exists():
                unfinished = folder.with_suffix(".unfinished")
                super().extractall(unfinished, members, pwd)
                unfinished.rename(folder)
        Path(path).rmdir()
        Path(path).symlink_to(folder)
        archive.unlink()


def exception_name(trace: str) -> str | None:
    """The class of the exception that a traceback ends with."""
    names = re.findall(r"^([A-Za-z_][\w.]*)(?::|$)", trace, re.MULTILINE)
    return names[-1].rpartition(".")[2] if names else None


if __name__ == "__main__":
    app.pin_request_origin = pin_request_origin
    iam_actions.extract_resource_arn = extract_resource_arn
    stepfunctions._call_lambda = call_lambda
    stepfunctions._execute_task = execute_task
    stepfunctions._invoke_with_callback = invoke_with_callback
    lambda_runtime.zipfile = SimpleNamespace(ZipFile=Code, BadZipFile=zipfile.BadZipFile)
    lambda_runtime._signal = signal
    lambda_runtime._collect = collect
    lambda_runtime.Worker.invoke = invoke
    sys.exit(app.main())
