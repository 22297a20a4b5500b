"""An update keeps what deployed stacks have: data, addresses, and what running executions call.

`deployed_resources.json` began with the resources of version 0.3.0. A task may run for
`max_ttl_days`, and its execution keeps the definition and the role that it began with (Step
Functions API reference, "UpdateStateMachine"): functions and role have to be there until it ends.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from cfnlint.schema import PROVIDER_SCHEMA_MANAGER

from operations.preflight.replaced_resources import FIXED
from tests.infra.assembly import Assembly
from tests.infra.deployed_resources import FILE, kept

Resources = dict[str, dict[str, Any]]
KEEP = """\
An update of a deployed stack would replace or remove these. Data would be lost, and executions that
run now would call what is gone. Leave each construct at its path, from which its id follows, or set
the id by override_logical_id. If one has to go: add the new one beside it, and release that. Remove
the old one, with its entry in deployed_resources.json, in a release after max_ttl_days, with a line
under "For a fork" in CHANGELOG.md.
"""
ADD = "Add them: python -m tests.infra.deployed_resources cdk.out/STACK.template.json"


@pytest.fixture
def deployed() -> Resources:
    """What deployed stacks have."""
    found: Resources = json.loads(FILE.read_text())
    return found


@pytest.fixture
def today(with_own_key: Assembly, on_aws: Assembly) -> Resources:
    """What the templates have, of all options together."""
    return kept(with_own_key.template) | kept(on_aws.template)


def test_nothing_that_is_deployed_is_replaced_or_removed(
    deployed: Resources, today: Resources
) -> None:
    lost = {path: each for path, each in deployed.items() if today.get(path) != each}
    assert not lost, f"{KEEP}{json.dumps(lost, indent=1)}"


def test_what_is_new_is_kept_from_now_on(deployed: Resources, today: Resources) -> None:
    assert not (today.keys() - deployed.keys()), ADD


def test_what_running_executions_need_is_among_it(deployed: Resources) -> None:
    """For each tool a worker, its role, the state machine and its role; `ask` and `subtasks`."""
    for path in ("Ask", "Subtasks", "Tools/estimate_savings/Worker"):
        assert deployed[f"{path}/Function/Resource"]["Type"] == "AWS::Lambda::Function"
        assert deployed[f"{path}/Role/Resource"]["Type"] == "AWS::IAM::Role"
    tool = "Tools/estimate_savings"
    assert deployed[f"{tool}/StateMachineRole/Resource"]["Type"] == "AWS::IAM::Role"
    assert deployed[f"{tool}/StateMachine/Resource"]["Properties"] == {
        "StateMachineName": "mcp-tasks-estimate_savings",
        "StateMachineType": "STANDARD",
    }


def test_what_holds_data_is_among_it(deployed: Resources) -> None:
    types = [each["Type"] for each in deployed.values()]
    assert types.count("AWS::DynamoDB::Table") == 5
    for kind in ("AWS::S3::Bucket", "AWS::Events::EventBus", "AWS::KMS::Key"):
        assert types.count(kind) == 1


def test_a_tool_s_ids_follow_from_its_name_and_not_from_its_kind(
    fork: Assembly, deployed: Resources
) -> None:
    """A function that becomes a workflow keeps its worker, its state machine and their roles."""
    function, workflow = (
        {
            path.removeprefix(f"Tools/{tool}/"): each["Type"]
            for path, each in resources.items()
            if path.startswith(f"Tools/{tool}/")
        }
        for tool, resources in (("estimate_savings", deployed), ("report", kept(fork.template)))
    )
    assert function == workflow


@pytest.mark.parametrize("kind", FIXED)
def test_the_properties_that_replace_a_resource_are_those_of_cloudformation(kind: str) -> None:
    """By the schemas of the resource types, as cfn-lint has them."""
    schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-1", kind).schema
    names = [
        pointer.removeprefix("/properties/")
        for key in ("createOnlyProperties", "conditionalCreateOnlyProperties")
        for pointer in schema.get(key, [])
    ]
    assert sorted(FIXED[kind]) == sorted(names)
