"""With a KMS key (`encryption=customer`, or a key's ARN): everything names it, and whoever uses it
in nobody's name may. `data_checks` says whether keys are enabled.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final

from infra.operation_options import AWS_MANAGED, OWN_KEY

from ..deployed_stack import DeployedStack
from ..running_executions import STATE_MACHINE
from ..state_machine_metadata import state_machine_metadata
from .account_checks import log_group
from .check import Check, NotTried, expect
from .data_checks import choices_of
from .deployed import Deployed
from .log_checks import TRACEBACKS

OWN: Final = "Encryption"
"""How the logical id of the stack's own key begins. `log_messages` has another key."""
EVENTS, ALARMS, BUDGETS = (f"{name}.amazonaws.com" for name in ("events", "cloudwatch", "budgets"))
PUBLISH: Final = ("kms:GenerateDataKey", "kms:Decrypt")


def _key_arn(stack: DeployedStack) -> str:
    """Raises NotTried where AWS manages the keys."""
    choice = choices_of(stack)["encryption"]
    if choice == AWS_MANAGED:
        raise NotTried("AWS manages the keys (encryption=aws)")
    key = stack.physical_ids("AWS::KMS::Key", OWN)[0] if choice == OWN_KEY else choice
    return str(stack.client("kms").describe_key(KeyId=key)["KeyMetadata"]["Arn"])


def see_key_policy(deployed: Deployed) -> str:
    """The key's policy lets the services use it that have no role: EventBridge for queues and the
    bus, CloudWatch Logs for log groups, and what publishes to the topic. The stack's own key
    rotates.

    `infra/encryption.py` names AWS's pages. Conditions are not evaluated: what the services do
    under them is seen by `ring=yes` for alarms, and by the alarm `Events/DeadLetterMessages`.
    """
    stack = deployed.account()
    key, kms = _key_arn(stack), stack.client("kms")
    policy = json.loads(kms.get_key_policy(KeyId=key, PolicyName="default")["Policy"])
    needed = _needed(stack)
    missing = [
        f"{action} by {service}"
        for service, actions in needed.items()
        for action in actions
        if not _allowed(policy, service, action)
    ]
    expect(not missing, f"the policy of {key} does not allow {', '.join(missing)}")
    rotates = kms.get_key_rotation_status(KeyId=key)["KeyRotationEnabled"]
    own = bool(stack.physical_ids("AWS::KMS::Key", OWN))
    expect(rotates or not own, f"{key} does not rotate")
    return f"{len(needed)} services may use it; it {'rotates' if rotates else 'does not rotate'}"


def _needed(stack: DeployedStack) -> dict[str, tuple[str, ...]]:
    """Which actions each service needs, as `infra/encryption.py` allows them."""
    region = stack.client("kms").meta.region_name
    needed: dict[str, tuple[str, ...]] = {
        EVENTS: (*PUBLISH, "kms:DescribeKey"),
        f"logs.{region}.amazonaws.com": (*PUBLISH, "kms:Encrypt", "kms:DescribeKey"),
    }
    if stack.physical_ids("AWS::SNS::Topic"):
        needed[ALARMS] = PUBLISH
        if stack.physical_ids("AWS::Budgets::Budget"):
            needed[BUDGETS] = PUBLISH
    return needed


def _allowed(policy: Mapping[str, Any], service: str, action: str) -> bool:
    """Whether a statement allows it, whatever its condition is."""
    return any(
        statement["Effect"] == "Allow"
        and service in _listed(_services_of(statement))
        and any(fnmatchcase(action, pattern) for pattern in _listed(statement.get("Action")))
        for statement in _listed(policy["Statement"])
    )


def _services_of(statement: Mapping[str, Any]) -> Any:
    principal = statement.get("Principal")
    return principal.get("Service") if isinstance(principal, dict) else None


def _listed(value: Any) -> list[Any]:
    """IAM writes a list of one as that one."""
    return value if isinstance(value, list) else [] if value is None else [value]


def _of_table(stack: DeployedStack, name: str) -> Any:
    table = stack.client("dynamodb").describe_table(TableName=name)["Table"]
    return table.get("SSEDescription", {}).get("KMSMasterKeyArn")


def _of_queue(stack: DeployedStack, url: str) -> Any:
    wanted = ["KmsMasterKeyId"]
    found = stack.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=wanted)
    return found.get("Attributes", {}).get("KmsMasterKeyId")


def _of_bucket(stack: DeployedStack, name: str) -> Any:
    found = stack.client("s3").get_bucket_encryption(Bucket=name)
    (rule,) = found["ServerSideEncryptionConfiguration"]["Rules"]
    return rule.get("ApplyServerSideEncryptionByDefault", {}).get("KMSMasterKeyID")


def _of_bus(stack: DeployedStack, name: str) -> Any:
    return stack.client("events").describe_event_bus(Name=name).get("KmsKeyIdentifier")


def _of_log_group(stack: DeployedStack, name: str) -> Any:
    return log_group(stack, name).get("kmsKeyId")


def _of_state_machine(stack: DeployedStack, arn: str) -> Any:
    found = state_machine_metadata(stack.client("stepfunctions"), arn)
    return found.get("encryptionConfiguration", {}).get("kmsKeyId")


def _of_function(stack: DeployedStack, name: str) -> Any:
    found = stack.client("lambda").get_function_configuration(FunctionName=name)
    return found.get("KMSKeyArn")


def _of_secret(stack: DeployedStack, arn: str) -> Any:
    return stack.client("secretsmanager").describe_secret(SecretId=arn).get("KmsKeyId")


def _of_topic(stack: DeployedStack, arn: str) -> Any:
    found = stack.client("sns").get_topic_attributes(TopicArn=arn)
    return found["Attributes"].get("KmsMasterKeyId")


KEY_OF: Final[Mapping[str, Callable[[DeployedStack, str], Any]]] = {
    "AWS::DynamoDB::Table": _of_table,
    "AWS::SQS::Queue": _of_queue,
    "AWS::S3::Bucket": _of_bucket,
    "AWS::Events::EventBus": _of_bus,
    "AWS::Logs::LogGroup": _of_log_group,
    STATE_MACHINE: _of_state_machine,
    "AWS::Lambda::Function": _of_function,
    "AWS::SecretsManager::Secret": _of_secret,
    "AWS::SNS::Topic": _of_topic,
}
"""What holds data of callers, and how its key is read. `tests/infra/test_encryption.py` has the
same types of the template."""


def see_what_is_encrypted(deployed: Deployed) -> str:
    """All of them name the key: none was created before it, or changed since."""
    stack = deployed.account()
    key = _key_arn(stack)
    others, count = [], 0
    for kind, read in KEY_OF.items():
        tracebacks = stack.physical_ids(kind, TRACEBACKS)  # with the key of `log_messages`
        for physical in sorted({*stack.physical_ids(kind)} - {*tracebacks}):
            count += 1
            found = read(stack, physical)
            if not _is(key, found):
                others.append(f"{physical} ({found or 'no key of yours'})")
    expect(not others, f"not encrypted with {key}: {', '.join(others)}")
    return f"{count} queues, tables and the like name the key"


def _is(key: str, named: Any) -> bool:
    """Services return a key's ARN, or its id where they were given that."""
    return bool(named) and (named == key or key.endswith(f"/{named}"))


CHECKS: Final = (
    Check("The key's policy", see_key_policy, only_aws=True, of_stack=True),
    Check("What the key encrypts", see_what_is_encrypted, only_aws=True, of_stack=True),
)
