"""The key that `requestState` is sealed with."""

from __future__ import annotations

from aws_cdk import RemovalPolicy
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from .nag import acknowledge

LENGTH = 64
"""Characters, of 62 kinds: more than the 256 bits that are made of them."""


class StateKey(Construct):
    """A secret that Secrets Manager makes, and nobody ever sees.

    To change it (`aws secretsmanager put-secret-value`) refuses the states that clients hold at
    that moment, by and by, as the function's instances are replaced; they begin their request anew.
    """

    def __init__(self, scope: Construct, construct_id: str) -> None:
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
        self.arn = secret.secret_arn
