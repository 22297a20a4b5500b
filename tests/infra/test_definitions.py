"""The state machines' definitions: complete, valid, and never outliving their tasks."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import jsonata
import pytest
from moto.stepfunctions.parser.asl.parse.asl_parser import AmazonStateLanguageParser
from pydantic import BaseModel

from infra.state_machine_definition import (
    MAX_COMBINED_OUTPUT_BYTES,
    MAX_MAP_OUTPUT_BYTES,
    MIN_OUTPUT_BYTES,
    Definition,
    worker_timeout,
)
from mcp_tasks import TaskContext, tool, workflow_tool
from mcp_tasks.durable.maps import MAX_LANES
from mcp_tasks.payloads.offloading import MAX_OBJECT_BYTES, json_size
from mcp_tasks.payloads.pointer import PayloadPointer, payload_prefix
from mcp_tasks.registry.decorated_function import DECLARATION
from mcp_tasks.registry.tool import Tool
from mcp_tasks.tasks.questions import MAX_ANSWERS_CHARACTERS
from mcp_tasks.workflows.execution_input import MAX_INLINE_INPUT_BYTES
from mcp_tasks.workflows.retry import TRANSIENT_ERROR
from mcp_tasks.workflows.run_event import LANE_EVENTS, MAX_EVENTS, RUN_EVENTS
from mcp_tasks.workflows.step_payloads import MAX_INLINE_ANSWERS_BYTES, MAX_STEP_OUTPUT_BYTES
from tests.infra.assembly import Assembly, expressions

ENDS = ("Succeed", "Fail")
PLACEHOLDER = re.compile(r"\$\{(.*?)\}")


def _machines(*assemblies: Assembly) -> Iterator[tuple[str, dict[str, Any]]]:
    for assembly in assemblies:
        yield from assembly.resources("AWS::StepFunctions::StateMachine").items()


def _levels(definition: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The definition, and the sub-workflows of its Map and Parallel states."""
    yield definition
    for state in definition["States"].values():
        processors = [state.get("ItemProcessor"), state.get("Iterator")]
        for inner in (*state.get("Branches", ()), *filter(None, processors)):
            yield from _levels(inner)


def _next(state: Mapping[str, Any]) -> Iterator[str]:
    for choice in (state, *state.get("Choices", ()), *state.get("Catch", ())):
        for key in ("Next", "Default"):
            if key in choice:
                yield choice[key]


def test_every_placeholder_is_substituted_and_nothing_else_is(
    on_aws: Assembly, fork: Assembly
) -> None:
    for path, machine in _machines(on_aws, fork):
        placeholders = set(PLACEHOLDER.findall(machine["DefinitionString"]))
        assert placeholders == set(machine["DefinitionSubstitutions"]), path


def test_every_state_is_reached_and_leads_on_or_ends(on_aws: Assembly, fork: Assembly) -> None:
    for path, machine in _machines(on_aws, fork):
        for level in _levels(json.loads(machine["DefinitionString"])):
            states = level["States"]
            reached, waiting = set(), [level["StartAt"]]
            while waiting:
                name = waiting.pop()
                assert name in states, f"{path}: there is no state {name}"
                if name not in reached:
                    reached.add(name)
                    waiting += _next(states[name])
            assert reached == set(states), f"{path}: never reached"
            for name, state in states.items():
                ends = state.get("End") or state["Type"] in ENDS
                assert ends or list(_next(state)), f"{path}: {name} leads nowhere"


def test_the_language_is_understood_by_an_independent_parser(
    on_aws: Assembly, fork: Assembly
) -> None:
    for _, machine in _machines(on_aws, fork):
        arn = "arn:aws:lambda:us-east-1:123456789012:function:some"
        definition = machine["DefinitionString"].replace("${partition}", "aws")
        AmazonStateLanguageParser.parse(PLACEHOLDER.sub(arn, definition))


def test_every_expression_is_jsonata(on_aws: Assembly, fork: Assembly) -> None:
    for path, machine in _machines(on_aws, fork):
        found = list(expressions(json.loads(machine["DefinitionString"])))
        assert found, path
        for expression in found:
            jsonata.Jsonata(expression)


def test_an_execution_does_not_outlive_its_task(on_aws: Assembly, fork: Assembly) -> None:
    seconds = {
        machine["StateMachineName"]: json.loads(machine["DefinitionString"])["TimeoutSeconds"]
        for _, machine in _machines(on_aws, fork)
    }
    day, hour = 24 * 3600, 3600
    assert seconds == {
        "mcp-tasks-tally_columns": 12 * hour,
        "mcp-tasks-estimate_savings": hour,
        "fork-close_books": day,
        "fork-count.words": day,
        "fork-count_words": day,
        "fork-report": 3 * hour,
    }


