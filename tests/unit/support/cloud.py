"""The whole stack in one process: moto interprets the state machines, and calls the real handlers.

What moto does not have is added: JSONata, Lambda functions that run, and the events that tell of an
execution's end. What moto does otherwise than AWS (a used token is accepted again, there is no
top-level timeout) is tested elsewhere, with stubs.
"""

from __future__ import annotations

import importlib
import json
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import jsonata
import pytest
from moto.stepfunctions.parser.asl.component.state.exec.state_task import lambda_eval_utils
from moto.stepfunctions.parser.asl.jsonata import jsonata as moto_jsonata
from moto.stepfunctions.parser.backend.execution import BaseExecutionWorkerCommunication

from mcp_tasks.registry.catalogue import FILE_NAME, Catalogue
from mcp_tasks.registry.workflow_tool import WorkflowTool
from mcp_tasks.tasks.task import Task, now_ms
from mcp_tasks.tasks.task_table import TaskTable
from tests import wire
from tests.paths import ROOT
from tests.unit.support.aws import (
    ACCOUNT,
    REGION,
    create_callers,
    create_journal,
    create_mailboxes,
    create_payloads,
    create_table,
    real,
)
from tests.unit.support.stack import (
    ENVIRONMENT,
    IDENTITY,
    PREFIX,
    STATE_KEY,
    Answer,
    create_state_machine,
    messages_of,
    meta,
    mirrored,
)

FUNCTION_TASK: Final = ROOT / "infra" / "function_task.asl.json"
FUNCTION: Final = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:"
PATIENCE: Final = 20.0
"""Seconds after which a test gives up on an execution."""


@dataclass
class Context:
    """What Lambda passes beside the event."""

    function_name: str = "unit"
    memory_limit_in_mb: int = 512
    invoked_function_arn: str = f"{FUNCTION}unit"
    aws_request_id: str = "1"

    def get_remaining_time_in_millis(self) -> int:
        return 60_000


