"""Has an earlier deployment left an alias with requests split between two versions?

An alias with `provisioned=` keeps its old version answering, by a weight, until the new version's
instances are initialized. When a version's initialization fails, the weight stays, and Lambda
refuses every later deployment, also of code that is mended: "Invalid alias configuration for
Provisioned Concurrency", or "Alias with weights can not be used with Provisioned Concurrency"
(gradientedge/cdk-utils, pull request 1110; aws/serverless-application-model, issue 1296). An alias
that CodeDeploy shifts has a weight while it does, and a deployment waits for that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from .check import Check, Finding
from .deployment import Deployment

ALIAS: Final = "AWS::Lambda::Alias"
GROUP: Final = "AWS::CodeDeploy::DeploymentGroup"
RUNNING: Final = ("Created", "Queued", "InProgress", "Baking", "Ready")
"""The statuses of a deployment that has not ended (CodeDeploy API reference, "ListDeployments")."""


def find(deployment: Deployment) -> Finding:
    """Read the aliases that the deployed stack has and keeps."""
    split = {}
    for name in _both(deployment, ALIAS):
        # A physical id is the alias's ARN: arn:aws:lambda:REGION:ACCOUNT:function:FUNCTION:ALIAS.
        function, alias = deployment.resource(name)["PhysicalResourceId"].split(":")[-2:]
        found = deployment.client("lambda").get_alias(FunctionName=function, Name=alias)
        weights = found.get("RoutingConfig", {}).get("AdditionalVersionWeights", {})
        if weights:
            split[function, alias] = {
                found["FunctionVersion"]: 1 - sum(weights.values()),
                **weights,
            }
    if not split:
        return Finding("")
    if _shifting(deployment):
        return Finding(
            "WARNING: CodeDeploy shifts requests to a new version now. Deploy when it has ended"
        )
    return Finding(_refusal(split, deployment.region), refused=True)


def _both(deployment: Deployment, kind: str) -> list[str]:
    """The resources of a type that are deployed and stay."""
    before, after = (
        {name for name, each in template.get("Resources", {}).items() if each["Type"] == kind}
        for template in (deployment.deployed, deployment.template)
    )
    return sorted(before & after)


def _shifting(deployment: Deployment) -> bool:
    """Whether CodeDeploy has a deployment of the stack that has not ended."""
    resources: Mapping[str, Any] = deployment.deployed["Resources"]
    for name, resource in resources.items():
        if resource["Type"] == GROUP:
            application = resource["Properties"]["ApplicationName"]["Ref"]
            listed = deployment.client("codedeploy").list_deployments(
                applicationName=deployment.resource(application)["PhysicalResourceId"],
                deploymentGroupName=deployment.resource(name)["PhysicalResourceId"],
                includeOnlyStatuses=list(RUNNING),
            )
            if listed["deployments"]:
                return True
    return False


def _refusal(split: Mapping[tuple[str, str], Mapping[str, float]], region: str) -> str:
    lines = "\n".join(
        f"    {function}:{alias}  "
        + ", ".join(f"version {version}: {share:.0%}" for version, share in shares.items())
        for (function, alias), shares in split.items()
    )
    commands = "\n".join(
        f"    aws lambda update-alias --region {region} --function-name {function} \\\n"
        f"        --name {alias} --function-version {max(shares, key=shares.__getitem__)} "
        "--routing-config '{}'"
        for (function, alias), shares in split.items()
    )
    return f"""\
an alias splits its requests between two versions, and nothing shifts them:
{lines}

An earlier deployment has left it so, whose new version failed to initialize. Lambda refuses to
change such an alias: "Invalid alias configuration for Provisioned Concurrency". Send all requests
to the version that answers most of them, and deploy again:
{commands}"""


CHECK: Final = Check("an alias splits its requests between two versions", find)
