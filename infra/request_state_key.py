"""The key that `requestState` is sealed with."""

from __future__ import annotations

from typing import cast

from aws_cdk import RemovalPolicy
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from .cdk_nag_findings import acknowledge
from .encryption import Encryption
from .grants import allow

LENGTH = 64
"""Characters, of 62 kinds: more than the 256 bits that are made of them."""


class StateKey(Construct):
    """A secret that Secrets Manager makes, and nobody ever sees.

    To change it (`aws secretsmanager put-secret-value`) refuses the states that clients hold at
    that moment, by and by, as the function's instances are replaced; they begin their request anew.
    """

    def __init__(self, scope: Construct, construct_id: str, encryption: Encryption) -> None:
        super().__init__(scope, construct_id)
        secret = secretsmanager.Secret(
            self,
            "Secret",
            description="Seals the state that clients keep between two rounds of a request",
            generate_secret_string=secretsmanager.SecretStringGenerator(
                password_length=LENGTH, exclude_punctuation=True
            ),
            removal_policy=RemovalPolicy.DESTROY,
        )
        acknowledge(
            secret,
            "AwsSolutions-SMG4",
            "Rotation needs a function of its own, and would only refuse requests in flight: what "
            "the key seals is valid for half an hour",
        )
        resource = cast(secretsmanager.CfnSecret, secret.node.default_child)
        if encryption.key:
            # Told of the key, the CDK would let the whole account use it in this service.
            resource.kms_key_id = encryption.key.key_arn
        self._encryption = encryption
        # The attribute: a reference gives the ARN as well, but on the emulator the name.
        self.arn = resource.attr_id

    def allow_reading(self, function: lambda_.Function) -> None:
        """Let it read the key."""
        allow(function, ["secretsmanager:GetSecretValue"], [self.arn])
        self._encryption.allow_reading_secrets(function)
