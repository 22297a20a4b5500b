"""The bucket for large values: private, encrypted, and it forgets."""

from __future__ import annotations

import pytest

from tests.infra.assembly import Assembly

DEFAULT_DAYS = 30
"""`max_ttl_days`."""
BUCKET = "<Payloads/Bucket.Arn>"
OBJECTS = "arn:<AWS::Partition>:s3:::<Payloads/Bucket>/"


def test_nobody_outside_reads_a_payload_and_nobody_reads_one_without_tls(on_aws: Assembly) -> None:
    ((_, bucket),) = on_aws.resources("AWS::S3::Bucket").items()
    assert bucket["PublicAccessBlockConfiguration"] == dict.fromkeys(
        ("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets"), True
    )
    (rule,) = bucket["OwnershipControls"]["Rules"]
    assert rule == {"ObjectOwnership": "BucketOwnerEnforced"}, "there are no ACLs"
    (policy,) = on_aws.resources("AWS::S3::BucketPolicy").values()
    (statement,) = policy["PolicyDocument"]["Statement"]
    assert statement["Effect"] == "Deny"
    assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


def test_payloads_are_encrypted_with_s3_s_own_key_or_the_stack_s(
    on_aws: Assembly, with_own_key: Assembly
) -> None:
    """A bucket key spares a call to KMS for every object (S3 user guide, "Reducing the cost of
    SSE-KMS with Amazon S3 Bucket Keys")."""
    for assembly, expected in (
        (on_aws, {"ServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}),
        (
            with_own_key,
            {
                "BucketKeyEnabled": True,
                "ServerSideEncryptionByDefault": {
                    "KMSMasterKeyID": "<Encryption/Key.Arn>",
                    "SSEAlgorithm": "aws:kms",
                },
            },
        ),
    ):
        ((_, bucket),) = assembly.resources("AWS::S3::Bucket").items()
        (found,) = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
        assert found == expected


def test_payloads_outlive_the_longest_task_by_little(on_aws: Assembly) -> None:
    ((_, bucket),) = on_aws.resources("AWS::S3::Bucket").items()
    (rule,) = bucket["LifecycleConfiguration"]["Rules"]
    assert rule["Status"] == "Enabled"
    assert not {"Prefix", "TagFilters"} & set(rule), "all of them"
    assert DEFAULT_DAYS < rule["ExpirationInDays"] <= DEFAULT_DAYS + 2
    assert rule["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 1}
    assert "VersioningConfiguration" not in bucket, "what is expired is gone"


def test_a_bucket_stays_with_what_is_in_it_and_only_then(on_aws: Assembly) -> None:
    """S3 deletes only empty buckets; one that no stack ever used is removed all the same
    (CloudFormation user guide, "DeletionPolicy attribute")."""
    (bucket,) = (
        resource
        for resource in on_aws.template["Resources"].values()
        if resource["Type"] == "AWS::S3::Bucket"
    )
    assert bucket["DeletionPolicy"] == "RetainExceptOnCreate"
    assert bucket["UpdateReplacePolicy"] == "Retain"
    assert on_aws.readable(on_aws.template["Outputs"]["PayloadsBucket"]["Value"]) == (
        "<Payloads/Bucket>"
    ), "an operator has to know which"


@pytest.mark.parametrize("name", ["aws", "fork"])
def test_a_worker_reaches_only_what_is_its_tool_s(
    assemblies: dict[str, Assembly], name: str
) -> None:
    """Also where a tool's name begins with another's: `count`, `count.words`."""
    for role, grants in assemblies[name].grants().items():
        if role.endswith("/Worker/Role"):
            tool = role.removeprefix("Tools/").removesuffix("/Worker/Role")
            (resource,) = (resource for resource in grants if "<Payloads/Bucket" in resource)
            assert resource.endswith(f":s3:::<Payloads/Bucket>/{tool}/*")
            assert grants[resource] == {"s3:GetObject", "s3:PutObject"}


@pytest.mark.parametrize("name", ["aws", "domain"])
def test_who_ends_tasks_and_who_tells_of_them_learns_what_is_gone(
    assemblies: dict[str, Assembly], name: str
) -> None:
    """Otherwise S3 says AccessDenied of what is not there, as of what is forbidden (S3 API
    reference, "GetObject", "Permissions"), and neither may be taken for the other.
    """
    grants = assemblies[name].grants()
    listing = {role for role in grants if "s3:ListBucket" in grants[role].get(BUCKET, ())}
    assert listing == {role for role in grants if f"{OBJECTS}*" in grants[role]}
    assert listing >= {"Api/Role", "Finish/Role", "Sweep/Role"}


def test_who_asks_reaches_no_payload(on_aws: Assembly) -> None:
    for role in ("Ask/Role", "Publish/Role", "Deliver/Role"):
        assert not [resource for resource in on_aws.grants()[role] if "s3" in resource]
