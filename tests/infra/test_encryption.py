"""`-c encryption=`: what the key encrypts, who may use it, and that nothing changes without one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from infra.cdk_context import Context
from tests.infra.assembly import Assembly, Grants, state_machine
from tests.infra.conftest import EARLIER_KEY, GIVEN_KEY

ACCOUNT = "<AWS::AccountId>"
REGION = "<AWS::Region>"
BUS = f"arn:<AWS::Partition>:events:{REGION}:{ACCOUNT}:event-bus/mcp-tasks"
QUEUES = f"arn:<AWS::Partition>:sqs:{REGION}:{ACCOUNT}:mcp-tasks-*"
EXECUTION_LOG = "/aws/vendedlogs/states/mcp-tasks"
MACHINES = [state_machine(f"mcp-tasks-{name}") for name in ("estimate_savings", "tally_columns")]
TABLES = {"kms:Decrypt", "kms:DescribeKey"}
SENDING = {"kms:Decrypt", "kms:GenerateDataKey"}

KEY_OF: dict[str, tuple[str | int, ...]] = {
    "AWS::DynamoDB::Table": ("SSESpecification", "KMSMasterKeyId"),
    "AWS::SQS::Queue": ("KmsMasterKeyId",),
    "AWS::Events::EventBus": ("KmsKeyIdentifier",),
    "AWS::Lambda::Function": ("KmsKeyArn",),
    "AWS::Logs::LogGroup": ("KmsKeyId",),
    "AWS::S3::Bucket": (
        "BucketEncryption",
        "ServerSideEncryptionConfiguration",
        0,
        "ServerSideEncryptionByDefault",
        "KMSMasterKeyID",
    ),
    "AWS::SecretsManager::Secret": ("KmsKeyId",),
    "AWS::SNS::Topic": ("KmsMasterKeyId",),
    "AWS::StepFunctions::StateMachine": ("EncryptionConfiguration", "KmsKeyId"),
}
"""Resource type -> where it names its key."""
WITHOUT_DATA = {
    "AWS::ApiGateway::Authorizer",
    "AWS::ApiGateway::Deployment",
    "AWS::ApiGateway::DomainName",
    "AWS::ApiGateway::GatewayResponse",
    "AWS::ApiGateway::Method",
    "AWS::ApiGateway::Resource",
    "AWS::ApiGateway::RestApi",
    "AWS::ApiGateway::Stage",
    "AWS::ApiGatewayV2::RoutingRule",
    "AWS::Budgets::Budget",
    "AWS::CertificateManager::Certificate",  # ACM keeps its key, with a key of AWS's
    "AWS::CloudWatch::Alarm",
    "AWS::CloudWatch::Dashboard",
    "AWS::Events::Rule",
    "AWS::IAM::Policy",
    "AWS::IAM::Role",
    "AWS::KMS::Key",
    "AWS::Lambda::EventInvokeConfig",
    "AWS::Lambda::EventSourceMapping",
    "AWS::Lambda::Permission",
    "AWS::Logs::MetricFilter",
    "AWS::Logs::QueryDefinition",
    "AWS::SNS::Subscription",
    "AWS::SNS::TopicPolicy",
    "AWS::Route53::RecordSet",
    "AWS::SQS::QueuePolicy",
    "AWS::S3::BucketPolicy",
    "AWS::Scheduler::Schedule",
    "AWS::Scheduler::ScheduleGroup",
}
"""Resource types that hold no data of callers, or none at rest that takes a key."""


def via(service: str, key: str = "<Encryption/Key.Arn>") -> str:
    return f"{key} where kms:ViaService = {service}.{REGION}.amazonaws.com"


def context_of(*machines: str, key: str = "<Encryption/Key.Arn>") -> str:
    where = "kms:EncryptionContext:aws:states:stateMachineArn"
    return f"{key} where {where} = {' or '.join(machines)}"


USES: dict[str, Grants] = {
    "Api/Role": {
        via("dynamodb"): TABLES,
        via("s3"): SENDING,
        via("secretsmanager"): {"kms:Decrypt"},
        context_of(*MACHINES): {"kms:Decrypt"},
    },
    "SubscriptionsApi/Role": {via("dynamodb"): TABLES, via("s3"): SENDING},
    "Ask/Role": {via("dynamodb"): TABLES},
    "Subtasks/Role": {via("dynamodb"): TABLES, via("s3"): SENDING},
    "Finish/Role": {
        via("dynamodb"): TABLES,
        via("s3"): SENDING,
        context_of(*MACHINES): {"kms:Decrypt"},
        via("sqs"): SENDING,
    },
    "Sweep/Role": {
        via("dynamodb"): TABLES,
        via("s3"): SENDING,
        context_of(*MACHINES): {"kms:Decrypt"},
        via("sqs"): SENDING,
    },
    "Sweep/ScheduleRole": {via("sqs"): SENDING},
    "Publish/Role": {via("dynamodb"): TABLES, via("sqs"): SENDING},
    "Deliver/Role": {via("dynamodb"): TABLES, via("sqs"): {"kms:Decrypt"}},
    "Tools/tally_columns/Worker/Role": {via("dynamodb"): TABLES, via("s3"): SENDING},
    "Tools/estimate_savings/Worker/Role": {via("dynamodb"): TABLES, via("s3"): SENDING},
    "Tools/tally_columns/StateMachineRole": {context_of(MACHINES[1]): SENDING},
    "Tools/estimate_savings/StateMachineRole": {context_of(MACHINES[0]): SENDING},
    "Authorizer/Role": {},
}
"""What the key adds to each role."""


def _with_uses(grants: Mapping[str, Grants], key: str) -> dict[str, Grants]:
    """Grants, and what the key adds to them."""
    return {
        role: {
            **own,
            **{
                resource.replace("<Encryption/Key.Arn>", key): actions
                for resource, actions in USES[role].items()
            },
        }
        for role, own in grants.items()
    }


def _keys(assembly: Assembly) -> dict[str, Any]:
    found = {}
    for kind, where in KEY_OF.items():
        for path, properties in assembly.resources(kind).items():
            value: Any = properties
            for name in where:
                value = value and (value[name] if isinstance(name, int) else value.get(name))
            found[path] = value
    return found


def test_all_data_is_encrypted_with_the_key(with_own_key: Assembly) -> None:
    keys = _keys(with_own_key)
    assert len(keys) > 20
    assert set(keys.values()) == {"<Encryption/Key.Arn>"}


def test_nothing_else_could_be(with_own_key: Assembly) -> None:
    """A resource of a new type has to be listed, as one with data or one without."""
    types = {resource["Type"] for resource in with_own_key.template["Resources"].values()}
    assert types - set(KEY_OF) == WITHOUT_DATA


def test_a_queue_has_one_kind_of_encryption(with_own_key: Assembly) -> None:
    """SQS takes either its own keys or KMS's."""
    for path, queue in with_own_key.resources("AWS::SQS::Queue").items():
        assert "SqsManagedSseEnabled" not in queue, path


