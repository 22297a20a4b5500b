"""The state machines' definitions: complete, valid, and never outliving their tasks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import jsonata
import pytest
from moto.stepfunctions.parser.asl.parse.asl_parser import AmazonStateLanguageParser
from pydantic import BaseModel

from infra.definition import Definition, worker_timeout
from mcp_tasks import tool, workflow_tool
from mcp_tasks.registry.tool import DECLARATION, Tool
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
        for inner in (*state.get("Branches", ()), *filter(None, [state.get("ItemProcessor")])):
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
        AmazonStateLanguageParser.parse(PLACEHOLDER.sub(arn, machine["DefinitionString"]))


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
        "mcp-tasks-profile_dataset": 12 * hour,
        "mcp-tasks-simulate_savings": hour,
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


def test_a_task_may_be_kept_for_longer_than_an_execution_can_run() -> None:
    definition = json.loads(Definition.of(_function(ttl=timedelta(days=1000))).text)
    assert definition["TimeoutSeconds"] == 365 * 24 * 3600, "Step Functions' limit"


def test_the_run_state_gives_up_before_the_worker_is_stopped() -> None:
    """So that the task's error names the timeout."""
    declared = _function(timeout=timedelta(seconds=30))
    run = json.loads(Definition.of(declared).text)["States"]["Run"]
    assert run["TimeoutSeconds"] == 30
    assert worker_timeout(declared) == 35


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
            r"\$\{table\}: only \$\{worker\} and \$\{ask\} are known",
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
    assert Definition.of(_function()).placeholders == {"worker", "ask"}


def test_jsonata_s_braces_are_no_placeholders(tmp_path: Path) -> None:
    flow = _workflow(tmp_path, """{"Output": "{% ${name: value} %}"}""")
    assert Definition.of(flow).placeholders == set()
