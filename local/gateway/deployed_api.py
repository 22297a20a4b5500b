"""The API and the API function as they are deployed to the emulator."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from local.deployment import LocalStack
from local.emulator import TRACEBACK_FILE
from local.environment import EMULATOR_VENV

from .lambda_instances import LambdaFunction
from .rest_api import RestApi

SESSION_SECONDS: Final = 30 * 24 * 60 * 60
"""How long the function's credentials are valid. AWS allows 12 hours, the emulator any time."""

FUNCTION_TIMEOUT_SECONDS: Final = 15 * 60
"""The API function's timeout with `-c streaming=true`."""


@dataclass(frozen=True, slots=True)
class DeployedApi:
    """What the gateway serves in the emulator's place."""

    api: RestApi
    function: LambdaFunction

    @classmethod
    def read(cls, stack: LocalStack, aws: Callable[[str], Any]) -> DeployedApi:
        """Read the configuration from the emulator and the code from the CDK's assembly.

        `aws` makes boto3's clients for the emulator. Raises ValueError for an API that checks
        signatures (`auth=iam`).
        """
        assembly = stack.folder / "cdk.out"
        logical_id, resource = _api_function(assembly / f"{stack.name}.template.json")
        file = stack.emulator.tracebacks
        configuration = _configuration(aws("lambda"), f"{stack.name}-{logical_id}")
        function = LambdaFunction(
            name=configuration["FunctionName"],
            arn=configuration["FunctionArn"],
            bundle=assembly / resource["Metadata"]["aws:asset:path"],
            interpreter=EMULATOR_VENV / "bin" / "python",
            environment={
                **configuration["Environment"]["Variables"],
                **stack.emulator.environment,
                **_credentials(aws("sts"), configuration["Role"]),
                **({TRACEBACK_FILE: file} if file else {}),
            },
            # The configured timeout is that of the buffered stack, which the emulator has.
            timeout_seconds=FUNCTION_TIMEOUT_SECONDS,
            memory_mb=configuration["MemorySize"],
            log=stack.folder / "gateway.log",
        )
        return cls(RestApi.read(stack.outputs["ApiId"], aws), function)


def _api_function(template: Path) -> tuple[str, dict[str, Any]]:
    """The logical id and the resource of the API function in a template.

    The assembly may hold bundles of earlier deployments: the template names the current one.
    """
    resources: dict[str, Any] = json.loads(template.read_text())["Resources"]
    (found,) = (
        (logical_id, resource)
        for logical_id, resource in resources.items()
        if resource["Type"] == "AWS::Lambda::Function" and logical_id.startswith("ApiFunction")
    )
    return found


def _configuration(lambda_: Any, prefix: str) -> dict[str, Any]:
    """The configuration of the function whose name begins with `prefix`."""
    configuration: dict[str, Any] = next(
        function
        for page in lambda_.get_paginator("list_functions").paginate()
        for function in page["Functions"]
        if function["FunctionName"].startswith(prefix)
    )
    return configuration


def _credentials(sts: Any, role: str) -> dict[str, str]:
    """Credentials of the function's own role, so that its permissions are checked."""
    credentials = sts.assume_role(
        RoleArn=role, RoleSessionName="local-gateway", DurationSeconds=SESSION_SECONDS
    )["Credentials"]
    return {
        "AWS_ACCESS_KEY_ID": credentials["AccessKeyId"],
        "AWS_SECRET_ACCESS_KEY": credentials["SecretAccessKey"],
        "AWS_SESSION_TOKEN": credentials["SessionToken"],
    }
