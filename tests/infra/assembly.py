"""What a synthesis left behind, to be read by tests: the template, with readable references."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

from mcp_tasks.registry.catalogue import ToolEntry

Grants = dict[str, set[str]]
"""Resource -> actions. A resource of a condition is `<Key.Arn> where kms:ViaService = sqs...`."""


@dataclass(frozen=True)
class Assembly:
    """A cloud assembly of one stack."""

    folder: Path
    stack: str
    error: str | None
    accepted: list[list[str]]

    @property
    def template_file(self) -> Path:
        """The CloudFormation template."""
        return self.folder / f"{self.stack}.template.json"

    @cached_property
    def template(self) -> dict[str, Any]:
        """The CloudFormation template, parsed."""
        template: dict[str, Any] = json.loads(self.template_file.read_text())
        return template

    @cached_property
    def flags(self) -> dict[str, dict[str, Any]]:
        """The CDK's feature flags, as the CDK reports them to its CLI."""
        artifacts = json.loads((self.folder / "manifest.json").read_text())["artifacts"].values()
        reports = [a for a in artifacts if a["type"] == "cdk:feature-flag-report"]
        flags: dict[str, dict[str, Any]] = reports[0]["properties"]["flags"]
        return flags

    @cached_property
    def violations(self) -> list[tuple[str, str]]:
        """Construct path and finding, from the report of the CDK's validation."""
        report = json.loads((self.folder / "validation-report.json").read_text())
        return [
            (construct["constructPath"], violation["ruleName"])
            for plugin in report["pluginReports"]
            for violation in plugin["violations"]
            for construct in violation["violatingConstructs"]
        ]

    @property
    def bundle(self) -> Path:
        """The functions' code."""
        (folder,) = self.folder.glob("asset.*")
        return folder

    def resources(self, kind: str) -> dict[str, dict[str, Any]]:
        """The properties of all resources of a type, by construct path, references readable."""
        return {
            self._path(name): self.readable(resource.get("Properties", {}))
            for name, resource in self.template["Resources"].items()
            if resource["Type"] == kind
        }

    def readable(self, value: Any) -> Any:
        """`value` with references as text: `<Tasks/Table.Arn>`, `<AWS::Region>`."""
        match value:
            case {"Ref": str(name)}:
                return f"<{self._path(name)}>"
            case {"Fn::GetAtt": [str(name), str(attribute)]}:
                return f"<{self._path(name)}.{attribute}>"
            case {"Fn::Join": ["", list(parts)]}:
                return "".join(str(self.readable(part)) for part in parts)
            case dict():
                return {key: self.readable(item) for key, item in value.items()}
            case list():
                return [self.readable(item) for item in value]
            case _:
                return value

    def grants(self) -> dict[str, Grants]:
        """What each role may do, and on which conditions. Fails on a policy that is more than Allow
        statements, and on what else could hold a policy.
        """
        found: dict[str, Grants] = {}
        for path, role in self.resources("AWS::IAM::Role").items():
            assert not role.get("ManagedPolicyArns"), f"{path} has managed policies"
            found[path] = {}
            for policy in role.get("Policies", ()):
                _add(found[path], policy["PolicyDocument"])
        types = {resource["Type"] for resource in self.template["Resources"].values()}
        iam = {name for name in types if name.startswith("AWS::IAM::")}
        assert iam <= {"AWS::IAM::Role", "AWS::IAM::Policy"}, iam
        for path, policy in self.resources("AWS::IAM::Policy").items():
            assert len(policy["Roles"]) == 1, f"{path} is attached to several roles"
            assert not policy.get("Users"), f"{path} is attached to users"
            assert not policy.get("Groups"), f"{path} is attached to groups"
            _add(found[policy["Roles"][0].strip("<>")], policy["PolicyDocument"])
        return found

    def _path(self, name: str) -> str:
        resource = self.template["Resources"].get(name)
        if resource is None:
            return name
        path: str = resource["Metadata"]["aws:cdk:path"]
        return path.removeprefix(f"{self.stack}/").removesuffix("/Resource")


def _add(grants: Grants, document: Mapping[str, Any]) -> None:
    for statement in document["Statement"]:
        assert set(statement) - {"Condition"} == {"Action", "Effect", "Resource"}, statement
        assert statement["Effect"] == "Allow", statement
        where = _where(statement.get("Condition", {}))
        for resource in as_list(statement["Resource"]):
            grants.setdefault(resource + where, set()).update(as_list(statement["Action"]))


def _where(condition: Mapping[str, Any]) -> str:
    if not condition:
        return ""
    clauses = [
        f"{operator} {key} = {' or '.join(as_list(values))}".removeprefix("StringEquals ")
        for operator, keys in sorted(condition.items())
        for key, values in keys.items()
    ]
    return f" where {' and '.join(clauses)}"


def entry(name: str, scopes: tuple[str, ...] = (), ttl: timedelta = timedelta(days=1)) -> ToolEntry:
    """A tool of a catalogue."""
    return ToolEntry(
        name=name,
        definition={},
        module="m",
        attribute="a",
        kind="function",
        task_support="optional",
        without_tasks="task",
        asks_first=False,
        ttl_ms=ttl // timedelta(milliseconds=1),
        poll_interval_ms=1000,
        timeout_ms=60_000,
        sequential=True,
        mirrored=(),
        scopes=scopes,
        state_machine_arn=None,
    )


def as_list(value: Any) -> list[Any]:
    """A policy's lists of one may be written without brackets."""
    return value if isinstance(value, list) else [value]


def state_machine(name: str) -> str:
    """The readable ARN of one of the stack's state machines."""
    return f"arn:<AWS::Partition>:states:<AWS::Region>:<AWS::AccountId>:stateMachine:{name}"


def task_executions(name: str, cell: str = "c1") -> str:
    """The readable pattern of the executions that are tasks."""
    return state_machine(name).replace(":stateMachine:", ":execution:") + f":{cell}-*"


def expressions(value: Any) -> Iterator[str]:
    """Every JSONata expression in an Amazon States Language value."""
    if isinstance(value, dict):
        for item in value.values():
            yield from expressions(item)
    elif isinstance(value, list):
        for item in value:
            yield from expressions(item)
    elif isinstance(value, str) and (found := re.fullmatch(r"\{%(.*)%\}", value, re.DOTALL)):
        yield found[1]