class Arguments(BaseModel):
    """What the tools below take."""

    text: str


def _step(text: str) -> str:
    return text


def _workflow(tmp_path: Path, definition: str, **options: Any) -> Tool:
    file = tmp_path / "workflow.asl.json"
    file.write_text(definition)
    return workflow_tool(
        "flow", description="Flows.", arguments=Arguments, definition=file, **options
    )


def _function(**options: Any) -> Tool:
    @tool(task="required", **options)
    def work(text: str) -> str:
        """Work."""
        return text

    declared: Tool = getattr(work, DECLARATION)
    return declared


def _durable(**options: Any) -> Tool:
    @tool(task="required", **options)
    def work(task: TaskContext, text: str) -> str:
        """Work, ask and wait."""
        return text

    declared: Tool = getattr(work, DECLARATION)
    return declared


def test_a_task_may_be_kept_for_longer_than_an_execution_can_run() -> None:
    definition = json.loads(Definition.of(_function(ttl=timedelta(days=1000))).text)
    assert definition["TimeoutSeconds"] == 365 * 24 * 3600, "Step Functions' limit"


@pytest.mark.parametrize(
    ("timeout", "function", "state"), [(30, 35, 50), (1.5, 7, 22), (895, 900, 915), (900, 900, 915)]
)
@pytest.mark.parametrize("durable", [True, False])
def test_the_start_of_a_function_is_not_counted_as_its_tools_time(
    timeout: float, function: int, state: int, durable: bool
) -> None:
    """A state's timeout begins when it calls, Lambda's when the instance is ready. Lambda's comes
    first, and no run goes on after its state has given up."""
    seconds = timedelta(seconds=timeout)
    declared = _durable(timeout=seconds) if durable else _function(timeout=seconds)
    states = json.loads(Definition.of(declared).text)["States"]
    assert worker_timeout(declared) == function
    assert states["Run"]["TimeoutSeconds"] == state
    assert state - function >= 10, "Lambda's limit for the initialization of an instance"


def test_a_definition_keeps_a_shorter_limit_of_its_own(tmp_path: Path) -> None:
    flow = _workflow(tmp_path, '{"TimeoutSeconds": 60}', ttl=timedelta(hours=1))
    assert json.loads(Definition.of(flow).text)["TimeoutSeconds"] == 60


@pytest.mark.parametrize(
    ("definition", "options", "message"),
    [
        ("{", {}, r"Expecting property name"),
        ("[]", {}, r"not an Amazon States Language object"),
        (
            '{"TimeoutSeconds": 7200}',
            {"ttl": timedelta(hours=1)},
            r"TimeoutSeconds is 7200; it may be at most 3600, the tool's ttl",
        ),
        ('{"TimeoutSeconds": "1 h"}', {}, r"TimeoutSeconds is '1 h'"),
        (
            '{"Resource": "${table}"}',
            {},
            r"\$\{table\}: only \$\{worker\}, \$\{ask\}, \$\{partition\} are known",
        ),
        ('{"Resource": "${worker}"}', {}, r"\$\{worker\} runs steps, and flow declares none"),
    ],
    ids=["not JSON", "no object", "too long", "no number", "unknown placeholder", "no steps"],
)
def test_a_definition_that_cannot_be_deployed_is_refused(
    tmp_path: Path, definition: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=rf"workflow\.asl\.json: {message}"):
        Definition.of(_workflow(tmp_path, definition, **options))


def test_a_definition_calls_only_the_functions_that_it_names(tmp_path: Path) -> None:
    flow = _workflow(tmp_path, '{"Resource": "${worker}"}', steps=[_step])
    assert Definition.of(flow).placeholders == {"worker"}
    assert Definition.of(_function()).placeholders == {"worker"}
    assert Definition.of(_durable()).placeholders == {"worker", "ask", "subtasks", "partition"}


# trace context

TRACE: Final = {"traceparent": f"00-{'a' * 32}-{'b' * 16}-01"}
WORKER: Final = {"Type": "Task", "Resource": "${worker}", "Arguments": {"step": "one"}, "End": True}
INVOKE: Final = {
    "Type": "Task",
    "Resource": "arn:aws:states:::lambda:invoke",
    "Arguments": {"FunctionName": "${worker}", "Payload": {"step": "one"}},
    "End": True,
}
LANGUAGE: Final = {"QueryLanguage": "JSONata"}


def _machine(state: Mapping[str, Any], **members: Any) -> dict[str, Any]:
    return {**members, "StartAt": "S", "States": {"S": state}}