def test_the_key_is_rotated_and_outlives_the_stack(with_own_key: Assembly) -> None:
    """The bucket outlives it, too, and a deployment may forget `encryption=customer`. Only a stack
    whose creation fails takes it along.
    """
    (key,) = (
        resource
        for resource in with_own_key.template["Resources"].values()
        if resource["Type"] == "AWS::KMS::Key"
    )
    assert key["Properties"]["EnableKeyRotation"] is True
    assert key["DeletionPolicy"] == "RetainExceptOnCreate"
    assert key["UpdateReplacePolicy"] == "Retain"


def test_the_key_s_policy_lets_in_its_account_and_four_services(with_own_key: Assembly) -> None:
    """The account's own statement leaves it to IAM, where only the roles below may use the key.

    CloudWatch Logs: groups of the stack only (user guide, "Encrypt log data using AWS KMS").
    EventBridge: for the account's queues, whether it names the account or only the queue, and for
    the stack's bus (user guide, "Authorizing EventBridge to use a customer managed key"). Alarms
    and budgets: for topics (SNS developer guide, "Enable compatibility between event sources from
    AWS services and encrypted topics").
    """
    (key,) = with_own_key.resources("AWS::KMS::Key").values()
    account, logs, of_account, queues, bus, topics = key["KeyPolicy"]["Statement"]
    assert account == {
        "Action": "kms:*",
        "Effect": "Allow",
        "Principal": {"AWS": f"arn:<AWS::Partition>:iam::{ACCOUNT}:root"},
        "Resource": "*",
    }
    assert logs == {
        "Action": [
            "kms:Decrypt",
            "kms:DescribeKey",
            "kms:Encrypt",
            "kms:GenerateDataKey*",
            "kms:ReEncrypt*",
        ],
        "Condition": {
            "ArnLike": {
                "kms:EncryptionContext:aws:logs:arn": [
                    f"arn:<AWS::Partition>:logs:{REGION}:{ACCOUNT}:log-group:{name}"
                    for name in ("mcp-tasks-*", EXECUTION_LOG)
                ]
            }
        },
        "Effect": "Allow",
        "Principal": {"Service": f"logs.{REGION}.amazonaws.com"},
        "Resource": "*",
    }
    assert of_account == {
        "Action": ["kms:Decrypt", "kms:DescribeKey", "kms:GenerateDataKey"],
        "Condition": {"StringEquals": {"aws:SourceAccount": ACCOUNT}},
        "Effect": "Allow",
        "Principal": {"Service": "events.amazonaws.com"},
        "Resource": "*",
    }
    assert queues == {
        "Action": ["kms:Decrypt", "kms:GenerateDataKey"],
        "Condition": {"ArnLike": {"kms:EncryptionContext:aws:sqs:arn": QUEUES}},
        "Effect": "Allow",
        "Principal": {"Service": "events.amazonaws.com"},
        "Resource": "*",
    }
    assert bus == {
        "Action": ["kms:Decrypt", "kms:DescribeKey", "kms:GenerateDataKey"],
        "Condition": {
            "StringEquals": {
                "aws:SourceAccount": ACCOUNT,
                "aws:SourceArn": BUS,
                "kms:EncryptionContext:aws:events:event-bus:arn": BUS,
            }
        },
        "Effect": "Allow",
        "Principal": {"Service": "events.amazonaws.com"},
        "Resource": "*",
    }

    assert topics == {
        "Action": ["kms:Decrypt", "kms:GenerateDataKey*"],
        "Condition": {"StringEquals": {"aws:SourceAccount": ACCOUNT}},
        "Effect": "Allow",
        "Principal": {"Service": ["budgets.amazonaws.com", "cloudwatch.amazonaws.com"]},
        "Resource": "*",
    }


