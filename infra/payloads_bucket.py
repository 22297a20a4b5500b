"""The bucket for payloads: values that are too large for a task's row or for Step Functions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from aws_cdk import Duration, RemovalPolicy, Stack
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from constructs import Construct

from .cdk_nag_findings import acknowledge, acknowledge_wildcard
from .encryption import Encryption
from .grants import allow, role_of

EXTRA_DAYS: Final = timedelta(days=2)
"""How much longer an object is kept than the longest task: S3 counts days from midnight to
midnight, and the sweeper still needs payloads on the last day of a row."""


class PayloadsBucket(Construct):
    """A private bucket whose objects expire. Their keys are `<tool>/<task id>/<random>`.

    It remains when the stack is removed: S3 removes only empty buckets, and a function that empties
    one for CloudFormation would have more permissions than all others here.
    """

    def __init__(
        self, scope: Construct, construct_id: str, encryption: Encryption, max_ttl: timedelta
    ) -> None:
        super().__init__(scope, construct_id)
        self._encryption = encryption
        self._bucket = s3.Bucket(
            self,
            "Bucket",
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            enforce_ssl=True,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            lifecycle_rules=[
                s3.LifecycleRule(
                    id="ExpirePayloads",
                    expiration=Duration.days((max_ttl + EXTRA_DAYS).days),
                    abort_incomplete_multipart_upload_after=Duration.days(1),
                )
            ],
            # A stack whose creation fails leaves no bucket behind.
            removal_policy=RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
            **encryption.of_a_bucket,
        )
        acknowledge(
            self._bucket,
            "AwsSolutions-S1",
            "Server access logs need a bucket of their own, which would outlive the stack as well; "
            "who may read what is in the functions' roles, and CloudTrail can log the rest",
        )

    @property
    def name(self) -> str:
        """The bucket's name."""
        return self._bucket.bucket_name

    def allow(self, function: lambda_.Function, actions: Sequence[str], prefix: str) -> None:
        """Allow actions, for instance `s3:GetObject`, on the objects whose keys begin with
        `prefix`.

        Without a prefix, it also allows to list the bucket. S3 answers NoSuchKey for a missing
        object only to principals that may list the bucket, and AccessDenied to others (S3 API
        reference, "GetObject", "Permissions").
        """
        resource = Stack.of(self).format_arn(
            service="s3",
            region="",
            account="",
            resource=self.name,
            resource_name=f"{prefix}*",
        )
        allow(function, actions, [resource])
        acknowledge_wildcard(
            role_of(function), resource, "Keys end in a task's id and 128 random bits"
        )
        self._encryption.allow_using_objects(function)
        if not prefix:
            allow(function, ["s3:ListBucket"], [self._bucket.bucket_arn])
