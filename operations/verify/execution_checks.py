"""What the account keeps of a task's execution: its trace, and the event of its failure."""

from __future__ import annotations

import json
import secrets
import time
from typing import Any, Final

from mcp_tasks.environment import TRACING
from mcp_tasks.workflows.execution_outcome import Completed, outcome
from mcp_tasks.workflows.executions import ExecutionEnd, execution_arn
from mcp_tasks.workflows.finish import END_FROM, ENDED

from ..deployed_stack import DeployedStack
from ..running_executions import STATE_MACHINE
from ..state_machine_metadata import CUSTOMER_KEY, state_machine_metadata
from .check import Check, NotTried, Problem, expect
from .deployed import Deployed
from .task_checks import TASK_SECONDS
from .waiting import attempts

TRACE_SECONDS: Final = 120.0
"""Until segments can be read: X-Ray says nothing of how long that takes."""
LOG_SECONDS: Final = 90.0
"""Until a line of `finish` can be searched for."""
PAUSE: Final = 5.0
SAMPLE: Final = (
    """simulate_savings {"monthly": 9, "years": 60, "share_of_stocks": 1, "runs": 5000000}"""
)
"""Runs over its ten seconds."""


def follow_the_trace(deployed: Deployed) -> str:
    """With `tracing=on`: one trace has the segments of API Gateway, of the function that answered,
    of the state machine, and of its worker.

    The call brings the trace's id and that it be recorded, which services of AWS follow (X-Ray
    developer guide, "Tracing header": it "can originate from ... the client request").
    """
    stack = deployed.account()
    if stack.variables.get(TRACING) != "on":
        raise NotTried("requests are not traced (tracing=off)")
    call = deployed.offered(deployed.calls.task)
    trace = f"1-{int(time.time()):08x}-{secrets.token_hex(12)}"
    params = {"name": call.tool, "arguments": dict(call.arguments)}
    header = {"X-Amzn-Trace-Id": f"Root={trace};Sampled=1"}
    task = deployed.endpoint.request("tools/call", params, headers=header).result
    deployed.endpoint.until(task, TASK_SECONDS, "completed")
    functions = set(stack.physical_ids("AWS::Lambda::Function"))
    seen, missing = set[tuple[str, str]](), list[str]()
    for _ in attempts(TRACE_SECONDS, PAUSE):
        seen = _segments(stack, trace, functions)
        if not (missing := _missing(stack, seen)):
            break
    expect(seen, f"X-Ray has nothing of the trace {trace} after {TRACE_SECONDS:.0f} s")
    expect(not missing, f"the trace {trace} lacks {', '.join(missing)}; it has {_shown(seen)}")
    return f"one trace has {_shown(seen)}"


def _segments(stack: DeployedStack, trace: str, functions: set[str]) -> set[tuple[str, str]]:
    """Origin and name of each segment; the name only of the stack's own functions."""
    seen = set()
    for page in stack.client("xray").get_paginator("batch_get_traces").paginate(TraceIds=[trace]):
        for found in page["Traces"]:
            for segment in found["Segments"]:
                document = json.loads(segment["Document"])
                origin, name = document.get("origin", ""), document.get("name", "")
                seen.add((origin, name if name in functions else ""))
    return seen


def _missing(stack: DeployedStack, seen: set[tuple[str, str]]) -> list[str]:
    origins = {origin.lower() for origin, _ in seen}
    wanted = {"API Gateway": "aws::apigateway", "Step Functions": "aws::stepfunctions"}
    missing = [
        name
        for name, origin in wanted.items()
        if not any(each.startswith(origin) for each in origins)
    ]
    names = {name for _, name in seen}
    for part, logical_id in (("the function that answers", "ApiFunction"), ("a worker", "Tools")):
        if not names & set(stack.physical_ids("AWS::Lambda::Function", logical_id)):
            missing.append(part)
    return missing


def _shown(seen: set[tuple[str, str]]) -> str:
    return ", ".join(
        sorted({name or origin or "a segment without origin" for origin, name in seen})
    )


