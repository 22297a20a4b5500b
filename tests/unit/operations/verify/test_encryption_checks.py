"""Whether everything of an account names the KMS key, and who may use the key."""

from __future__ import annotations

import json
from typing import Any

import pytest

from infra.kept_choices import CHOICES
from operations.verify.check import Outcome, outcome_of
from operations.verify.encryption_checks import CHECKS, KEY_OF
from tests.infra import test_encryption
from tests.unit.operations.verify.account import Account

POLICY, ENCRYPTED = CHECKS
ID = "1234abcd-12ab-34cd-56ef-1234567890ab"
KEY = f"arn:aws:kms:eu-west-1:111122223333:key/{ID}"
OTHER = KEY.replace("1234abcd", "ffffffff")
QUEUE = "https://sqs.eu-west-1.amazonaws.com/111122223333/notes-queue"
SECRET = "arn:aws:secretsmanager:eu-west-1:111122223333:secret:key-1"
TOPIC = "arn:aws:sns:eu-west-1:111122223333:notes-topic"
RESOURCES = (
    ("AWS::KMS::Key", "EncryptionKey1A", ID),
    ("AWS::KMS::Key", "TracebacksKey1A", "of-messages"),
    ("AWS::Logs::LogGroup", "TracebacksLogs1A", "notes-TracebacksLogs1A"),
    ("AWS::SQS::Queue", "DeliverQueue1A", QUEUE),
    ("AWS::S3::Bucket", "PayloadsBucket1A", "notes-payloads"),
    ("AWS::Events::EventBus", "EventsBus1A", "notes"),
    ("AWS::SecretsManager::Secret", "ApiKey1A", SECRET),
    ("AWS::SNS::Topic", "MonitoringTopic1A", TOPIC),
    ("AWS::Budgets::Budget", "MonitoringBudgetMonth", "notes-budget"),
)


def allow(service: str, *actions: str, **more: Any) -> dict[str, Any]:
    principal = {"Service": f"{service}.amazonaws.com"}
    return {"Effect": "Allow", "Principal": principal, "Action": list(actions)} | more


SEND = ("kms:GenerateDataKey*", "kms:Decrypt")
ROOT = {"AWS": "arn:aws:iam::111122223333:root"}
STATEMENTS = {
    "account": {"Effect": "Allow", "Principal": ROOT, "Action": "kms:*"},
    "events": allow("events", "kms:GenerateDataKey", "kms:Decrypt", "kms:DescribeKey"),
    "logs": allow("logs.eu-west-1", *SEND, "kms:Encrypt", "kms:ReEncrypt*", "kms:DescribeKey"),
    "topic": allow("x", *SEND)
    | {"Principal": {"Service": ["cloudwatch.amazonaws.com", "budgets.amazonaws.com"]}},
}


def policy(**changed: Any) -> dict[str, Any]:
    """The key's policy; a statement that is None is left out."""
    statements = [each for each in (STATEMENTS | changed).values() if each]
    return {"Policy": json.dumps({"Version": "2012-10-17", "Statement": statements})}


def chosen(encryption: str) -> dict[str, Any]:
    choices = {"data": "retain", "encryption": encryption, "earlier_keys": ""}
    return {"TemplateBody": {"Metadata": {CHOICES: choices}}}


def naming(kind: str, key: str | None) -> dict[str, Any]:
    """The answer about a resource of a type, which names this key, as its service words it."""

    def named(member: str) -> dict[str, Any]:
        return {member: key} if key else {}

    group = {"logGroupName": "physical-ApiLogs", **named("kmsKeyId")}
    kms = {"SSEAlgorithm": "aws:kms" if key else "AES256", **named("KMSMasterKeyID")}
    machine = {"type": "CUSTOMER_MANAGED_KMS_KEY" if key else "AWS_OWNED_KEY", **named("kmsKeyId")}
    answers: dict[str, dict[str, Any]] = {
        "AWS::DynamoDB::Table": {
            "describe_table": {"Table": {"SSEDescription": named("KMSMasterKeyArn")}}
        },
        "AWS::SQS::Queue": {"get_queue_attributes": {"Attributes": named("KmsMasterKeyId")}},
        "AWS::S3::Bucket": {
            "get_bucket_encryption": {
                "ServerSideEncryptionConfiguration": {
                    "Rules": [{"ApplyServerSideEncryptionByDefault": kms}]
                }
            }
        },
        "AWS::Events::EventBus": {
            "describe_event_bus": {"Name": "notes"} | named("KmsKeyIdentifier")
        },
        "AWS::Logs::LogGroup": {"describe_log_groups": {"logGroups": [group]}},
        "AWS::StepFunctions::StateMachine": {
            "describe_state_machine": {"name": "m", "encryptionConfiguration": machine}
        },
        "AWS::Lambda::Function": {"get_function_configuration": named("KMSKeyArn")},
        "AWS::SecretsManager::Secret": {"describe_secret": named("KmsKeyId")},
        "AWS::SNS::Topic": {"get_topic_attributes": {"Attributes": named("KmsMasterKeyId")}},
    }
    return answers[kind]


