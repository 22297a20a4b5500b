"""The key that `requestState` is encrypted with."""

from __future__ import annotations

from typing import Final, cast

from aws_cdk import RemovalPolicy
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from .cdk_nag_findings import acknowledge
from .encryption import Encryption
from .grants import allow

PASSWORD_CHARACTERS: Final = 64
"""Of 62 kinds each: more than the 256 bits of the key that is derived from them."""


class RequestStateKey(Construct):
    """A secret that Secrets Manager generates; it is in no template, log or output.

    After `aws secretsmanager put-secret-value`, the function's new instances refuse the
    `requestState` that clients hold at that moment. Those clients have to send their request anew.
    """

    def __init__(self, scope: Construct, construct_id: str, encryption: Encryption) -> None:
        super().__init__(scope, construct_id)
        secret = secretsmanager.Secret(
            self,
            "Secret",
            description="Encrypts requestState, which clients keep in a multi round-trip request",
            generate_secret_string=secretsmanager.SecretStringGenerator(
                password_length=PASSWORD_CHARACTERS, exclude_punctuation=True
            ),
            removal_policy=RemovalPolicy.DESTROY,
        )
        acknowledge(
            secret,
            "AwsSolutions-SMG4",
            "Rotation needs a function of its own, and would only refuse requests in flight: what "
            "the key encrypts is valid for half an hour",
        )
        resource = cast(secretsmanager.CfnSecret, secret.node.default_child)
        if encryption.key:
            # As an argument of `Secret`, the key would get a policy by which the whole account may
            # use it in Secrets Manager.
            resource.kms_key_id = encryption.key.key_arn
        self._encryption = encryption
        # `Ref` is the ARN on AWS, but the name on the emulator; the attribute is the ARN on both.
        self.arn = resource.attr_id

    def allow_reading(self, function: lambda_.Function) -> None:
        """Allow to read the key."""
        allow(function, ["secretsmanager:GetSecretValue"], [self.arn])
        self._encryption.allow_reading_secrets(function)
