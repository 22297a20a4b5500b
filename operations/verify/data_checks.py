"""What outlives the stack is protected, and what its keys encrypted can be read.

`docs/data.md` says what is protected, and which keys are needed how long.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from infra.kept_choices import CHOICES
from infra.operation_options import AWS_MANAGED, OWN_KEY

from ..deployed_stack import DeployedStack
from ..restore_rows import TABLES
from .account_checks import log_group
from .check import Check, NotTried, expect
from .deployed import Deployed


def choices_of(stack: DeployedStack) -> Mapping[str, str]:
    """What the deployed template was given. Raises NotTried for one of an earlier version."""
    choices: dict[str, str] | None = stack.template.get("Metadata", {}).get(CHOICES)
    if choices is None:
        raise NotTried("the stack was deployed by an earlier version")
    return choices


def see_protection(deployed: Deployed) -> str:
    """With `data=retain`: stack, tables and log groups cannot be deleted by accident."""
    stack = deployed.account()
    if choices_of(stack)["data"] != "retain":
        return "data=destroy: nothing is protected"
    dynamodb = stack.client("dynamodb")
    expect(stack.description.get("EnableTerminationProtection"), "the stack may be deleted")
    for table in TABLES:
        for name in stack.physical_ids("AWS::DynamoDB::Table", f"{table}Table"):
            found = dynamodb.describe_table(TableName=name)["Table"]
            expect(found.get("DeletionProtectionEnabled"), f"{name} may be deleted")
    groups = stack.physical_ids("AWS::Logs::LogGroup")
    for name in groups:
        group = log_group(stack, name)
        expect(group.get("deletionProtectionEnabled"), f"{name} may be deleted")
    return f"the stack, {len(TABLES)} tables and {len(groups)} log groups"


def see_keys(deployed: Deployed) -> str:
    """The stack's key and the earlier ones are enabled, and none is about to be deleted."""
    stack = deployed.account()
    choices = choices_of(stack)
    keys = choices["earlier_keys"].split()
    if choices["encryption"] == OWN_KEY:
        keys += stack.physical_ids("AWS::KMS::Key")
    elif choices["encryption"] != AWS_MANAGED:
        keys.append(choices["encryption"])
    if not keys:
        return "keys that AWS manages"
    for key in keys:
        state = stack.client("kms").describe_key(KeyId=key)["KeyMetadata"]["KeyState"]
        expect(state == "Enabled", f"the key {key} is {state}: what it encrypted cannot be read")
    return f"{len(keys)} are enabled"


CHECKS: Final = (
    Check("Protection from deletion", see_protection, only_aws=True, of_stack=True),
    Check("Keys", see_keys, only_aws=True, of_stack=True),
)
