"""Execute state machines by MiniStack's interpreter, as `make up` has it, without its server.

Runs in the emulator's environment. Reads and prints what `interpret_localstack.py` does, and the
JSONata `evaluations`: expression, bindings, and the value or the error.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import Any

from ministack.services import stepfunctions  # type: ignore[import-not-found]

from local import emulator_record, ministack_patches
from tests.infra.second_opinions.python.scripted_functions import FunctionError, ScriptedFunctions

ARN = "arn:aws:states:us-east-1:000000000000"


def execute(number: int, life: dict[str, Any]) -> dict[str, Any]:
    """Execute a state machine to its end."""
    functions = ScriptedFunctions(life["script"])

    def answer(token: str, output: str) -> None:
        stepfunctions._send_task_success({"taskToken": token, "output": output})

    def call(function: str, payload: Any) -> Any:
        try:
            return json.loads(json.dumps(functions.call(function, payload)))
        except FunctionError as error:
            name, cause = error.args
            failure = json.dumps({"errorType": name, "errorMessage": cause})
            raise stepfunctions._ExecutionError(name, failure) from None

    functions.answer = answer
    ministack_patches._call_lambda = call
    machine, arn = (
        f"{ARN}:stateMachine:life-{number}",
        f"{ARN}:execution:life-{number}:{life['name']}",
    )
    stepfunctions._state_machines[machine] = {
        "definition": life["definition"],
        "name": f"life-{number}",
    }
    execution = stepfunctions._executions[arn] = {
        "executionArn": arn,
        "stateMachineArn": machine,
        "name": life["name"],
        "input": json.dumps(life["input"]),
        "startDate": "2026-01-01T00:00:00.000Z",
        "status": "RUNNING",
        "events": [],
    }
    stepfunctions._run_execution(arn)
    outcome = {"status": execution["status"]}
    if outcome["status"] == "SUCCEEDED":
        outcome["output"] = json.loads(execution["output"])
    else:
        outcome |= {"error": execution["error"], "cause": execution["cause"]}
    return functions.seen(outcome)


if __name__ == "__main__":
    evaluations: list[Mapping[str, Any]] = []
    stepfunctions._evaluate_jsonata = emulator_record.recorded_expression(
        evaluations.append, stepfunctions._evaluate_jsonata
    )
    stepfunctions._scaled_sleep = lambda seconds: None
    stepfunctions._emit_execution_status_event = lambda execution: None
    stepfunctions._call_lambda = ministack_patches.call_lambda
    stepfunctions._execute_task = ministack_patches.execute_task
    stepfunctions._invoke_with_callback = ministack_patches.invoke_with_callback
    os.environ.pop("PYTHONPATH", None)
    lives = [execute(number, life) for number, life in enumerate(json.load(sys.stdin))]
    json.dump({"lives": lives, "evaluations": evaluations}, sys.stdout)