def test_log_groups_are_named_as_the_key_s_policy_has_it(traced: Assembly) -> None:
    """CloudFormation names what has no name after the stack."""
    groups = traced.resources("AWS::Logs::LogGroup")
    named = {
        path: group["LogGroupName"] for path, group in groups.items() if "LogGroupName" in group
    }
    assert named == {"Executions/Logs": EXECUTION_LOG}


def test_a_role_may_use_the_key_for_the_data_that_it_reaches_and_for_nothing_else(
    with_own_key: Assembly, behind_a_domain: Assembly
) -> None:
    expected = _with_uses(behind_a_domain.grants(), "<Encryption/Key.Arn>")
    assert with_own_key.grants() == expected


def test_the_key_opens_nothing_to_rules_of_others(
    with_own_key: Assembly, behind_a_domain: Assembly
) -> None:
    """Told of a queue's key, the CDK would name the account in place of the rule."""
    kind = "AWS::SQS::QueuePolicy"
    found = with_own_key.resources(kind)
    found.pop("Events/DeadLetterQueue/Policy")
    assert found == behind_a_domain.resources(kind)


def test_the_bus_keeps_what_it_cannot_decrypt_and_only_it_may_send_there(
    with_own_key: Assembly,
) -> None:
    """EventBridge user guide, "Using dead-letter queues to capture encrypted event errors"."""
    bus = with_own_key.resources("AWS::Events::EventBus")["Events/Bus"]
    assert bus["DeadLetterConfig"] == {"Arn": "<Events/DeadLetterQueue.Arn>"}
    policy = with_own_key.resources("AWS::SQS::QueuePolicy")["Events/DeadLetterQueue/Policy"]
    _, allow = policy["PolicyDocument"]["Statement"]
    assert allow == {
        "Action": "sqs:SendMessage",
        "Condition": {"ArnEquals": {"aws:SourceArn": BUS}},
        "Effect": "Allow",
        "Principal": {"Service": "events.amazonaws.com"},
        "Resource": "<Events/DeadLetterQueue.Arn>",
    }