GOOD: dict[str, Any] = {
    "get_template": chosen("customer"),
    "describe_key": {"KeyMetadata": {"KeyId": ID, "Arn": KEY, "KeyState": "Enabled"}},
    "get_key_policy": policy(),
    "get_key_rotation_status": {"KeyRotationEnabled": True},
}
for each in KEY_OF:
    GOOD |= naming(each, KEY)


def seen(check: Any, **wrong: Any) -> Outcome:
    return outcome_of(check, Account(*RESOURCES, **GOOD | wrong).deployed())


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.title)
def test_a_stack_with_its_own_key_passes(check: Any) -> None:
    assert seen(check).verdict == "passed", seen(check)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.title)
def test_without_a_key_there_is_nothing_to_see(check: Any) -> None:
    outcome = seen(check, get_template=chosen("aws"))
    assert (outcome.verdict, "encryption=aws" in outcome.seen) == ("not tried", True)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (policy(events=None), "kms:GenerateDataKey by events.amazonaws.com"),
        (policy(logs=None), "kms:Encrypt by logs.eu-west-1.amazonaws.com"),
        (policy(topic=None), "kms:Decrypt by cloudwatch.amazonaws.com"),
        (policy(topic=None), "kms:Decrypt by budgets.amazonaws.com"),
        (policy(logs=allow("logs.us-east-1", *SEND)), "kms:Decrypt by logs.eu-west-1.amazonaws.c"),
        (policy(events=allow("events", *SEND)), "not allow kms:DescribeKey by events.amazonaws"),
        (
            policy(events=STATEMENTS["events"] | {"Effect": "Deny"}),
            "kms:Decrypt by events.amazonaws.com",
        ),
    ],
)
def test_a_service_that_may_not_use_the_key_is_named(wrong: dict[str, Any], said: str) -> None:
    outcome = seen(POLICY, get_key_policy=wrong)
    assert outcome.verdict == "FAILED"
    assert said in outcome.seen


def test_a_topic_of_somebody_else_needs_nothing_of_the_key() -> None:
    without = [each for each in RESOURCES if each[0] != "AWS::SNS::Topic"]
    answers = GOOD | {"get_key_policy": policy(topic=None)}
    outcome = outcome_of(POLICY, Account(*without, **answers).deployed())
    assert (outcome.verdict, outcome.seen) == ("passed", "2 services may use it; it rotates")


def test_only_the_stacks_own_key_has_to_rotate() -> None:
    """A key with material from elsewhere cannot (KMS developer guide, "Rotate AWS KMS keys")."""
    still = {"KeyRotationEnabled": False}
    assert seen(POLICY, get_key_rotation_status=still).seen == f"{KEY} does not rotate"
    given = [each for each in RESOURCES if each[1] != "EncryptionKey1A"]
    answers = GOOD | {"get_template": chosen(KEY), "get_key_rotation_status": still}
    outcome = outcome_of(POLICY, Account(*given, **answers).deployed())
    assert (outcome.verdict, outcome.seen) == (
        "passed",
        "4 services may use it; it does not rotate",
    )


@pytest.mark.parametrize("kind", KEY_OF)
@pytest.mark.parametrize(("key", "said"), [(None, "(no key of yours)"), (OTHER, f"({OTHER})")])
def test_what_does_not_name_the_key_is_found(kind: str, key: str | None, said: str) -> None:
    outcome = seen(ENCRYPTED, **naming(kind, key))
    assert outcome.verdict == "FAILED"
    assert said in outcome.seen


@pytest.mark.parametrize("kind", KEY_OF)
def test_a_key_may_be_named_by_its_id(kind: str) -> None:
    assert seen(ENCRYPTED, **naming(kind, ID)).verdict == "passed"


def test_what_is_read_is_what_the_template_encrypts() -> None:
    assert set(KEY_OF) == set(test_encryption.KEY_OF)


def test_messages_have_a_key_of_their_own() -> None:
    account = Account(*RESOURCES, **GOOD)
    outcome_of(ENCRYPTED, account.deployed())
    groups = [words for name, words in account.asked if name == "describe_log_groups"]
    assert groups == [{"logGroupNamePrefix": "physical-ApiLogs"}]
