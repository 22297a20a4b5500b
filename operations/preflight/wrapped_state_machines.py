"""The state machines that tools wrap: is each one there, and of a kind that can be a tool?

An Express execution cannot be described or stopped and sends no event of its end; one with a
customer managed key has its end hidden from whoever may not decrypt it (Step Functions developer
guide, "Choosing workflow type", "Automating event delivery", "Data at rest encryption").
"""

from __future__ import annotations

from typing import Any, Final

from infra.wrapped_state_machines import METADATA, Wrapped

from ..state_machine_metadata import state_machine_metadata
from .check import Check, Finding
from .deployment import Deployment


def run(deployment: Deployment) -> Finding:
    """Describe each of them, and refuse those whose tasks would never end."""
    described = deployment.template.get("Metadata", {}).get(METADATA, [])
    if not described:
        return Finding("")
    wrapped = [Wrapped(each["Tool"], each["Arn"], each.get("KmsKeyArn")) for each in described]
    account = deployment.client("sts").get_caller_identity()["Account"]
    refused = []
    for machine in wrapped:
        text = machine.refusal(account, deployment.region) or _refusal(deployment, machine)
        if text:
            refused.append(f"    {text}")
    if refused:
        lines = "\n".join(refused)
        return Finding(f"tools wrap state machines that they cannot use:\n{lines}", refused=True)
    return Finding(f"{len(wrapped)} tools wrap state machines, which are there")


def _refusal(deployment: Deployment, machine: Wrapped) -> str:
    states = deployment.client("stepfunctions")
    try:
        found = state_machine_metadata(states, machine.arn)
    except states.exceptions.StateMachineDoesNotExist:
        return f"{machine.tool}: there is no {machine.arn}"
    if found["status"] == "DELETING":
        return f"{machine.tool}: {machine.arn} is being deleted"
    if found["type"] != "STANDARD":
        return (
            f"{machine.tool}: {machine.arn} is of type {found['type']}, whose executions tell "
            "nobody of their ends; only STANDARD can be a tool"
        )
    key_id = found.get("encryptionConfiguration", {}).get("kmsKeyId")
    key_arn = _key_arn(deployment.client("kms"), key_id) if key_id else None
    if key_arn != machine.key_arn:
        has = f"has the key {key_arn}" if key_arn else "has no customer managed key"
        wants = f'kms_key_arn="{key_arn}"' if key_arn else "no kms_key_arn"
        return f"{machine.tool}: {machine.arn} {has}; declare it with {wants}"
    return ""


def _key_arn(kms: Any, key_id: str) -> str:
    """An alias or an id is one way to name a key (API reference, "EncryptionConfiguration")."""
    if key_id.startswith("arn:") and ":key/" in key_id:
        return key_id
    found: str = kms.describe_key(KeyId=key_id)["KeyMetadata"]["Arn"]
    return found


CHECK: Final = Check("the state machines that tools wrap can be tools", run)
