"""Would running executions lose a function, their role or one of its permissions?

"Running executions will continue to use the previous definition and roleArn" (Step Functions API
reference, "UpdateStateMachine"). They call the functions that the previous definition names, with
what the role may do at that moment: a worker that the new definition does not call any more is
gone for them as well.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ..running_executions import STATE_MACHINE
from .check import Check, Finding
from .deployment import Deployment
from .replaced_resources import stays

NEEDED: Final = ("AWS::IAM::Role", "AWS::Lambda::Alias", "AWS::Lambda::Function")
WORD: Final = "running"

Template = Mapping[str, Any]


def references(value: Any) -> Iterator[str]:
    """The logical ids that a value refers to."""
    match value:
        case {"Ref": str(name)} | {"Fn::GetAtt": [str(name), *_]}:
            yield name
        case dict():
            for item in value.values():
                yield from references(item)
        case list():
            for item in value:
                yield from references(item)


def permissions(template: Template, role: str) -> set[str]:
    """What a role may do: each action on each resource, with its conditions.

    Without what it may do with keys, which change with `encryption` (`kept_choices.py`).
    """
    return {
        json.dumps([action, resource, statement.get("Condition")], sort_keys=True)
        for policy in template["Resources"].values()
        if policy["Type"] == "AWS::IAM::Policy"
        and role in references(policy["Properties"].get("Roles", []))
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        for action in _list(statement["Action"])
        if not action.startswith("kms:")
        for resource in _list(statement["Resource"])
    }


def losses(before: Template, after: Template, machine: str) -> Iterator[str]:
    """What the running executions of a state machine would lose, each in words."""
    for name in sorted({*references(before["Resources"][machine]["Properties"])}):
        resource = before["Resources"].get(name)
        if resource is None or resource["Type"] not in NEEDED:
            continue
        if not stays(name, before, after):
            yield f"{resource['Type']} {name}"
        elif resource["Type"] == "AWS::IAM::Role":
            missing = permissions(before, name) - permissions(after, name)
            yield from sorted(f"{json.loads(each)[0]} of the role {name}" for each in missing)


def find(deployment: Deployment) -> Finding:
    """Compare what the deployed definitions need with what the template leaves them."""
    before, after = deployment.deployed, deployment.template
    found: dict[str, list[str]] = {}
    for name, resource in before.get("Resources", {}).items():
        # Tools that go are another check's.
        if resource["Type"] == STATE_MACHINE and stays(name, before, after):
            lost = list(losses(before, after, name))
            if lost and _running(deployment, name):
                found[resource["Properties"].get("StateMachineName", name)] = lost
    if not found or WORD in deployment.changes:
        return Finding(f"interrupted, as told: executions of {', '.join(found)}" if found else "")
    return Finding(_refusal(found), refused=True)


def _running(deployment: Deployment, machine: str) -> bool:
    arn = deployment.resource(machine)["PhysicalResourceId"]
    found = deployment.client("stepfunctions").list_executions(
        stateMachineArn=arn, statusFilter="RUNNING", maxResults=1
    )
    return bool(found["executions"])


def _refusal(found: Mapping[str, list[str]]) -> str:
    lines = "\n".join(
        f"    {machine}\n" + "\n".join(f"        {each}" for each in lost)
        for machine, lost in found.items()
    )
    return (
        "executions run that keep their definition and their role, and would lose what these "
        f"need:\n{lines}\n\n"
        "Deploy when they have ended, at the latest after the tool's ttl; or give the changed tool "
        "another name,\nand remove the old one later. To let them fail, add "
        f"change={WORD}."
    )


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


CHECK: Final = Check(
    "running executions keep their functions and permissions", find, changes=frozenset({WORD})
)