@dataclass
class Cloud:
    """A deployment of a tools folder."""

    monkeypatch: pytest.MonkeyPatch
    bundle: Path
    tools: Path
    finished: dict[str, Any] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._changed = threading.Condition()
        catalogue = Catalogue.discover(self.tools)
        catalogue.write(self.bundle / FILE_NAME)
        IDENTITY.write(self.bundle)
        self.monkeypatch.setattr("mcp_tasks.deployment.BUNDLE", self.bundle)
        # Each function makes its clients as on Lambda, but need not load their models again.
        session = SimpleNamespace(create_client=lambda service, config: real(service))
        self.monkeypatch.setattr("mcp_tasks.aws.clients.get_session", lambda: session)
        for name, value in ENVIRONMENT.items():
            self.monkeypatch.setenv(name, value)
        secret = real("secretsmanager").create_secret(Name="state-key", SecretString=STATE_KEY)
        self.monkeypatch.setenv("REQUEST_STATE_KEY_SECRET", secret["ARN"])
        create_table()
        create_mailboxes()
        create_callers()
        create_payloads()
        create_journal()
        self.rows = TaskTable(real("dynamodb"), ENVIRONMENT["TASKS_TABLE"])
        self._functions = {name: self._handler(name) for name in ("ask", "finish", "subtasks")}
        self._api = self._handler("api")
        for entry in catalogue.tools.values():
            if entry.task_support != "forbidden" and entry.state_machine_arn is None:
                self._functions[f"worker-{entry.name}"] = self._handler("worker", TOOL=entry.name)
                tool = entry.load()
                file = tool.definition_file if isinstance(tool, WorkflowTool) else None
                text = (file or FUNCTION_TASK).read_text(encoding="utf-8")
                text = text.replace("${worker}", f"{FUNCTION}worker-{entry.name}")
                text = text.replace("${ask}", f"{FUNCTION}ask")
                text = text.replace("${partition}", "aws")
                text = text.replace("${subtasks}", f"{FUNCTION}subtasks")
                text = text.replace('"Seconds": 10', '"Seconds": 0')  # no function has to end
                create_state_machine(f"{PREFIX.rpartition(':')[2]}{entry.name}", json.loads(text))
        self._interpret()

    def _handler(self, function: str, **environment: str) -> Callable[[Any, Any], Any]:
        """A function's handler, loaded as a new instance loads it."""
        for name, value in environment.items():
            self.monkeypatch.setenv(name, value)
        sys.modules.pop(f"{function}.handler", None)
        handler: Callable[[Any, Any], Any] = importlib.import_module(f"{function}.handler").handler
        del sys.modules[f"{function}.handler"]
        return handler

    def _interpret(self) -> None:
        def evaluate(expression: str) -> Any:
            return jsonata.Jsonata(expression).evaluate(None)

        def invoke(parameters: dict[str, Any], region: str, state_credentials: Any) -> Any:
            name = parameters["FunctionName"].rpartition(":")[2]
            payload = parameters["Payload"]
            event = json.loads(payload) if isinstance(payload, str | bytes) else payload
            return {"StatusCode": 200, **self._invoked(name, event)}

        reflect = BaseExecutionWorkerCommunication.terminated

        def terminated(worker: BaseExecutionWorkerCommunication) -> None:
            reflect(worker)
            self._ended(worker.execution)

        self.monkeypatch.setattr(moto_jsonata, "_eval_jsonata", evaluate)
        self.monkeypatch.setattr(lambda_eval_utils, "_invoke_lambda_function", invoke)
        self.monkeypatch.setattr(BaseExecutionWorkerCommunication, "terminated", terminated)

    def _invoked(self, name: str, event: Any) -> dict[str, Any]:
        """A function's answer as Lambda gives it: JSON, or the error payload of Python."""
        try:
            output = self._functions[name](event, Context())
            payload = json.loads(json.dumps(output, allow_nan=False))
        except Exception as error:
            frames = traceback.format_list(traceback.extract_tb(error.__traceback__))
            return {
                "FunctionError": "Unhandled",
                "Payload": {
                    "errorMessage": str(error),
                    "errorType": type(error).__name__,
                    "stackTrace": frames,
                },
            }
        self._notify()
        return {"Payload": payload}

    def _ended(self, execution: Any) -> None:
        """EventBridge: a status event to the function `finish`; it leaves the output out."""
        event = {
            "detail-type": "Step Functions Execution Status Change",
            "source": "aws.states",
            "detail": {
                "executionArn": execution.exec_arn,
                "stateMachineArn": execution.state_machine.arn,
                "name": execution.name,
                "status": execution.status,
                "output": None,
                "outputDetails": {"included": False},
            },
        }
        try:
            self._functions["finish"](event, Context())
        except Exception:
            self.errors.append(traceback.format_exc())
        with self._changed:
            self.finished[execution.name] = event
            self._changed.notify_all()

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify_all()

    # the client

    def post(self, method: str, params: dict[str, Any], **options: Any) -> Answer:
        """Send a request to the function `api`."""
        params = {**params, "_meta": {**meta(**options), **params.get("_meta", {})}}
        event = {
            "headers": mirrored(method, params),
            "body": json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}),
            "requestContext": {"identity": {}},
        }
        response = self._api(event, Context())
        *notifications, message = messages_of(response)
        wire.check_notifications(notifications)
        wire.check(method, message)
        return Answer(response["statusCode"], message, notifications, response["headers"])

    def start(self, tool: str, arguments: dict[str, Any], **options: Any) -> str:
        """Call a tool that becomes a task; returns the task's id."""
        answer = self.post("tools/call", {"name": tool, "arguments": arguments}, **options)
        assert answer.result["resultType"] == "task", answer.message
        task_id: str = answer.result["taskId"]
        return task_id

    def get(self, task_id: str) -> dict[str, Any]:
        """`tasks/get`."""
        return self.post("tasks/get", {"taskId": task_id}).result

    def settled(self, task_id: str) -> dict[str, Any]:
        """The task, once it asks or its execution's end has been told."""
        with self._changed:
            done = self._changed.wait_for(
                lambda: task_id in self.finished or self._asks(task_id), PATIENCE
            )
        assert not self.errors, self.errors[0]
        task = self.get(task_id)
        assert done, f"nothing happened: {task}"
        return task

    def answer(self, task_id: str, action: str = "accept", **content: Any) -> Answer:
        """Answer all open questions alike."""
        responses = {
            key: {"action": action, "content": content}
            for key in self.get(task_id)["inputRequests"]
        }
        return self.post("tasks/update", {"taskId": task_id, "inputResponses": responses})

    def row(self, task_id: str) -> Task:
        """The task's row."""
        return self.rows.get(task_id, now_ms())

    def _asks(self, task_id: str) -> bool:
        return bool(self.row(task_id).outstanding)
