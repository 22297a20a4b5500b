"""That API Gateway may call a function before its stage does.

A deployment that begins or stops to use an alias (`infra/rollout.py`) gives API Gateway another
function to call, and each `AWS::Lambda::Permission` is replaced. As the CDK makes it, the
permission refers to the stage, and so comes after it: in between, every request is answered with
500 ("Invalid permissions on Lambda function"). Here it names the stage, and the API's deployment,
which brings the new integrations to the stage, waits for it. The old permission is removed when all
else is updated (CloudFormation user guide, "Understand update behaviors of stack resources").
"""

from __future__ import annotations

from aws_cdk import aws_apigateway as apigateway
from aws_cdk import aws_lambda as lambda_
from constructs import IConstruct


def permissions_in(scope: IConstruct) -> list[lambda_.CfnPermission]:
    """The permissions that the CDK made in a construct: those to call a method's function are in
    the method, and those to call an authorizer's are in its function or alias.
    """
    return [child for child in scope.node.children if isinstance(child, lambda_.CfnPermission)]


def permit_before_deployment(
    api: apigateway.IRestApi, permissions: list[lambda_.CfnPermission]
) -> None:
    """Let an API's deployment wait for permissions. Raises ValueError when there is none."""
    if not permissions or api.latest_deployment is None:
        raise ValueError(f"{api.node.path}: the CDK made no permission, or no deployment")
    api.latest_deployment.node.add_dependency(*permissions)


def permit_method_before_deployment(method: apigateway.Method, stage: str) -> None:
    """Let the deployment wait for the permission to call a method's function at a stage."""
    api, path = method.api, method.resource.path
    permissions = permissions_in(method)
    for permission in permissions:
        permission.source_arn = api.arn_for_execute_api(method.http_method, path, stage)
    permit_before_deployment(api, permissions)
