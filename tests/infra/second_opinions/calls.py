"""Calls to AWS by a stack's roles, however the stack, its tools and its tasks are named."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from mcp_tasks import environment
from tests.infra.second_opinions.resolved_template import ResolvedTemplate, Resource

STATE_MACHINE: Final = "AWS::StepFunctions::StateMachine"
WORKER: Final = "Worker"
DURABLE_WORKER: Final = "durable Worker"
"""Of a tool that takes a context. What other workers do, it does as well."""
TASK: Final = "c1-4f2b9c1e"
REAL_NAME: Final = re.compile(r"^(?P<stack>.+?)-(?P<id>[A-Za-z0-9]+?)[0-9A-F]{8}-[0-9A-F]+$")
"""The names that CloudFormation gives: stack, logical id with its hash, a random end."""
FORGED: Final = "c1-00000000000000000000000000000000"
"""The task that `overreach` of tests/integration/tools tries to reach, with its function's role."""
SELECTING: Final = ("BatchGetItem", "GetItem", "Query", "Scan")
"""Operations with the condition key dynamodb:Select (service authorization reference, "Actions,
resources, and condition keys for Amazon DynamoDB")."""
WORKER_ROLE: Final = re.compile(r"^Tools(?P<tool>\w+)WorkerRole$")


@dataclass(frozen=True, slots=True)
class Call:
    """A call, or several that differ in names only."""

    role: str
    """The construct whose role calls, `WORKER` or `DURABLE_WORKER`."""
    action: str
    resource: str
    """`table Tasks`, `index Tasks/byPrincipal`, `object`, `bucket`, `state machine`, `execution`,
    `event bus`, `secret Api/RequestStateKey`, or `*`."""
    context: tuple[tuple[str, str | tuple[str, ...]], ...] = ()
    """Condition keys."""
    allowed: bool = True

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Call:
        """What `as_json` has written."""
        context = {
            key: tuple(value) if isinstance(value, list) else value
            for key, value in document["context"].items()
        }
        fields = (document["role"], document["action"], document["resource"])
        return cls(*fields, tuple(sorted(context.items())), document["allowed"])

    def if_allowed(self) -> Call:
        """The same, allowed."""
        return replace(self, allowed=True)

    def as_json(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "role": self.role,
            "action": self.action,
            "resource": self.resource,
            "context": dict(self.context),
            "allowed": self.allowed,
        }


def seen(record: Mapping[str, Any], durable_tools: Collection[str]) -> Call | None:
    """A call that the emulator has authorized (`local/emulator_record.py`).

    None for what is not a role of a stack, and for what a test's tool does with permissions of its
    own. `durable_tools` has the names of tools as they are in logical ids.
    """
    principal = re.search(r"assumed-role/([^/]+)/", record["principal"])
    named = REAL_NAME.match(principal[1]) if principal else None
    resource = _symbol(record["resource"])
    if named is None or resource is None:
        return None
    role = named["id"].removesuffix("Role")
    if worker := WORKER_ROLE.match(named["id"]):
        role = DURABLE_WORKER if worker["tool"] in durable_tools else WORKER
    allowed = record["decision"] == "Allow"
    if allowed and FORGED in (record["context"].get("dynamodb:leadingkeys") or ()):
        return None
    context = dict(_context(record["context"]))
    if resource != "table Journal":
        context = {key: _without_tool(value) for key, value in context.items()}
    if record["action"].partition(":")[2] not in SELECTING:
        context.pop("dynamodb:Select", None)
    return Call(role, record["action"], resource, tuple(sorted(context.items())), allowed)


def _symbol(arn: str) -> str | None:
    service, name = arn.split(":")[2:6:3] if arn.count(":") >= 5 else ("*", arn)
    match service, name.split("/"):
        case "dynamodb", ["table", table, *rest] if found := REAL_NAME.match(table):
            owner = found["id"].removesuffix("Table")
            return f"index {owner}/{rest[1]}" if rest else f"table {owner}"
        case "s3", [bucket, *key] if "payloadsbucket" in bucket.lower():
            return "object" if key else "bucket"
        case "states", _:
            return "execution" if ":execution:" in arn else "state machine"
        case "events", ["event-bus", _]:
            return "event bus"
        case "secretsmanager", _ if "RequestStateKey" in arn:
            return "secret Api/RequestStateKey"
        case "*", _:
            return "*"
    return None


