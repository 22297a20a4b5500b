"""The stack can be deployed to every partition of AWS: nothing of it says `arn:aws:`."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from tests.infra.assembly import Assembly
from tests.paths import ROOT

HARD_CODED: Final = "arn:aws:"


@pytest.mark.parametrize("folder", ["functions", "infra"])
def test_no_state_machine_names_a_partition(folder: str) -> None:
    files = [file for file in (ROOT / folder).rglob("*.asl.json") if "cdk.out" not in file.parts]
    assert files
    assert [str(file) for file in files if HARD_CODED in file.read_text(encoding="utf-8")] == []


def test_no_tool_names_a_partition() -> None:
    files = list((ROOT / "functions" / "tools").rglob("*.py"))
    assert files
    assert [str(file) for file in files if HARD_CODED in file.read_text(encoding="utf-8")] == []


def _texts(value: Any) -> list[str]:
    match value:
        case dict():
            return [text for item in value.values() for text in _texts(item)]
        case list():
            return [text for item in value for text in _texts(item)]
        case str():
            return [value]
        case _:
            return []


def test_no_template_names_a_partition(
    on_aws: Assembly, behind_a_domain: Assembly, streaming: Assembly
) -> None:
    """The platform's own part of it. The tools of the tests have a definition that does."""
    for assembly in (on_aws, behind_a_domain, streaming):
        resources = {
            name: resource
            for name, resource in assembly.template["Resources"].items()
            if "tally_columns" not in json.dumps(resource.get("Metadata", {}))
        }
        assert len(resources) > 50
        assert [text for text in _texts(resources) if HARD_CODED in text] == []


def test_a_definition_gets_the_partition_that_it_is_deployed_to(on_aws: Assembly) -> None:
    machine = on_aws.resources("AWS::StepFunctions::StateMachine")
    durable = [each for each in machine.values() if "subtasks" in each["DefinitionSubstitutions"]]
    assert durable
    for each in durable:
        assert each["DefinitionSubstitutions"]["partition"] == "<AWS::Partition>"
        assert (
            "arn:${partition}:states:::lambda:invoke.waitForTaskToken" in each["DefinitionString"]
        )
