"""What an account keeps of a task's execution: its trace, and where its failure was read."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest

from mcp_tasks.environment import TRACING
from operations.verify.check import Outcome, outcome_of
from operations.verify.deployed import Deployed, ToolCall, ToolCalls
from operations.verify.endpoint import Endpoint, Piece, Response
from operations.verify.execution_checks import CHECKS, LOG_SECONDS, TRACE_SECONDS
from tests.unit.operations.verify.account import MACHINE, Account
from tests.unit.operations.verify.conftest import Waited

TRACE, FAILURE = CHECKS
TASK = "c1-0123456789abcdef0123456789abcdef"
WORKER = ("AWS::Lambda::Function", "ToolsfillWorkerFunction1A", "notes-worker")
API = ("AWS::ApiGateway::Stage", "notes/v1")
ANSWERS = ("AWS::Lambda::Function", "physical-ApiFunction1A")
MACHINES = ("AWS::StepFunctions::StateMachine", "notes-fill")
WORKS = ("AWS::Lambda::Function", "notes-worker")
WHOLE = [API, ("AWS::Lambda", "physical-ApiFunction1A"), ANSWERS, MACHINES, WORKS]
CAUSE = json.dumps({"errorType": "ValueError", "errorMessage": "[ValueError] see the server's log"})


class Server(Endpoint):
    """Runs a task to an end."""

    def __init__(self, ended: Mapping[str, Any]) -> None:
        super().__init__("https://mcp.example.com/mcp")
        self.ended, self.headers = ended, list[Mapping[str, str]]()

    def post(
        self,
        message: Mapping[str, Any],
        headers: Mapping[str, str] | None = None,
        *_: Any,
        **__: Any,
    ) -> Response:
        """Create the task, or tell its end."""
        self.headers.append(headers or {})
        task = {"taskId": TASK, "pollIntervalMs": 1}
        created = {"resultType": "task", "status": "working"} | task
        result = created if message["method"] == "tools/call" else {**task, **self.ended}
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result})
        return Response(200, {}, [Piece(body.encode(), 0.1)], 0.1)


def seen(check: Any, server: Server, account: Account, fails: bool = True) -> Outcome:
    call = ToolCall("fill", {"size": 1})
    calls = ToolCalls(task=call, fails=call if fails else None)
    stack = account.deployed().stack
    deployed = Deployed(server, False, stack, calls, {"fill": {"name": "fill"}})
    return outcome_of(check, deployed)


def variables(**values: str) -> dict[str, Any]:
    return {"Environment": {"Variables": {"AUTH": "none", **values}}}


def traced(*segments: tuple[str, str], after: int = 0) -> Account:
    """X-Ray has the segments, from the first call on or after some more."""
    asked = []

    def traces(words: dict[str, Any]) -> dict[str, Any]:
        asked.append(words)
        (trace,) = words["TraceIds"]
        if len(asked) <= after or not segments:
            return {"Traces": [], "UnprocessedTraceIds": [trace]}
        found = [
            {"Id": str(n), "Document": json.dumps({"origin": origin, "name": name})}
            for n, (origin, name) in enumerate(segments)
        ]
        return {"Traces": [{"Id": trace, "Segments": found}]}

    answers = {"get_function_configuration": variables(**{TRACING: "on"})}
    return Account(WORKER, **answers, batch_get_traces=traces)


DONE = {"status": "completed", "result": {"content": []}}


def test_a_trace_is_waited_for_and_holds_everything(waited: Waited) -> None:
    server, account = Server(DONE), traced(*WHOLE, after=3)
    outcome = seen(TRACE, server, account)
    assert outcome.verdict == "passed", outcome
    assert outcome.seen == (
        "one trace has AWS::ApiGateway::Stage, AWS::StepFunctions::StateMachine, notes-worker, "
        "physical-ApiFunction1A"
    )
    assert waited.seconds > 0
    header = server.headers[0]["X-Amzn-Trace-Id"]
    trace = re.fullmatch(r"Root=(1-[0-9a-f]{8}-[0-9a-f]{24});Sampled=1", header)
    assert trace is not None, "X-Ray developer guide, Tracing header"
    asked = [words for name, words in account.asked if name == "batch_get_traces"]
    assert asked[-1] == {"TraceIds": [trace[1]]}


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        (API, "lacks API Gateway"),
        (MACHINES, "lacks Step Functions"),
        (WORKS, "lacks a worker"),
    ],
)
def test_a_trace_in_pieces_is_found(waited: Waited, missing: tuple[str, str], said: str) -> None:
    outcome = seen(TRACE, Server(DONE), traced(*(each for each in WHOLE if each != missing)))
    assert outcome.verdict == "FAILED"
    assert said in outcome.seen
    assert waited.seconds <= TRACE_SECONDS


def test_a_function_of_another_stack_is_not_taken_for_ours(waited: Waited) -> None:
    others = [(origin, name.replace("physical", "other")) for origin, name in WHOLE]
    outcome = seen(TRACE, Server(DONE), traced(*others))
    assert outcome.verdict == "FAILED"
    assert "lacks the function that answers" in outcome.seen


def test_a_trace_that_never_comes_is_not_waited_for_ever(waited: Waited) -> None:
    outcome = seen(TRACE, Server(DONE), traced())
    assert outcome.verdict == "FAILED"
    assert outcome.seen.startswith("X-Ray has nothing of the trace 1-")
    assert waited.seconds <= TRACE_SECONDS


def test_without_tracing_there_is_no_trace() -> None:
    account = Account(get_function_configuration=variables(**{TRACING: "off"}))
    outcome = seen(TRACE, Server(DONE), account)
    assert (outcome.verdict, "tracing=off" in outcome.seen) == ("not tried", True)


OTHER = {"message": "execution ended", "task_id": "c1-other", "task": "completed"}


def failed(message: str) -> Server:
    return Server({"status": "failed", "error": {"code": -32603, "message": message}})


def ended(*lines: dict[str, Any], key: str = "AWS_OWNED_KEY", status: str = "FAILED") -> Account:
    """An account whose execution failed, and whose `finish` has logged so."""
    others = ["START RequestId: 1", "[]", json.dumps(OTHER)]
    events = [{"message": text} for text in (*others, *map(json.dumps, lines))]
    machine = {"name": "notes-fill", "encryptionConfiguration": {"type": key}}
    return Account(
        ("AWS::Logs::LogGroup", "FinishLogs1A", "notes-FinishLogs1A"),
        describe_execution={"status": status, "error": "ValueError", "cause": CAUSE},
        describe_state_machine=machine,
        filter_log_events={"events": events},
    )


LINE = {"message": "execution ended", "task_id": TASK, "task": "failed"}
READ = LINE | {"end_from": "DescribeExecution"}
KEY = "CUSTOMER_MANAGED_KMS_KEY"
SAID = "The tool failed: ValueError"


@pytest.mark.parametrize(
    ("account", "said"),
    [
        (ended(LINE), "ValueError: the event had error and cause"),
        (ended(READ, key=KEY), "ValueError: read by DescribeExecution, because of the KMS key"),
    ],
)
def test_a_failure_is_told_by_its_event(waited: Waited, account: Account, said: str) -> None:
    outcome = seen(FAILURE, failed(SAID), account)
    assert (outcome.verdict, outcome.seen) == ("passed", said)
    asked = dict(account.asked)
    execution = MACHINE.replace("stateMachine", "execution")
    assert asked["describe_execution"] == {"executionArn": f"{execution}:{TASK}"}
    assert asked["filter_log_events"]["logGroupName"] == "notes-FinishLogs1A"
    assert f'$.task_id = "{TASK}"' in asked["filter_log_events"]["filterPattern"]


@pytest.mark.parametrize(
    ("message", "account", "said"),
    [
        (SAID, ended(READ), "lacked error and cause"),
        (SAID, ended(), f"no line of {TASK} after {LOG_SECONDS:.0f} s"),
        ("The tool failed: KeyError", ended(LINE), "its execution makes it 'The tool failed: Va"),
    ],
)
def test_a_failure_that_was_told_otherwise_is_found(
    waited: Waited, message: str, account: Account, said: str
) -> None:
    outcome = seen(FAILURE, failed(message), account)
    assert outcome.verdict == "FAILED"
    assert said in outcome.seen


@pytest.mark.parametrize(
    ("account", "said"),
    [
        (ended(LINE | {"task": None}), "had ended"),
        (ended(LINE, status="TIMED_OUT"), "its execution is TIMED_OUT"),
    ],
)
def test_a_failure_that_proves_nothing_is_not_tried(
    waited: Waited, account: Account, said: str
) -> None:
    outcome = seen(FAILURE, failed(SAID), account)
    assert outcome.verdict == "not tried"
    assert said in outcome.seen


def test_a_tool_that_fails_has_to_be_named() -> None:
    outcome = seen(FAILURE, failed(SAID), ended(LINE), fails=False)
    assert outcome.verdict == "not tried"
    assert "fails='simulate_savings {" in outcome.seen
