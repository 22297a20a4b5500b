"""State machines as tools: what clients are offered, and which declarations are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest
from pydantic import BaseModel, ConfigDict

from mcp_tasks import TaskContext, workflow_tool
from mcp_tasks.registry.schema import InvalidArguments
from mcp_tasks.registry.workflow_tool import WorkflowTool

HERE: Final = Path(__file__)
ARN: Final = "arn:aws:states:us-east-1:123456789012:stateMachine:own"
KEY: Final = "arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"


class Arguments(BaseModel):
    a: int


def a_workflow(**options: Any) -> WorkflowTool:
    given = {"description": "Flow.", "arguments": Arguments, "definition": HERE, **options}
    return workflow_tool(given.pop("name", "flow"), **given)


def step(task: TaskContext, a: int) -> int:
    return a


def test_a_workflow_always_runs_as_a_task() -> None:
    assert a_workflow().task_support == "required"


def test_a_workflows_definition_comes_from_its_declaration() -> None:
    flow = a_workflow(
        title="Flow", description="\n    Two\n    lines.\n    ", result=int, steps=[step]
    )
    definition = flow.definition()
    assert definition["description"] == "Two\nlines."
    assert definition["title"] == "Flow"
    assert definition["inputSchema"]["required"] == ["a"]
    assert definition["outputSchema"] == {"type": "integer"}
    assert list(flow.steps) == ["step"]


def test_a_misspelt_argument_of_a_workflow_is_an_error() -> None:
    with pytest.raises(InvalidArguments, match="b:"):
        a_workflow().check_arguments({"a": 1, "b": 2})


def test_a_model_that_allows_other_fields_still_does() -> None:
    class Open(BaseModel):
        model_config = ConfigDict(extra="allow")
        a: int

    assert a_workflow(arguments=Open).check_arguments({"a": 1, "b": 2})["a"] == 1


def test_a_step_converts_its_input_and_its_output() -> None:
    flow = a_workflow(steps=[step])
    assert flow.steps["step"].call({"a": 5}, TaskContext()) == 5
    with pytest.raises(InvalidArguments, match="a:"):
        flow.steps["step"].call({"a": "5"}, TaskContext())


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"definition": None}, "definition file or a state machine's ARN"),
        ({"state_machine_arn": ARN}, "definition file or a state machine's ARN"),
        ({"definition": HERE.with_name("nowhere.json")}, "there is no file .*nowhere.json"),
        ({"definition": HERE.parent}, "there is no file"),
        ({"definition": None, "state_machine_arn": ARN, "steps": [step]}, "takes neither steps"),
        ({"definition": None, "state_machine_arn": ARN, "max_concurrency": 2}, "max_concurrency"),
        ({"description": ""}, "docstring"),
        ({"name": "a b"}, "A-Z"),
        ({"definition": None, "state_machine_arn": "own"}, "ARN"),
        ({"kms_key_arn": KEY}, "kms_key_arn is of a state machine that exists already"),
        (
            {"definition": None, "state_machine_arn": ARN, "kms_key_arn": "alias/orders"},
            "'alias/orders' is not the ARN of a KMS key",
        ),
        # Executions and events have the ARN without a version, which would differ from the task's.
        ({"definition": None, "state_machine_arn": f"{ARN}:PROD"}, "ARN"),
    ],
)
def test_a_workflow_that_cannot_be_deployed_says_why(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        a_workflow(**options)


def test_two_steps_of_one_name_are_refused() -> None:
    """The second would silently replace the first."""

    def other() -> int:
        return 1

    other.__name__ = "step"
    with pytest.raises(ValueError, match="step"):
        a_workflow(steps=[step, other])


# steps at once


@pytest.mark.parametrize(
    ("definition", "sequential"),
    [
        ('{"States": {"A": {"Type": "Task"}, "Map": {"Type": "Choice"}}}', True),
        ('{"States": {"A": {"Type": "Parallel", "Branches": []}}}', False),
        ('{"States": {"A": {"Type" :\n "Map"}}}', False),
        ('{"States": {"A": {"Arguments": {"FunctionName": "${ask}"}}}}', True),
        ('{"States": {"A": {"Resource": "${worker}", "Catch": []}}}', True),
        ('{"States": {"A": {"Arguments": {"FunctionName": "${ask}"}, "Catch": []}}}', False),
        ("{", False),
    ],
)
def test_a_workflow_runs_one_step_at_a_time_and_none_while_it_asks(
    tmp_path: Path, definition: str, sequential: bool
) -> None:
    file = tmp_path / "workflow.asl.json"
    file.write_text(definition)
    assert a_workflow(definition=file).sequential is sequential


def test_what_an_existing_state_machine_runs_at_once_is_unknown() -> None:
    assert not a_workflow(definition=None, state_machine_arn=ARN).sequential