def test_a_given_key_is_used_and_left_as_it_is(with_given_key: Assembly, on_aws: Assembly) -> None:
    assert set(_keys(with_given_key).values()) == {GIVEN_KEY}
    assert not with_given_key.resources("AWS::KMS::Key")
    assert with_given_key.grants() == _with_uses(on_aws.grants(), GIVEN_KEY)


def _reading(grants: Grants) -> Grants:
    """What is left of a key's grants when it is an earlier key."""
    return {
        resource.replace("<Encryption/Key.Arn>", EARLIER_KEY): actions
        if resource.startswith("<Encryption/Key.Arn> where kms:EncryptionContext")
        else actions & {"kms:Decrypt", "kms:DescribeKey"}
        for resource, actions in grants.items()
    }


def test_what_an_earlier_key_encrypted_can_still_be_read(
    with_earlier_key: Assembly, on_aws: Assembly
) -> None:
    """Stored payloads, messages and secrets; nothing new is encrypted with it, but what a running
    execution goes on with. Nothing names it as its key."""
    own = on_aws.grants()
    assert with_earlier_key.grants() == {
        role: {**own[role], **_reading(USES[role])} for role in own
    }
    assert set(_keys(with_earlier_key).values()) == {None}
    writing = {"kms:GenerateDataKey"}
    assert {
        role
        for role, grants in with_earlier_key.grants().items()
        for resource, actions in grants.items()
        if resource.startswith(EARLIER_KEY) and actions & writing
    } == {
        "Tools/tally_columns/StateMachineRole",
        "Tools/estimate_savings/StateMachineRole",
    }


@pytest.mark.parametrize("value", ["customer", f"{GIVEN_KEY},{GIVEN_KEY}", f" {GIVEN_KEY}"])
def test_an_earlier_key_is_named_by_its_arn(value: str) -> None:
    with pytest.raises(ValueError, match=r"-c earlier_keys=.*ARNs of KMS keys"):
        Context({"earlier_keys": value}.get).text("earlier_keys")


def test_without_the_choice_there_is_no_key(on_aws: Assembly) -> None:
    assert "kms" not in json.dumps(on_aws.grants(), default=list).lower()
    assert not on_aws.resources("AWS::KMS::Key")
    assert set(_keys(on_aws).values()) == {None}
    for path, table in on_aws.resources("AWS::DynamoDB::Table").items():
        assert table["SSESpecification"] == {"SSEEnabled": False}, path
    for path, queue in on_aws.resources("AWS::SQS::Queue").items():
        assert queue["SqsManagedSseEnabled"] is True, path
    for path, machine in on_aws.resources("AWS::StepFunctions::StateMachine").items():
        # An update that leaves it out would keep the key that the state machine has.
        assert machine["EncryptionConfiguration"] == {"Type": "AWS_OWNED_KEY"}, path


@pytest.mark.parametrize(
    "value",
    [
        "none",
        "AWS",
        "alias/mine",
        "arn:aws:kms:eu-west-1:111122223333:alias/mine",
        "arn:aws:iam::111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab",
        f"{GIVEN_KEY} ",
    ],
)
def test_other_values_of_encryption_are_refused(value: str) -> None:
    with pytest.raises(ValueError, match=r"-c encryption=.*aws .*customer .*the ARN of a KMS key"):
        Context({"encryption": value}.get).text("encryption")
