"""Would the deployment replace or remove a table, the bucket or the event bus?

CloudFormation replaces a resource whose logical id changes, or a property that is fixed at its
creation: what it holds is lost, or retained under a name that nothing reads any more. The event bus
takes the rules of others along.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from .check import Check, Finding
from .deployment import Deployment

FIXED: Final[dict[str, tuple[str, ...]]] = {
    "AWS::ApiGateway::RestApi": (),
    "AWS::DynamoDB::Table": ("ImportSourceSpecification", "KeySchema", "TableName"),
    "AWS::Events::EventBus": ("Name",),
    "AWS::IAM::Role": ("Path", "RoleName"),
    "AWS::KMS::Key": (),
    "AWS::Lambda::Alias": ("FunctionName", "Name"),
    "AWS::Lambda::Function": ("DurableConfig", "FunctionName", "PackageType", "TenancyConfig"),
    "AWS::Logs::LogGroup": ("LogGroupName",),
    "AWS::S3::Bucket": ("BucketName", "BucketNamePrefix", "BucketNamespace"),
    "AWS::SQS::Queue": ("FifoQueue", "QueueName"),
    "AWS::SecretsManager::Secret": ("Name",),
    "AWS::StepFunctions::StateMachine": ("StateMachineName", "StateMachineType"),
}
"""Resource type -> the properties whose change replaces it (CloudFormation template reference,
"Update requires: Replacement"). A test compares them with CloudFormation's own schemas."""
DATA: Final = ("AWS::DynamoDB::Table", "AWS::Events::EventBus", "AWS::S3::Bucket")
WORD: Final = "replace"


def fixed_properties(resource: Mapping[str, Any]) -> dict[str, Any]:
    """The properties of a resource whose change would replace it."""
    properties = resource.get("Properties", {})
    return {name: properties[name] for name in FIXED[resource["Type"]] if name in properties}


def stays(logical_id: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether an update from the one template to the other keeps the resource as it is."""
    old, new = before["Resources"][logical_id], after["Resources"].get(logical_id)
    return (
        new is not None
        and new["Type"] == old["Type"]
        and fixed_properties(new) == fixed_properties(old)
    )


def find(deployment: Deployment) -> Finding:
    """Compare what holds data in the template with the deployed one."""
    lost = {
        name: resource["Type"]
        for name, resource in deployment.deployed.get("Resources", {}).items()
        if resource["Type"] in DATA and not stays(name, deployment.deployed, deployment.template)
    }
    if not lost or WORD in deployment.changes:
        return Finding(f"replaced or removed, as told: {', '.join(lost)}" if lost else "")
    lines = "\n".join(f"    {kind} {name}" for name, kind in lost.items())
    return Finding(
        f"it would replace or remove what the stack {deployment.stack} keeps its data in:\n"
        f"{lines}\n\nGive these resources back the logical ids, names and keys that are deployed "
        f"(cdk diff shows them).\nTo lose them all the same, add change={WORD}.",
        refused=True,
    )


CHECK: Final = Check("tables, bucket and event bus stay", find, changes=frozenset({WORD}))
