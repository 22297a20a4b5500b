"""A synthesized template as CloudFormation would resolve it: names, ARNs and policies in full."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from local.emulator import ACCOUNT, REGION
from tests.infra.assembly import Assembly, as_list

PSEUDO_PARAMETERS: Final = {
    "AWS::AccountId": ACCOUNT,
    "AWS::Partition": "aws",
    "AWS::Region": REGION,
    "AWS::URLSuffix": "amazonaws.com",
}
NAMES: Final = {
    "AWS::Events::EventBus": "Name",
    "AWS::Lambda::Function": "FunctionName",
    "AWS::Logs::LogGroup": "LogGroupName",
    "AWS::StepFunctions::StateMachine": "StateMachineName",
}
"""The property that names a resource, where a template may name it."""
_REGIONAL: Final = f"{REGION}:{ACCOUNT}"
ARNS: Final = {
    "AWS::DynamoDB::Table": f"arn:aws:dynamodb:{_REGIONAL}:table/{{}}",
    "AWS::Events::EventBus": f"arn:aws:events:{_REGIONAL}:event-bus/{{}}",
    "AWS::Events::Rule": f"arn:aws:events:{_REGIONAL}:rule/{{}}",
    "AWS::IAM::Role": f"arn:aws:iam::{ACCOUNT}:role/{{}}",
    "AWS::KMS::Key": f"arn:aws:kms:{_REGIONAL}:key/{{}}",
    "AWS::Lambda::Function": f"arn:aws:lambda:{_REGIONAL}:function:{{}}",
    "AWS::Logs::LogGroup": f"arn:aws:logs:{_REGIONAL}:log-group:{{}}:*",
    "AWS::S3::Bucket": "arn:aws:s3:::{}",
    "AWS::SNS::Topic": f"arn:aws:sns:{_REGIONAL}:{{}}",
    "AWS::SQS::Queue": f"arn:aws:sqs:{_REGIONAL}:{{}}",
    "AWS::Scheduler::ScheduleGroup": f"arn:aws:scheduler:{_REGIONAL}:schedule-group/{{}}",
    "AWS::SecretsManager::Secret": f"arn:aws:secretsmanager:{_REGIONAL}:secret:{{}}-a1B2c3",
    "AWS::StepFunctions::StateMachine": f"arn:aws:states:{_REGIONAL}:stateMachine:{{}}",
}
REF_IS_THE_ARN: Final = {"AWS::SecretsManager::Secret", "AWS::SNS::Topic"}
STREAM: Final = "/stream/2026-01-01T00:00:00.000"


@dataclass(frozen=True)
class Resource:
    """A resource with its properties resolved."""

    path: str
    """Of its construct: `Api/Role`."""
    type: str
    name: str
    properties: dict[str, Any] = field(repr=False)

    @property
    def arn(self) -> str:
        """Its ARN; KeyError for a type whose ARNs nobody has needed so far."""
        return ARNS[self.type].format(self.name)


class ResolvedTemplate:
    """The resources of a stack."""

    def __init__(self, assembly: Assembly) -> None:
        self._stack = assembly.stack
        self._resources: dict[str, Any] = assembly.template["Resources"]
        self.resources = [self._resource(name) for name in self._resources]

    def of_type(self, kind: str) -> Iterator[Resource]:
        """The resources of a type."""
        return (resource for resource in self.resources if resource.type == kind)

    def at(self, path: str) -> Resource | None:
        """The resource of a construct."""
        return next((resource for resource in self.resources if resource.path == path), None)

    def policies(self, role: Resource) -> list[dict[str, Any]]:
        """The documents of a role's identity policies."""
        documents = [policy["PolicyDocument"] for policy in role.properties.get("Policies", ())]
        for policy in self.of_type("AWS::IAM::Policy"):
            if role.name in policy.properties["Roles"]:
                documents.append(policy.properties["PolicyDocument"])
        return documents

    def resource_policy(self, arn: str) -> dict[str, Any] | None:
        """The policy of a queue, a bucket or a key, or of the bucket that an object is in."""
        bucket = arn.partition("/")[0]
        for resource in self.resources:
            properties = resource.properties
            match resource.type:
                case "AWS::KMS::Key" if resource.arn == arn:
                    document = properties["KeyPolicy"]
                case "AWS::SQS::QueuePolicy" if arn.rpartition(":")[2] in _ends(properties):
                    document = properties["PolicyDocument"]
                case "AWS::S3::BucketPolicy" if bucket == f"arn:aws:s3:::{properties['Bucket']}":
                    document = properties["PolicyDocument"]
                case _:
                    continue
            return dict(document)
        return None

    def value(self, value: Any) -> Any:
        """A value of the template, with its intrinsic functions carried out."""
        match value:
            case {"Ref": str(name)}:
                return self._ref(name)
            case {"Fn::GetAtt": [str(name), str(attribute)]}:
                return self._attribute(name, attribute)
            case {"Fn::Join": [str(separator), list(parts)]}:
                return separator.join(str(self.value(part)) for part in parts)
            case dict():
                return {key: self.value(item) for key, item in value.items()}
            case list():
                return [self.value(item) for item in value]
            case _:
                return value

    def _resource(self, name: str) -> Resource:
        resource = self._resources[name]
        path: str = resource.get("Metadata", {}).get("aws:cdk:path", name)
        return Resource(
            path.removeprefix(f"{self._stack}/").removesuffix("/Resource"),
            resource["Type"],
            self._name(name),
            self.value(resource.get("Properties", {})),
        )

    def _name(self, name: str) -> str:
        resource = self._resources[name]
        given = resource.get("Properties", {}).get(NAMES.get(resource["Type"], ""))
        made = f"{self._stack}-{name}"
        if resource["Type"] == "AWS::S3::Bucket":
            made = made.lower()
        return made if given is None else str(self.value(given))

    def _ref(self, name: str) -> str:
        if name in PSEUDO_PARAMETERS:
            return PSEUDO_PARAMETERS[name]
        kind = self._resources[name]["Type"]
        if kind == "AWS::SQS::Queue":
            return f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/{self._name(name)}"
        return self._arn(name) if kind in REF_IS_THE_ARN else self._name(name)

    def _attribute(self, name: str, attribute: str) -> str:
        if attribute == "StreamArn":
            return self._arn(name) + STREAM
        if attribute in ("Arn", "Id") and self._resources[name]["Type"] in ARNS:
            return self._arn(name)
        return f"{self._name(name)}.{attribute}"

    def _arn(self, name: str) -> str:
        return ARNS[self._resources[name]["Type"]].format(self._name(name))


def _ends(properties: dict[str, Any]) -> set[str]:
    """The names of the queues that a policy is for."""
    return {queue.rpartition("/")[2] for queue in as_list(properties["Queues"])}