def _steps(definition: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """What each state gives to the worker."""
    for level in _levels(definition):
        for state in level["States"].values():
            arguments = state.get("Arguments", {})
            if state.get("Resource") == "${worker}":
                yield arguments
            elif isinstance(arguments, dict) and arguments.get("FunctionName") == "${worker}":
                yield arguments["Payload"]


def _tasks(definition: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The Task states of a definition, those of sub-workflows included."""
    for level in _levels(definition):
        for name, state in level["States"].items():
            if state["Type"] == "Task":
                yield name, state


def _deployed(tmp_path: Path, definition: dict[str, Any]) -> dict[str, Any]:
    flow = _workflow(tmp_path, json.dumps(definition), steps=[_step])
    deployed: dict[str, Any] = json.loads(Definition.of(flow).text)
    return deployed


def _evaluated(value: Any, variables: Mapping[str, Any] | None = None, **states: Any) -> Any:
    """An Amazon States Language value, with its expressions replaced by what they give."""
    if isinstance(value, dict):
        return {key: _evaluated(item, variables, **states) for key, item in value.items()}
    if not isinstance(value, str) or not value.startswith("{%"):
        return value
    (expression,) = expressions(value)
    parsed = jsonata.Jsonata(expression)
    parsed.assign("states", states)
    for name, variable in (variables or {}).items():
        parsed.assign(name, variable)
    return parsed.evaluate(None)


@pytest.mark.parametrize(
    "definition",
    [
        _machine(WORKER, **LANGUAGE),
        _machine(INVOKE, **LANGUAGE),
        _machine({**WORKER, **LANGUAGE}),
        _machine({**WORKER, **LANGUAGE}, QueryLanguage="JSONPath"),
        _machine({"Type": "Map", "ItemProcessor": _machine(WORKER), "End": True}, **LANGUAGE),
        _machine(
            {"Type": "Parallel", "Branches": [_machine(INVOKE), _machine(WORKER)], "End": True},
            **LANGUAGE,
        ),
        _machine(
            {
                "Type": "Map",
                "ItemProcessor": _machine(
                    {"Type": "Parallel", "Branches": [_machine(WORKER)], "End": True}
                ),
                "End": True,
            },
            **LANGUAGE,
        ),
    ],
    ids=[
        "direct",
        "invoke",
        "one state",
        "one state of JSONPath's",
        "Map",
        "Parallel",
        "both",
    ],
)
def test_a_step_gets_the_trace_context_without_its_author_s_help(
    tmp_path: Path, definition: dict[str, Any]
) -> None:
    """basic/index.mdx, "Trace Context Propagation"."""
    steps = list(_steps(_deployed(tmp_path, definition)))
    assert steps
    for arguments in steps:
        assert arguments["step"] == "one"
        assert len(list(expressions(arguments["trace"]))) == 1


@pytest.mark.parametrize(
    "definition",
    [
        _machine(WORKER),
        _machine({**INVOKE, "QueryLanguage": "JSONPath"}, **LANGUAGE),
        _machine({"Type": "Map", "ItemProcessor": _machine(WORKER), "End": True}),
        # A query language of a state is not that of the states within it.
        _machine({"Type": "Map", "ItemProcessor": _machine(WORKER), "End": True, **LANGUAGE}),
        _machine({**WORKER, "Arguments": "{% $states.input %}"}, **LANGUAGE),
        _machine({**WORKER, "Resource": "arn:aws:states:::sns:publish"}, **LANGUAGE),
        _machine({"Type": "Pass", "Output": "${worker}", "End": True}, **LANGUAGE),
    ],
    ids=["JSONPath", "one state", "Map", "of a Map", "one expression", "no worker", "no task"],
)
def test_where_a_trace_cannot_be_written_a_definition_is_left_alone(
    tmp_path: Path, definition: dict[str, Any]
) -> None:
    """In JSONPath, a path that finds nothing ends the execution."""
    deployed = _deployed(tmp_path, definition)
    assert deployed.pop("TimeoutSeconds")
    for _, state in _tasks(deployed):
        state.pop("Retry", None)
    assert deployed == definition


@pytest.mark.parametrize("state", [WORKER, INVOKE], ids=["direct", "invoke"])
def test_an_author_s_own_trace_is_kept(tmp_path: Path, state: dict[str, Any]) -> None:
    definition = _machine(json.loads(json.dumps(state)), **LANGUAGE)
    (own,) = _steps(definition)
    own["trace"] = {"traceparent": "mine"}
    assert list(_steps(_deployed(tmp_path, definition))) == [own]


# retries

ASK: Final = {
    "Type": "Task",
    "Resource": "arn:aws:states:::lambda:invoke.waitForTaskToken",
    "Arguments": {"FunctionName": "${ask}", "Payload": {"task": "t"}},
    "End": True,
}
BY_PATH: Final = {"Type": "Task", "Resource": "${worker}", "End": True}
INVOKE_BY_PATH: Final = {
    "Type": "Task",
    "Resource": "arn:aws:states:::lambda:invoke",
    "Parameters": {"FunctionName": "${worker}", "Payload.$": "$"},
    "End": True,
}
ONE_EXPRESSION: Final = {**WORKER, "Arguments": "{% $states.input %}", **LANGUAGE}


def _map(machine: dict[str, Any], key: str = "ItemProcessor") -> dict[str, Any]:
    return {"Type": "Map", key: machine, "End": True}


def _parallel(*branches: dict[str, Any]) -> dict[str, Any]:
    return {"Type": "Parallel", "Branches": list(branches), "End": True}


TRANSIENT: Final = {
    "Lambda.ClientExecutionTimeoutException",
    "Lambda.ServiceException",
    "Lambda.AWSLambdaException",
    "Lambda.SdkClientException",
    TRANSIENT_ERROR,
}
THROTTLED: Final = "Lambda.TooManyRequestsException"
MAX_HISTORY_EVENTS: Final = 25_000
EVENTS_PER_ATTEMPT: Final = 3
ASKED: Final = {
    *("Lambda.Unknown", "Sandbox.Timedout", "Runtime.ExitError", "Runtime.OutOfMemory"),
}


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize(
    "state",
    [
        {**WORKER, **LANGUAGE},
        {**INVOKE, **LANGUAGE},
        {**ASK, **LANGUAGE},
        BY_PATH,
        INVOKE_BY_PATH,
        ONE_EXPRESSION,
    ],
    ids=["direct", "invoke", "ask", "JSONPath", "JSONPath, invoke", "one expression"],
)
def test_a_call_that_lambda_did_not_take_is_repeated(
    tmp_path: Path, state: dict[str, Any], nested: bool
) -> None:
    """Step Functions developer guide, "Handle transient Lambda service exceptions"."""
    deployed = _deployed(tmp_path, _machine(_map(_machine(state)) if nested else state))
    ((_, found),) = _tasks(deployed)
    throttled, retry = found["Retry"]
    assert throttled["ErrorEquals"] == [THROTTLED]
    assert set(retry["ErrorEquals"]) - ASKED == TRANSIENT, "and no error of the tool's own"
    assert retry["JitterStrategy"] == "FULL"
    assert 3 <= retry["MaxAttempts"] <= 20
    assert retry["MaxDelaySeconds"] <= 60


@pytest.mark.parametrize(("state", "lost"), [(ASK, ASKED), (WORKER, set()), (INVOKE, set())])
def test_only_what_may_be_done_twice_is_repeated_when_its_function_was_lost(
    tmp_path: Path, state: dict[str, Any], lost: set[str]
) -> None:
    """A worker that was killed, or ran over its time, may have done half of what its tool does."""
    ((_, found),) = _tasks(_deployed(tmp_path, _machine(state, **LANGUAGE)))
    _, retry = found["Retry"]
    assert set(retry["ErrorEquals"]) & ASKED == lost


def _matching(state: Mapping[str, Any], error: str) -> dict[str, Any] | None:
    """The retrier that an error falls under: the first that names it, or all errors."""
    for retrier in state.get("Retry", ()):
        if {error, "States.ALL", "States.TaskFailed"} & set(retrier["ErrorEquals"]):
            found: dict[str, Any] = retrier
            return found
    return None


@pytest.mark.parametrize(
    "own",
    [
        [{"ErrorEquals": ["Mine"], "MaxAttempts": 2}],
        [{"ErrorEquals": ["Lambda.ServiceException"], "MaxAttempts": 0}],
        [{"ErrorEquals": ["Mine", "States.Timeout"]}, {"ErrorEquals": sorted(TRANSIENT)[1:]}],
    ],
    ids=["of the tool's", "of Lambda's", "all but one"],
)
def test_what_an_author_s_retries_leave_out_is_added_behind_them(
    tmp_path: Path, own: list[dict[str, Any]]
) -> None:
    """Else a step whose author thought of one error would end at a throttle of S3."""
    deployed = _deployed(tmp_path, _machine({**WORKER, "Retry": own}, **LANGUAGE))
    _, *retries = deployed["States"]["S"]["Retry"]
    assert retries[: len(own)] == own
    (added,) = retries[len(own) :]
    named = {error for retrier in own for error in retrier["ErrorEquals"]}
    assert set(added["ErrorEquals"]) == TRANSIENT - named


@pytest.mark.parametrize(
    "own",
    [
        [],
        [{"ErrorEquals": ["States.ALL"], "MaxAttempts": 0}],
        [{"ErrorEquals": ["Mine"]}, {"ErrorEquals": ["States.TaskFailed"]}],
        [{"ErrorEquals": sorted(TRANSIENT)}],
    ],
    ids=["none", "all", "all but time", "each"],
)
def test_retries_that_say_all_are_kept_as_they_are(
    tmp_path: Path, own: list[dict[str, Any]]
) -> None:
    """Amazon States Language, "Retrying after error": States.ALL has to be the last."""
    deployed = _deployed(tmp_path, _machine({**WORKER, "Retry": own}, **LANGUAGE))
    retries = deployed["States"]["S"]["Retry"]
    assert [retry for retry in retries if retry["ErrorEquals"] != [THROTTLED]] == own


# calls that find no free instance


@pytest.mark.parametrize(
    "own",
    [
        None,
        [{"ErrorEquals": ["Mine"]}],
        [{"ErrorEquals": ["States.ALL"], "MaxAttempts": 2}],
        [{"ErrorEquals": ["States.TaskFailed"], "MaxAttempts": 0}],
    ],
    ids=str,
)
@pytest.mark.parametrize("state", [WORKER, INVOKE, ASK], ids=["direct", "invoke", "ask"])
def test_a_call_that_found_no_instance_is_repeated_before_an_author_s_retries_count(
    tmp_path: Path, state: dict[str, Any], own: list[dict[str, Any]] | None
) -> None:
    """It has not run: a tool at its `max_concurrency` does not use up the author's attempts."""
    given = state if own is None else {**state, "Retry": own}
    found = _deployed(tmp_path, _machine(given, **LANGUAGE))["States"]["S"]
    retry = _matching(found, THROTTLED)
    assert retry is not None
    assert retry["ErrorEquals"] == [THROTTLED]


@pytest.mark.parametrize("own", [[], [{"ErrorEquals": [THROTTLED], "MaxAttempts": 1}]], ids=str)
def test_an_author_may_let_a_task_fail_that_finds_no_instance(
    tmp_path: Path, own: list[dict[str, Any]]
) -> None:
    found = _deployed(tmp_path, _machine({**WORKER, "Retry": own}, **LANGUAGE))["States"]["S"]
    assert [r for r in found["Retry"] if THROTTLED in r["ErrorEquals"]] == own


@pytest.mark.parametrize("days", [1 / 24, 1, 30, 365])
def test_a_task_waits_for_an_instance_as_long_as_it_lives(days: float) -> None:
    """Amazon States Language, "Retrying after error", with full jitter. Its history has room."""
    ttl = timedelta(days=days)
    run = json.loads(Definition.of(_function(ttl=ttl)).text)["States"]["Run"]
    retry = _matching(run, THROTTLED)
    assert retry is not None
    chance = random.Random(1)
    for _ in range(20):
        waited, attempts = 0.0, 0
        while waited < ttl.total_seconds():
            delay = retry["IntervalSeconds"] * retry["BackoffRate"] ** min(attempts, 30)
            waited += chance.uniform(0, min(delay, retry["MaxDelaySeconds"]))
            attempts += 1
        assert attempts < retry["MaxAttempts"]
        assert attempts * EVENTS_PER_ATTEMPT < MAX_HISTORY_EVENTS * 0.6
    assert retry["MaxDelaySeconds"] <= ttl.total_seconds() / 30


def test_a_limit_of_a_worker_that_there_is_not_is_refused(tmp_path: Path) -> None:
    flow = _workflow(
        tmp_path, json.dumps(_machine({"Type": "Pass", "End": True})), max_concurrency=2
    )
    with pytest.raises(ValueError, match=r"max_concurrency limits .*worker.*, which no state"):
        Definition.of(flow)


def test_every_call_of_a_deployment_is_repeated(on_aws: Assembly, fork: Assembly) -> None:
    for path, machine in _machines(on_aws, fork):
        for name, state in _tasks(json.loads(machine["DefinitionString"])):
            missing = {error for error in TRANSIENT | {THROTTLED} if not _matching(state, error)}
            assert not missing, f"{path}: {name}"


@pytest.mark.parametrize(
    "state",
    [
        {"Type": "Task", "Resource": "arn:aws:states:::sns:publish", "End": True},
        {"Type": "Pass", "Parameters": {"FunctionName": "${worker}"}, "End": True},
        {"Type": "Wait", "Seconds": 1, "End": True},
    ],
    ids=lambda state: state["Type"],
)
def test_a_state_that_calls_neither_function_is_left_alone(
    tmp_path: Path, state: dict[str, Any]
) -> None:
    assert _deployed(tmp_path, _machine(state))["States"] == {"S": state}


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("name", ["HeartbeatSeconds", "HeartbeatSecondsPath"])
def test_a_state_that_asks_has_no_heartbeats_of_its_own(
    tmp_path: Path, name: str, nested: bool
) -> None:
    """The server sends some, to see whether it still waits: they would decide when it ends."""
    branch = {"StartAt": "Ask them", "States": {"Ask them": {**ASK, **LANGUAGE, name: 9}}}
    refusal = r"workflow\.asl\.json: Ask them: .*HeartbeatSeconds.*TimeoutSeconds"
    with pytest.raises(ValueError, match=refusal):
        _deployed(tmp_path, _machine(_parallel(branch)) if nested else branch)


def test_a_step_may_have_heartbeats(tmp_path: Path) -> None:
    deployed = _deployed(tmp_path, _machine({**WORKER, "HeartbeatSeconds": 9}, **LANGUAGE))
    assert deployed["States"]["S"]["HeartbeatSeconds"] == 9


# how large an output may be


@pytest.mark.parametrize(
    ("state", "limit"),
    [
        (WORKER, None),
        (_map(_machine(WORKER)), MAX_MAP_OUTPUT_BYTES),
        (_map(_machine(INVOKE)), MAX_MAP_OUTPUT_BYTES),
        (_parallel(*[_machine(WORKER)] * 3), None),
        (_parallel(*[_machine(WORKER)] * 4), MAX_COMBINED_OUTPUT_BYTES // 4),
        (_parallel(*[_machine(WORKER)] * 40), MAX_COMBINED_OUTPUT_BYTES // 40),
        (_map(_machine(_parallel(*[_machine(WORKER)] * 2))), MAX_MAP_OUTPUT_BYTES // 2),
        (_map(_machine(_parallel(*[_machine(WORKER)] * 40))), MIN_OUTPUT_BYTES),
        (_parallel(*[_machine(_map(_machine(WORKER)))] * 2), MAX_MAP_OUTPUT_BYTES),
        (_map(_machine({**WORKER, "Arguments": {"step": "one", "max_output_bytes": 7}})), 7),
    ],
    ids=[
        *("top", "Map", "Map, invoke", "3 branches", "4 branches", "40 branches"),
        *("branches in a Map", "40 branches in a Map", "Maps in branches", "own"),
    ],
)
def test_outputs_that_are_put_together_have_a_limit_each(
    tmp_path: Path, state: dict[str, Any], limit: int | None
) -> None:
    """Step Functions carries 256 KiB (developer guide, "Quotas")."""
    steps = list(_steps(_deployed(tmp_path, _machine(state, **LANGUAGE))))
    assert steps
    assert [arguments.get("max_output_bytes") for arguments in steps] == [limit] * len(steps)


@pytest.mark.parametrize(
    ("state", "limit"),
    [
        (ASK, None),
        (_map(_machine(ASK)), MAX_MAP_OUTPUT_BYTES),
        (_parallel(*[_machine(ASK)] * 2), None),
        (_parallel(*[_machine(ASK)] * 3), MAX_COMBINED_OUTPUT_BYTES // 3),
        (_map(_machine(_parallel(*[_machine(ASK)] * 40))), MIN_OUTPUT_BYTES),
    ],
    ids=["top", "Map", "2 branches", "3 branches", "40 branches in a Map"],
)
def test_answers_that_are_put_together_have_a_limit_each(
    tmp_path: Path, state: dict[str, Any], limit: int | None
) -> None:
    """Each branch, or iteration, may be answered as much as a task may hold at a time."""
    for _, found in _tasks(_deployed(tmp_path, _machine(state, **LANGUAGE))):
        payload = found["Arguments"]["Payload"]
        assert payload.get("max_output_bytes") == limit
        assert "trace" not in payload


@pytest.mark.parametrize("key", ["ItemProcessor", "Iterator"])
def test_a_jsonpath_step_in_a_map_has_its_limit_too(tmp_path: Path, key: str) -> None:
    """A number is no path that could find nothing."""
    state = {**BY_PATH, "Parameters": {"step": "one"}}
    ((_, found),) = _tasks(_deployed(tmp_path, _machine(_map(_machine(state), key))))
    assert found["Parameters"] == {"step": "one", "max_output_bytes": MAX_MAP_OUTPUT_BYTES}


@pytest.mark.parametrize(
    "state",
    [
        BY_PATH,
        INVOKE_BY_PATH,
        {**BY_PATH, "Parameters": {"max_output_bytes.$": "$.max_output_bytes"}},
        ONE_EXPRESSION,
    ],
    ids=["the state's input", "a path", "own", "one expression"],
)
def test_where_a_limit_cannot_be_written_an_event_is_left_alone(
    tmp_path: Path, state: dict[str, Any]
) -> None:
    ((_, found),) = _tasks(_deployed(tmp_path, _machine(_map(_machine(state)))))
    assert found.pop("Retry")
    assert found == state


def test_a_limit_is_enough_for_a_pointer() -> None:
    owner = payload_prefix("t" * 64, f"{'c' * 16}-{'0' * 32}")
    pointer = PayloadPointer(f"{owner}/{'f' * 32}", MAX_OBJECT_BYTES, MAX_OBJECT_BYTES).as_json()
    assert (
        json_size(pointer)
        < MIN_OUTPUT_BYTES
        < MAX_MAP_OUTPUT_BYTES
        < MAX_STEP_OUTPUT_BYTES
        < MAX_COMBINED_OUTPUT_BYTES
        < 256 * 1024
    )


@pytest.mark.parametrize(
    ("execution_input", "trace"),
    [
        ({"text": "a", "_meta": TRACE}, TRACE),
        ({"text": "a"}, {}),
        ({"text": "a", "_meta": {**TRACE, "answers": {"sure": {"action": "accept"}}}}, TRACE),
        ({"text": "a", "_meta": {"answers": {"sure": {"action": "accept"}}}}, {}),
    ],
    ids=["a trace", "none", "a trace and answers", "answers alone"],
)
def test_a_step_s_trace_is_the_call_s(
    tmp_path: Path, execution_input: dict[str, Any], trace: dict[str, Any]
) -> None:
    (arguments,) = _steps(_deployed(tmp_path, _machine(WORKER, **LANGUAGE)))
    found = _evaluated(arguments["trace"], context={"Execution": {"Input": execution_input}})
    assert found == trace, "and no answers: each step would be given all of them"


def test_every_step_of_a_deployment_gets_the_trace_context(
    on_aws: Assembly, fork: Assembly
) -> None:
    for path, machine in _machines(on_aws, fork):
        steps = list(_steps(json.loads(machine["DefinitionString"])))
        assert steps, path
        for arguments in steps:
            assert len(list(expressions(arguments["trace"]))) == 1, path


@pytest.mark.parametrize(
    "execution_input",
    [
        {"arguments": {}, "answers": {}, "client_can": [], "trace": {}},
        {
            "arguments": {"texts": ["one"], "n": 0, "nothing": None},
            "answers": {"sure": {"action": "accept", "content": {"sure": True}}},
            "client_can": ["form"],
            "trace": TRACE,
        },
    ],
    ids=["empty", "full"],
)
def test_a_function_s_worker_gets_what_the_call_held(execution_input: dict[str, Any]) -> None:
    """Lists of one item stay lists, and what is empty stays there: JSONata likes to drop both."""
    states = json.loads(Definition.of(_durable()).text)["States"]
    execution = {"Name": "c1-0", "Input": execution_input}
    context = {"Execution": execution, "State": {"RetryCount": 2}}
    held = {
        "task": "c1-0",
        "input": execution_input["arguments"],
        "client_can": execution_input["client_can"],
        "trace": execution_input["trace"],
        "calls": True,
    }
    answers = {"answers": execution_input["answers"], "earlier_answers": {}}
    event = _evaluated(states["Run"]["Arguments"], {}, input=execution_input, context=context)
    assert event == {**held, **answers, "undo": False, "retries": 2}
    assigned = _evaluated(states["Run"]["Assign"], {}, context=context, result={"result": {}})
    begun = {**answers, "events": 0, "journal": False, "crashes": 0}
    assert assigned == begun
    again = _evaluated(states["Run again"]["Arguments"], begun, input={}, context=context)
    del begun["crashes"]
    assert again == {**held, **begun, "undo": False, "retries": 2, "crash": None, "killed_lanes": 0}


@pytest.mark.parametrize("name", ["c1-0", "c1-0-2", "c1-0-undo"])
def test_a_worker_is_told_the_task_whatever_its_execution_is_called(name: str) -> None:
    states = json.loads(Definition.of(_durable()).text)["States"]
    given = {"arguments": {}, "answers": {}, "client_can": [], "trace": {}, "undo": True}
    context = {"Execution": {"Name": name, "Input": given}, "State": {}}
    event = _evaluated(states["Run"]["Arguments"], {}, input={}, context=context)
    assert (event["task"], event["undo"], event["retries"]) == ("c1-0", True, 0)


def test_a_function_without_a_context_is_one_state() -> None:
    """Each state that is entered is a transition, which Step Functions bills."""
    definition = json.loads(Definition.of(_function()).text)
    (run,) = definition["States"].values()
    assert run["End"]
    assert _evaluated({"out": run["Output"]}, {}, result={"result": {"content": []}}) == {
        "out": {"content": []}
    }


def test_a_run_that_was_killed_is_repeated_and_the_worker_is_told() -> None:
    states = json.loads(Definition.of(_durable()).text)["States"]
    given: dict[str, Any] = {"arguments": {}, "answers": {}, "client_can": [], "trace": {}}
    context = {"Execution": {"Name": "c1-0", "Input": given}, "State": {}}
    (caught,) = states["Run"]["Catch"]
    variables = _evaluated(caught["Assign"], {}, context=context)
    waited = states[caught["Next"]]
    told = _evaluated(waited["Output"], {}, input={"Error": "States.Timeout"}, context=context)
    event = _evaluated(states[waited["Next"]]["Arguments"], variables, input=told, context=context)
    assert event["crash"] == {"error": "States.Timeout", "cause": "", "count": 1}
    assert "ToolError" not in caught["ErrorEquals"]


def test_lanes_leave_room_in_the_history() -> None:
    """All attempts of one run, or of 40 lanes at once, after 9,000 events (`run_event`)."""
    text = Definition.of(_durable()).text
    states = json.loads(text)["States"]
    lane = states["Map"]["ItemProcessor"]["States"]["Run lane"]
    attempts = sum(retrier["MaxAttempts"] for retrier in lane["Retry"])
    assert MAX_EVENTS + 3 * 40 * attempts + 40 * LANE_EVENTS < 25_000
    attempts = sum(retrier["MaxAttempts"] for retrier in states["Run again"]["Retry"])
    assert MAX_EVENTS + 3 * attempts + RUN_EVENTS < 25_000
    assert states["Map"]["MaxConcurrency"] == MAX_LANES


def test_the_worker_is_told_how_many_lanes_of_a_map_were_killed() -> None:
    states = json.loads(Definition.of(_durable()).text)["States"]
    lane = states["Map"]["ItemProcessor"]["States"]["Run lane"]
    killed, throttled = (caught["Output"] for caught in lane["Catch"])
    told = _evaluated(states["Map"]["Output"], {}, result=[killed, lane["Output"], throttled])
    expression = states["Run again"]["Arguments"]["killed_lanes"]
    assert _evaluated(expression, {}, input=told) == 1


def test_every_run_of_a_function_has_the_tools_time() -> None:
    states = json.loads(Definition.of(_durable()).text)["States"]
    runs = [states["Run"], states["Run again"]]
    runs.append(states["Map"]["ItemProcessor"]["States"]["Run lane"])
    assert [state["TimeoutSeconds"] for state in runs] == [80, 80, 80]


@pytest.mark.parametrize(
    ("returned", "next_run"),
    [
        ({}, {"answers": {"a": 1, "b": 2}, "earlier_answers": {"pointer": "to 0"}}),
        (
            {"earlier_answers": {"pointer": "to a"}},
            {"answers": {"b": 2}, "earlier_answers": {"pointer": "to a"}},
        ),
    ],
    ids=["few", "many"],
)
def test_a_function_s_next_run_gets_the_new_answers_and_those_before(
    returned: dict[str, Any], next_run: dict[str, Any]
) -> None:
    """What its worker has stored is carried as a pointer, and not beside it."""
    states = json.loads(Definition.of(_durable()).text)["States"]
    variables = {"answers": {"a": 1}, "earlier_answers": {"pointer": "to 0"}}
    variables |= {"events": 0, "journal": False}
    run = _evaluated(states["Run again"]["Assign"], variables, result={"ask": {}, **returned})
    asked = _evaluated(states["Ask"]["Assign"], run, input={"ask": {}}, result={"b": 2})
    assert {**run, **asked} == {**variables, **next_run, "crashes": 0}


def test_what_a_function_s_run_is_given_is_not_too_much() -> None:
    """Arguments, the answers since the last that were stored, and all that one state may get."""
    assert (
        MAX_INLINE_INPUT_BYTES + MAX_INLINE_ANSWERS_BYTES + MAX_ANSWERS_CHARACTERS
        < 0.95 * 256 * 1024
    )
    (ask,) = [
        state["Arguments"]["Payload"]
        for name, state in _tasks(json.loads(Definition.of(_durable()).text))
        if name == "Ask"
    ]
    assert "max_output_bytes" not in ask, "an object has to stay one, for $merge"


def test_jsonata_s_braces_are_no_placeholders(tmp_path: Path) -> None:
    flow = _workflow(tmp_path, """{"Output": "{% ${name: value} %}"}""")
    assert Definition.of(flow).placeholders == set()
