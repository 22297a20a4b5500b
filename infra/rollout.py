"""How a new version of the functions that answer requests takes over, and how fast they start.

Without any of the three options, API Gateway calls the functions' `$LATEST`, and a deployment
replaces the code at once. Each option needs a published version behind an alias:

`rollout=` shifts requests to the new version of `api` step by step, by AWS CodeDeploy. An alarm
sends all of them back to the old version, and fails the deployment. While requests are shifted,
both versions write the same tables, as they do for seconds in any deployment.

`provisioned=` keeps instances initialized (Lambda developer guide, "Configuring provisioned
concurrency for a function"); `snapstart=on` starts them from a snapshot of an initialized one
("Improving startup performance with Lambda SnapStart"). Both are for the functions that a request
waits for: `api` and, with `auth=oauth`, `authorize`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_codedeploy as codedeploy
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from .cdk_context import Context, refusal
from .cdk_nag_findings import acknowledge

ALIAS: Final = "live"
POLICY: Final = (
    "arn:<AWS::Partition>:iam::aws:policy/service-role/AWSCodeDeployRoleForLambdaLimited"
)


@dataclass(frozen=True, slots=True)
class Rollout:
    """The values of `rollout=`, `provisioned=` and `snapstart=`."""

    deployment_config: str | None = None
    """CodeDeploy's predefined configuration, without its `CodeDeployDefault.Lambda`."""
    provisioned: int = 0
    """Instances that are kept initialized, of each function that a request waits for."""
    snapstart: bool = False

    @classmethod
    def from_context(cls, context: Context, streams: bool) -> Rollout:
        """Read the options. `streams`: whether `api` itself answers in streams.

        Raises ValueError for what Lambda cannot do.
        """
        rollout = cls(
            context.text("rollout") or None,
            context.number("provisioned"),
            context.text("snapstart") == "on",
        )
        if rollout.snapstart and rollout.provisioned:
            raise refusal("snapstart", "on", "Lambda has it without provisioned= only; choose one")
        if rollout.snapstart and streams:
            raise refusal(
                "snapstart",
                "on",
                "the runtime that streams cannot be restored from a snapshot; choose "
                "provisioned=, or a domain=, with which only subscriptions are streamed",
            )
        return rollout

    def check(self, reserved: int | None) -> None:
        """Raise ValueError when `authorize` cannot have its provisioned instances among those that
        it reserves.
        """
        if reserved is not None and self.provisioned > reserved:
            raise refusal(
                "provisioned",
                str(self.provisioned),
                f"more than the {reserved} instances that `authorize` reserves; raise rate=, by "
                "which it reserves, or choose reserved=off",
            )

    def api(self, function: lambda_.Function) -> lambda_.IFunction:
        """What API Gateway calls for a request: the function, or its alias."""
        return self._published(function, bool(self.deployment_config))

    def authorizer(self, function: lambda_.Function) -> lambda_.IFunction:
        """What API Gateway calls to check a token. It is never shifted: a token that two versions
        judge differently would be good for one request and bad for the next.
        """
        return self._published(function, False)

    def _published(self, function: lambda_.Function, shifted: bool) -> lambda_.IFunction:
        if not (shifted or self.provisioned or self.snapstart):
            return function
        if self.snapstart:
            resource = function.node.default_child
            if not isinstance(resource, lambda_.CfnFunction):
                raise TypeError(f"{function.node.path} is not a function of this stack")
            resource.snap_start = lambda_.CfnFunction.SnapStartProperty(
                apply_on="PublishedVersions"
            )
        return lambda_.Alias(
            function,
            "Alias",
            alias_name=ALIAS,
            version=function.current_version,
            provisioned_concurrent_executions=self.provisioned or None,
        )


class GradualRollout(Construct):
    """The CodeDeploy deployment group that shifts an alias to a new version."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        alias: lambda_.Alias,
        deployment_config: str,
        alarms: Sequence[cloudwatch.IAlarm],
    ) -> None:
        super().__init__(scope, construct_id)
        group = codedeploy.LambdaDeploymentGroup(
            self,
            "Group",
            alias=alias,
            deployment_config=codedeploy.LambdaDeploymentConfig.from_lambda_deployment_config_name(
                self, "Config", f"CodeDeployDefault.Lambda{deployment_config}"
            ),
            alarms=list(alarms),
            auto_rollback=codedeploy.AutoRollbackConfig(
                failed_deployment=True, stopped_deployment=True, deployment_in_alarm=True
            ),
        )
        acknowledge(
            group,
            f"AwsSolutions-IAM4[Policy::{POLICY}]",
            "AWS's own policy for CodeDeploy and Lambda, which follows what CodeDeploy does",
        )
