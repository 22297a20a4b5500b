"""Execute state machines by LocalStack's interpreter, without LocalStack's server.

Reads a list of {"definition", "name", "input", "script"} and prints, for each, what
`ScriptedFunctions.seen` tells. Time is not waited for. JSONata is evaluated by its reference
implementation (`node/jsonata.cjs`); LocalStack would download a port to Java, and a Java.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from tests.infra.second_opinions.python.scripted_functions import FunctionError, ScriptedFunctions


def _stand_in(name: str, **members: object) -> None:
    sys.modules[name] = ModuleType(name)
    vars(sys.modules[name]).update(members)


# Imported, and not used here: JSONata in Java, and names of moto's for AWS Batch.
_stand_in("jpype")
_stand_in("jpype.imports")
_stand_in("localstack.services.stepfunctions.packages", jpype_jsonata_package=None)
_stand_in("moto")
_stand_in("moto.batch")
_stand_in("moto.batch.utils", JobStatus=SimpleNamespace(SUCCEEDED="SUCCEEDED", FAILED="FAILED"))

from localstack.services.stepfunctions.asl.component.common.retry import retrier_decl  # noqa: E402
from localstack.services.stepfunctions.asl.component.state.state_execution.state_task import (  # noqa: E402
    lambda_eval_utils,
)
from localstack.services.stepfunctions.asl.component.state.state_wait.wait_function import (  # noqa: E402
    wait_function,
)
from localstack.services.stepfunctions.asl.eval.callback.callback import (  # noqa: E402
    CallbackOutcomeSuccess,
)
from localstack.services.stepfunctions.asl.eval.evaluation_details import (  # noqa: E402
    AWSExecutionDetails,
    EvaluationDetails,
    ExecutionDetails,
    StateMachineDetails,
)
from localstack.services.stepfunctions.asl.eval.program_state import (  # noqa: E402
    ProgramEnded,
    ProgramError,
)
from localstack.services.stepfunctions.asl.eval.states import States  # noqa: E402
from localstack.services.stepfunctions.asl.jsonata import jsonata  # noqa: E402
from localstack.services.stepfunctions.backend.execution_worker import (  # noqa: E402
    SyncExecutionWorker,
)

ACCOUNT, REGION = "000000000000", "us-east-1"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/state-machine"
ARN = f"arn:aws:states:{REGION}:{ACCOUNT}"


class JSONata:
    """The reference implementation, in a process that lives as long as this one."""

    def __init__(self) -> None:
        program = Path(__file__).parents[1] / "node" / "jsonata.cjs"
        self._process = subprocess.Popen(
            ["node", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._lock = threading.Lock()

    def evaluate(self, expression: str) -> Any:
        """An expression's value, None where it has none. Raises JSONataException."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        with self._lock:
            stdin.write(json.dumps({"expression": expression}) + "\n")
            stdin.flush()
            outcome = json.loads(stdout.readline())
        if "error" in outcome:
            raise jsonata.JSONataException(outcome["error"], outcome["message"])
        return outcome.get("value")


def execute(life: dict[str, Any]) -> dict[str, Any]:
    """Execute a state machine to its end."""
    functions = ScriptedFunctions(life["script"])
    worker = SyncExecutionWorker(
        EvaluationDetails(
            AWSExecutionDetails(ACCOUNT, REGION, ROLE),
            ExecutionDetails(
                arn=f"{ARN}:execution:life:{life['name']}",
                name=life["name"],
                role_arn=ROLE,
                inpt=life["input"],
                start_time="2026-01-01T00:00:00.000Z",
            ),
            StateMachineDetails(f"{ARN}:stateMachine:life", "life", "STANDARD", life["definition"]),
        ),
        SimpleNamespace(terminated=lambda: None),
        None,
        {},
    )

    def answer(token: str, output: str) -> None:
        worker.env.callback_pool_manager.notify(token, CallbackOutcomeSuccess(token, output))

    def invoke(env: Any, parameters: dict[str, Any], **_: Any) -> None:
        payload = json.loads(parameters["Payload"])
        try:
            result = functions.call(parameters["FunctionName"], payload)
        except FunctionError as error:
            name, cause = error.args
            failure = json.dumps({"errorType": name, "errorMessage": cause})
            raise lambda_eval_utils.LambdaFunctionErrorException("Unhandled", failure) from None
        env.stack.append({"StatusCode": 200, "Payload": result})

    functions.answer = answer
    lambda_eval_utils.execute_lambda_function_integration = invoke
    worker.start()
    return functions.seen(outcome_of(worker.env))


def outcome_of(environment: Any) -> dict[str, Any]:
    """Of an execution that is over."""
    state = environment.program_state()
    if isinstance(state, ProgramEnded):
        return {"status": "SUCCEEDED", "output": environment.states.get_input()}
    assert isinstance(state, ProgramError), state
    error = state.error or {}
    return {"status": "FAILED", "error": error.get("error"), "cause": error.get("cause")}


def declare_states(states: States, variable_references: object = None) -> str:
    """All of `$states`. LocalStack 4.13.1 overlooks references within brackets."""
    return str(jsonata.encode_jsonata_variable_declarations({"$states": states._states_data}))


if __name__ == "__main__":
    States.to_variable_declarations = declare_states
    wait_function.WaitFunction._wait_interval = lambda *_, **__: None
    retrier_decl.time = SimpleNamespace(sleep=lambda seconds: None)
    jsonata._eval_jsonata = JSONata().evaluate
    json.dump([execute(life) for life in json.load(sys.stdin)], sys.stdout)
