"""A Distributed Map is refused, wherever it is: its steps would not be the task's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest
from pydantic import BaseModel

from infra.state_machine_definition import Definition
from mcp_tasks import workflow_tool

PASS: Final = {"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}}
DISTRIBUTED: Final = {"ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}}
INLINE: Final = {"ProcessorConfig": {"Mode": "INLINE"}}


class Arguments(BaseModel):
    """What the tools below take."""

    text: str


def _machine(state: dict[str, Any]) -> dict[str, Any]:
    return {"StartAt": "Outer", "States": {"Outer": state}}


def _map(processor: dict[str, Any], key: str = "ItemProcessor") -> dict[str, Any]:
    return {"Type": "Map", key: processor, "End": True}


INNER: Final = {"StartAt": "Each", "States": {"Each": _map({**DISTRIBUTED, **PASS})}}


def _definition_of(tmp_path: Path, machine: dict[str, Any]) -> Definition:
    file = tmp_path / "workflow.asl.json"
    file.write_text(json.dumps(machine))
    flow = workflow_tool("flow", description="Flows.", arguments=Arguments, definition=file)
    return Definition.of(flow)


@pytest.mark.parametrize(
    ("machine", "name"),
    [
        (_machine(_map({**DISTRIBUTED, **PASS})), "Outer"),
        (_machine(_map({**DISTRIBUTED, **PASS}, "Iterator")), "Outer"),
        (_machine(_map({**INLINE, **INNER})), "Each"),
        (_machine({"Type": "Parallel", "Branches": [PASS, INNER], "End": True}), "Each"),
    ],
    ids=["outermost", "Iterator", "in a Map", "in a branch"],
)
def test_a_distributed_map_is_refused_at_any_depth(
    tmp_path: Path, machine: dict[str, Any], name: str
) -> None:
    says = rf"workflow\.asl\.json: {name}: a Distributed Map .* Use the mode INLINE"
    with pytest.raises(ValueError, match=says):
        _definition_of(tmp_path, machine)


@pytest.mark.parametrize(
    "state",
    [
        _map({**INLINE, **PASS}),
        _map(PASS, "Iterator"),
        {"Type": "Pass", "Output": {"ItemProcessor": DISTRIBUTED}, "End": True},
    ],
    ids=["INLINE", "no mode", "data"],
)
def test_other_states_are_not(tmp_path: Path, state: dict[str, Any]) -> None:
    assert _definition_of(tmp_path, _machine(state)).text