def fail_by_event(deployed: Deployed) -> str:
    """A failed task has the message that its execution's error and cause make, and `finish` had
    both from the event, without a call of DescribeExecution, which is scarce.

    Step Functions developer guide, "Automating Step Functions event delivery with EventBridge".
    With a customer's key the event has neither ("Data at rest encryption").
    """
    if deployed.calls.fails is None:
        raise NotTried(f"no sample fails by itself; fails='{SAMPLE}' runs over its time")
    call, stack = deployed.offered(deployed.calls.fails), deployed.account()
    machine = _state_machine_of(stack, call.tool)
    begun = int(time.time() * 1000)
    task = deployed.endpoint.create(call.tool, call.arguments)
    ended = deployed.endpoint.until(task, TASK_SECONDS, "failed")
    said, task_id = ended["error"]["message"], str(task["taskId"])
    execution = execution_arn(machine, task_id)
    found = stack.client("stepfunctions").describe_execution(executionArn=execution)
    status, error = found["status"], found.get("error", "")
    if status != "FAILED":
        raise NotTried(f"its execution is {status}; fails= wants a tool that raises an exception")
    made = outcome(ExecutionEnd(status, error=error, cause=found.get("cause", "")), dict)
    wanted = "a result" if isinstance(made, Completed) else made.error["message"]
    expect(said == wanted, f"the task says {said!r}, and its execution makes it {wanted!r}")
    return f"{error}: {_source_of_end(stack, machine, task_id, begun)}"


def _state_machine_of(stack: DeployedStack, tool: str) -> str:
    """Its ARN. Raises NotTried for a tool that wraps a state machine of somebody else."""
    for arn in stack.physical_ids(STATE_MACHINE):
        if arn.endswith(f":{stack.name}-{tool}"):
            return arn
    raise NotTried(f"{tool} has no state machine of the stack's own")


def _source_of_end(stack: DeployedStack, machine: str, task_id: str, begun: int) -> str:
    """Where `finish` had the end from, as its log says. Raises Problem and NotTried."""
    line = _line_of_finish(stack, task_id, begun)
    if line.get("task") != "failed":
        raise NotTried(f"`finish` came late: a poll or the sweeper had ended {task_id}")
    if END_FROM not in line:
        return "the event had error and cause"
    encrypted = _has_a_key(stack, machine)
    expect(encrypted, f"the event of {task_id} lacked error and cause, or was a minute late")
    return "read by DescribeExecution, because of the KMS key"


def _has_a_key(stack: DeployedStack, machine: str) -> bool:
    found = state_machine_metadata(stack.client("stepfunctions"), machine)
    kind = found.get("encryptionConfiguration", {}).get("type")
    return bool(kind == CUSTOMER_KEY)


def _line_of_finish(stack: DeployedStack, task_id: str, since: int) -> dict[str, Any]:
    """What `finish` has logged of a task's end. Raises Problem."""
    (group,) = stack.physical_ids("AWS::Logs::LogGroup", "FinishLogs")
    pages = stack.client("logs").get_paginator("filter_log_events")
    pattern = f'{{ $.task_id = "{task_id}" && $.message = "{ENDED}" }}'
    for _ in attempts(LOG_SECONDS, PAUSE):
        for page in pages.paginate(logGroupName=group, filterPattern=pattern, startTime=since):
            for event in page["events"]:
                line = _json(event["message"])
                if (line.get("task_id"), line.get("message")) == (task_id, ENDED):
                    return line
    raise Problem(f"the log of `finish` has no line of {task_id} after {LOG_SECONDS:.0f} s")


def _json(text: str) -> dict[str, Any]:
    """A line that a function has logged; empty for one of Lambda's own."""
    try:
        line = json.loads(text)
    except ValueError:
        return {}
    return line if isinstance(line, dict) else {}


CHECKS: Final = (
    Check("One trace of a task", follow_the_trace, only_aws=True, of_stack=True),
    Check("A task's failure", fail_by_event, only_aws=True, of_stack=True),
)