def _context(context: Mapping[str, Any]) -> Iterator[tuple[str, str | tuple[str, ...]]]:
    """The condition keys of services, as AWS spells them, with names that are no task's."""
    spelled = {"leadingkeys": "LeadingKeys", "returnvalues": "ReturnValues", "select": "Select"}
    spelled |= {"attributes": "Attributes", "enclosingoperation": "EnclosingOperation"}
    for key, value in context.items():
        service, _, name = key.partition(":")
        if value is None or service not in ("dynamodb", "events"):
            continue
        if name == "leadingkeys":
            value = [re.sub(r"^.+#c\d.*", "{tool}#{task}", one) for one in value]
            value = ["{key}" if "{" not in one else one for one in value]
        if isinstance(value, list):
            value = tuple(sorted({re.sub(r"c\d-[0-9a-f]{32}", "{task}", one) for one in value}))
        yield f"{service}:{spelled.get(name, name)}", value


def _without_tool(value: str | tuple[str, ...]) -> str | tuple[str, ...]:
    """Only the keys of the journal begin with a tool's name."""
    if isinstance(value, str):
        return value
    return tuple(sorted({one.replace("{tool}#{task}", "{key}") for one in value}))


def roles(template: ResolvedTemplate, call: Call) -> Iterator[tuple[Resource, str]]:
    """The roles of a stack that make a call, with the tool's name where it is a tool's."""
    if call.role not in (WORKER, DURABLE_WORKER):
        if role := template.at(f"{call.role}/Role"):
            yield role, "some_tool"
        return
    for role in template.of_type("AWS::IAM::Role"):
        found = re.fullmatch(r"Tools/(.+)/Worker/Role", role.path)
        if found and (call.role == WORKER or is_durable(template, found[1])):
            yield role, found[1]


def is_durable(template: ResolvedTemplate, tool: str) -> bool:
    """Whether a tool's worker has a journal."""
    function = template.at(f"Tools/{tool}/Worker/Function")
    assert function is not None, tool
    return environment.JOURNAL_TABLE in function.properties["Environment"]["Variables"]


def arns(template: ResolvedTemplate, resource: str, tool: str) -> Iterator[str]:
    """The ARNs that a resource of a call stands for in a stack."""
    kind, _, name = resource.partition(" ")
    match kind:
        case "table" | "index":
            table, _, index = name.partition("/")
            found = template.at(f"{table}/Table")
            assert found is not None, resource
            yield found.arn + (f"/index/{index}" if index else "")
        case "bucket" | "object":
            (bucket,) = template.of_type("AWS::S3::Bucket")
            yield bucket.arn + (f"/{tool}/{TASK}/0a1b2c" if kind == "object" else "")
        case "state":
            yield from (machine.arn for machine in template.of_type(STATE_MACHINE))
        case "execution":
            for machine in template.of_type(STATE_MACHINE):
                arn = machine.arn.replace(":stateMachine:", ":execution:")
                yield f"{arn}:{cell(template)}-4f2b9c1e"
        case "event":
            yield from (bus.arn for bus in template.of_type("AWS::Events::EventBus"))
        case "secret":
            yield from (one.arn for one in template.resources if one.path == f"{name}/Secret")
        case _:
            yield resource


def cell(template: ResolvedTemplate) -> str:
    """The cell of a stack, with which the ids of its tasks begin."""
    api = template.at("Api/Function")
    assert api is not None
    name: str = api.properties["Environment"]["Variables"][environment.CELL]
    return name


def context_of(call: Call, tool: str) -> dict[str, str | list[str]]:
    """A call's condition keys, for a tool."""
    context: dict[str, str | list[str]] = {}
    for key, value in call.context:
        filled = [_filled(one, tool) for one in ((value,) if isinstance(value, str) else value)]
        context[key] = filled[0] if isinstance(value, str) else filled
    return context


def _filled(value: str, tool: str) -> str:
    return value.replace("{tool}", tool).replace("{task}", TASK)
