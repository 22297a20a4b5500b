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
from typing import Final

from botocore.exceptions import BotoCoreError, ClientError

from local.console import fail, say

from .deployed_stack import (
    DeployedStack,
    NoStack,
    NotDeployed,
    add_stack_options,
    chosen_stack,
    clients_of,
)
from .drain import SECONDS, SWEEPER, Drain
from .running_executions import STATE_MACHINE, running_executions

TABLE: Final = "AWS::DynamoDB::Table"
RULE: Final = "AWS::Events::Rule"
KEPT: Final = ("Retain", "RetainExceptOnCreate")


def kept(stack: DeployedStack) -> list[str]:
    """The resources that stay, each as one line."""
    resources = stack.template.get("Resources", {})
    return sorted(
        f"{summary['ResourceType']} {summary['PhysicalResourceId']}"
        for summary in stack.resources
        if resources.get(summary["LogicalResourceId"], {}).get("DeletionPolicy") in KEPT
    )


def protected_tables(stack: DeployedStack) -> list[str]:
    """Tables that the stack would delete, and whose deletion protection forbids it."""
    client, resources = stack.client("dynamodb"), stack.template.get("Resources", {})
    found = []
    for summary in stack.resources:
        resource = resources.get(summary["LogicalResourceId"])
        if resource is None or resource["Type"] != TABLE or resource.get("DeletionPolicy") in KEPT:
            continue
        name = summary["PhysicalResourceId"]
        try:
            table = client.describe_table(TableName=name)["Table"]
        except client.exceptions.ResourceNotFoundException:
            continue
        if table.get("DeletionProtectionEnabled"):
            found.append(name)
    return sorted(found)


def foreign_rules(stack: DeployedStack, bus: str) -> list[str]:
    """Rules on the stack's bus that the stack does not have."""
    own = {name.rpartition("|")[2].rpartition("/")[2] for name in stack.physical_ids(RULE)}
    client = stack.client("events")
    try:
        pages = list(client.get_paginator("list_rules").paginate(EventBusName=bus))
    except client.exceptions.ResourceNotFoundException:
        return []
    return sorted(
        rule["Name"] for page in pages for rule in page["Rules"] if rule["Name"] not in own
    )


def remove_rules(stack: DeployedStack, bus: str, names: list[str]) -> None:
    """Remove rules with their targets."""
    client = stack.client("events")
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


def close(stack: DeployedStack, seconds: float) -> int:
    """End all tasks and delete the state machines. Returns how many executions are left.

    Calls go on until the state machines are deleted: what they start after the first round is ended
    in the second, and what it did is not undone. Raises ClientError and BotoCoreError.
    """
    machines = stack.physical_ids(STATE_MACHINE)
    drain = Drain(stack.client, stack.outputs.get(SWEEPER), "server")
    drain.run(machines, seconds, all_of_them=False)
    states = stack.client("stepfunctions")
    for arn in machines:
        states.delete_state_machine(stateMachineArn=arn)
    return drain.run(machines, 0, all_of_them=True)


def destroy(stack: DeployedStack, options: argparse.Namespace) -> int:
    """Prepare the deletion. Returns 1 when nothing should be deleted.

    Raises ClientError and BotoCoreError.
    """
    bus = stack.outputs.get("EventBus", stack.name)
    rules = foreign_rules(stack, bus)
    remove = options.rules == "remove"
    refused = obstacles(protected_tables(stack), [] if remove else rules, bus)
    if refused:
        return fail(f"nothing was deleted, because {refused}")
    states = stack.client("stepfunctions")
    running = sum(len(running_executions(states, arn)) for arn in stack.physical_ids(STATE_MACHINE))
    say(f"the stack {stack.name} has {running} running executions, which are ended first")
    for line in kept(stack):
        say(f"stays, and costs what it holds: {line}")
    if not confirmed(stack.name, options.confirm):
        return fail(f"nothing was deleted: write the stack's name, or add confirm={stack.name}")
    remove_rules(stack, bus, rules)
    if left := close(stack, options.seconds):
        return fail(f"{left} executions still run, and the stack was not deleted; try again")
    if stack.description.get("EnableTerminationProtection"):
        stack.client("cloudformation").update_termination_protection(
            StackName=stack.name, EnableTerminationProtection=False
        )
    return 0


def main() -> int:
    """Prepare the deletion of a stack. Returns 1 when it should not be deleted."""
    parser = argparse.ArgumentParser(prog="python -m operations.destroy")
    parser.add_argument("--confirm", help="the stack's name, instead of a question")
    parser.add_argument("--rules", choices=["remove"], help="rules of others on the event bus")
    parser.add_argument("--seconds", type=int, default=SECONDS, help="how long to wait for undo")
    add_stack_options(parser)
    options = parser.parse_args()
    try:
        stack = DeployedStack(chosen_stack(options), clients_of(options.profile))
        return destroy(stack, options)
    except NotDeployed as error:
        say(f"{error}: there is nothing to delete")
        return 0
    except (NoStack, ClientError, BotoCoreError) as error:
        return fail(error)


if __name__ == "__main__":
    sys.exit(main())
