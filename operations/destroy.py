"""`make destroy`, before the CDK deletes the stack: say what stays, and end what would keep it.

    python -m operations.destroy [--stack NAME] [--confirm NAME] [--rules remove] [--seconds N]

It ends the running tasks and tells their clients why, deletes the state machines, so that no call
starts another one, and lifts the stack's termination protection. Before that it asks for the
stack's name, or takes it from `confirm=`. It refuses where the deletion would fail for a reason
that somebody has to decide on: rules of others on the stack's event bus (EventBridge API reference,
"DeleteEventBus": "All rules associated with this event bus need to be deleted"), and tables with
deletion protection that the template does not keep.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from infra.server_toml import ServerFile
from local.console import fail, say
from local.environment import ROOT

from .deployed_stack import Clients, NoStack, NotDeployed, clients_of, outputs_of
from .drain import SECONDS, SWEEPER, Drain
from .running_executions import running_executions, state_machines_of

TABLE: Final = "AWS::DynamoDB::Table"
RULE: Final = "AWS::Events::Rule"
KEPT: Final = ("Retain", "RetainExceptOnCreate")


@dataclass(frozen=True)
class DeployedStack:
    """The stack that is to go."""

    clients: Clients
    name: str

    @property
    def template(self) -> Mapping[str, Any]:
        """The template that is deployed."""
        body = self.clients("cloudformation").get_template(StackName=self.name)["TemplateBody"]
        return body if isinstance(body, dict) else {}

    @property
    def physical_ids(self) -> dict[str, str]:
        """Logical id -> physical id of the resources that are there."""
        pages = self.clients("cloudformation").get_paginator("list_stack_resources")
        return {
            each["LogicalResourceId"]: each["PhysicalResourceId"]
            for page in pages.paginate(StackName=self.name)
            for each in page["StackResourceSummaries"]
            if each["ResourceStatus"] != "DELETE_COMPLETE" and "PhysicalResourceId" in each
        }

    def kept(self, template: Mapping[str, Any], ids: Mapping[str, str]) -> list[str]:
        """The resources that stay, each as one line."""
        return sorted(
            f"{resource['Type']} {ids[name]}"
            for name, resource in template.get("Resources", {}).items()
            if resource.get("DeletionPolicy") in KEPT and name in ids
        )

    def protected_tables(self, template: Mapping[str, Any], ids: Mapping[str, str]) -> list[str]:
        """Tables that the stack would delete, and whose deletion protection forbids it."""
        client, found = self.clients("dynamodb"), []
        for name, resource in template.get("Resources", {}).items():
            if resource["Type"] != TABLE or resource.get("DeletionPolicy") in KEPT:
                continue
            if name not in ids:
                continue
            try:
                table = client.describe_table(TableName=ids[name])["Table"]
            except client.exceptions.ResourceNotFoundException:
                continue
            if table.get("DeletionProtectionEnabled"):
                found.append(ids[name])
        return sorted(found)

    def foreign_rules(self, bus: str) -> list[str]:
        """Rules on the stack's bus that the stack does not have."""
        own = {
            each["PhysicalResourceId"].rpartition("|")[2].rpartition("/")[2]
            for page in self.clients("cloudformation")
            .get_paginator("list_stack_resources")
            .paginate(StackName=self.name)
            for each in page["StackResourceSummaries"]
            if each["ResourceType"] == RULE and "PhysicalResourceId" in each
        }
        client = self.clients("events")
        try:
            pages = list(client.get_paginator("list_rules").paginate(EventBusName=bus))
        except client.exceptions.ResourceNotFoundException:
            return []
        return sorted(
            rule["Name"] for page in pages for rule in page["Rules"] if rule["Name"] not in own
        )

    def remove_rules(self, bus: str, names: list[str]) -> None:
        """Remove rules with their targets."""
        client = self.clients("events")
        for name in names:
            targets = client.list_targets_by_rule(Rule=name, EventBusName=bus)["Targets"]
            if targets:
                ids = [target["Id"] for target in targets]
                client.remove_targets(Rule=name, EventBusName=bus, Ids=ids)
            client.delete_rule(Name=name, EventBusName=bus)
            say(f"removed the rule {name} from the bus {bus}")


def obstacles(tables: list[str], rules: list[str], bus: str) -> str:
    """What to say when the deletion would fail; empty when it would not."""
    lines = []
    if tables:
        lines += [
            "these tables have deletion protection, and the stack would delete them. If they may "
            "go, run `aws dynamodb update-table --no-deletion-protection-enabled --table-name` for",
            *(f"    {name}" for name in tables),
        ]
    if rules:
        lines += [
            f"the event bus {bus} has rules that are not the stack's, and is not deleted before "
            "they are. Their owners may need them; rules=remove removes them:",
            *(f"    {name}" for name in rules),
        ]
    return "\n".join(lines)


def confirmed(stack: str, given: str | None) -> bool:
    """Whether somebody has written the stack's name: as an argument, or now."""
    if given is not None:
        return given == stack
    if not sys.stdin.isatty():
        return False
    return input(f"Write the stack's name to delete it ({stack}): ").strip() == stack


def close(clients: Clients, stack: str, outputs: Mapping[str, str], seconds: float) -> int:
    """End all tasks and delete the state machines. Returns how many executions are left.

    Calls go on until the state machines are deleted: what they start after the first round is ended
    in the second, and what it did is not undone. Raises ClientError and BotoCoreError.
    """
    machines = list(state_machines_of(clients("cloudformation"), stack))
    drain = Drain(clients, outputs.get(SWEEPER), "server")
    drain.run(machines, seconds, all_of_them=False)
    states = clients("stepfunctions")
    for arn in machines:
        states.delete_state_machine(stateMachineArn=arn)
    return drain.run(machines, 0, all_of_them=True)


def destroy(stack: DeployedStack, options: argparse.Namespace) -> int:
    """Prepare the deletion. Returns 1 when nothing should be deleted.

    Raises NotDeployed, ClientError and BotoCoreError.
    """
    cloudformation = stack.clients("cloudformation")
    outputs = outputs_of(cloudformation, stack.name)
    (described,) = cloudformation.describe_stacks(StackName=stack.name)["Stacks"]
    template, ids = stack.template, stack.physical_ids
    bus = outputs.get("EventBus", stack.name)
    rules = stack.foreign_rules(bus)
    remove = options.rules == "remove"
    refused = obstacles(stack.protected_tables(template, ids), [] if remove else rules, bus)
    if refused:
        return fail(f"nothing was deleted, because {refused}")
    states = stack.clients("stepfunctions")
    running = sum(
        len(running_executions(states, arn))
        for arn in state_machines_of(cloudformation, stack.name)
    )
    say(f"the stack {stack.name} has {running} running executions, which are ended first")
    for line in stack.kept(template, ids):
        say(f"stays, and costs what it holds: {line}")
    if not confirmed(stack.name, options.confirm):
        return fail(f"nothing was deleted: write the stack's name, or add confirm={stack.name}")
    stack.remove_rules(bus, rules)
    if left := close(stack.clients, stack.name, outputs, options.seconds):
        return fail(f"{left} executions still run, and the stack was not deleted; try again")
    if described.get("EnableTerminationProtection"):
        cloudformation.update_termination_protection(
            StackName=stack.name, EnableTerminationProtection=False
        )
    return 0


def main() -> int:
    """Prepare the deletion of a stack. Returns 1 when it should not be deleted."""
    parser = argparse.ArgumentParser(prog="python -m operations.destroy")
    parser.add_argument("--stack", help="by default the one in server.toml")
    parser.add_argument("--confirm", help="the stack's name, instead of a question")
    parser.add_argument("--rules", choices=["remove"], help="rules of others on the event bus")
    parser.add_argument("--seconds", type=int, default=SECONDS, help="how long to wait for undo")
    parser.add_argument("--profile", choices=["aws", "local"], default="aws")
    options = parser.parse_args()
    name = options.stack or ServerFile.read(ROOT).stack
    try:
        return destroy(DeployedStack(clients_of(options.profile), name), options)
    except NotDeployed as error:
        say(f"{error}: there is nothing to delete")
        return 0
    except (NoStack, ClientError, BotoCoreError) as error:
        return fail(error)


if __name__ == "__main__":
    sys.exit(main())
