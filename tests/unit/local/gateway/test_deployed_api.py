"""What the gateway reads of a deployment: the API and the API function."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from local.deployment import LocalStack
from local.emulator import Emulator
from local.gateway import DeployedApi
from tests.unit.support.rest_api import API_ID, Aws, rest_api


class Lambda:
    """boto3's clients for Lambda and STS, as far as they are called."""

    def get_paginator(self, operation: str) -> Lambda:
        assert operation == "list_functions"
        return self

    def paginate(self) -> Iterator[dict[str, Any]]:
        for name in (
            "mcp-test-Finish1-X",
            "mcp-test-two-ApiFunction9-X",
            "mcp-test-ApiFunction2-X",
        ):
            function = {
                "FunctionName": name,
                "FunctionArn": f"arn:{name}",
                "Timeout": 30,
                "MemorySize": 1024,
                "Environment": {"Variables": {"CELL": "c1"}},
                "Role": f"arn:role/{name}",
            }
            yield {"Functions": [function]}

    def assume_role(self, **request: Any) -> dict[str, Any]:
        names = ("AccessKeyId", "SecretAccessKey", "SessionToken")
        return {"Credentials": {name: f"{name} of {request['RoleArn']}" for name in names}}


def test_the_function_is_run_as_it_is_deployed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Older bundles stay in the same folder: the template names the current one."""
    monkeypatch.setattr("local.deployment.STATE", tmp_path)
    assembly = tmp_path / "test" / "mcp-test" / "cdk.out"
    assembly.mkdir(parents=True)
    function = {"Type": "AWS::Lambda::Function"}
    template = {
        "Resources": {
            "Finish1": {**function, "Metadata": {"aws:asset:path": "asset.finish"}},
            "ApiFunction2": {**function, "Metadata": {"aws:asset:path": "asset.api"}},
            "ApiFunctionLogs3": {"Type": "AWS::Logs::LogGroup"},
        }
    }
    (assembly / "mcp-test.template.json").write_text(json.dumps(template))
    emulator = Emulator("test", 1, 4566)
    stack, api = LocalStack(emulator, "mcp-test", {"ApiId": API_ID}), Aws()
    both = DeployedApi.read(stack, lambda service: api if service == "apigateway" else Lambda())
    assert both.api == rest_api()
    found = both.function
    assert found.name == "mcp-test-ApiFunction2-X"
    assert found.bundle == assembly / "asset.api"
    assert (found.timeout_seconds, found.memory_mb) == (15 * 60, 1024)
    role = "arn:role/mcp-test-ApiFunction2-X"
    assert found.environment == {
        "CELL": "c1",
        **emulator.environment,
        "AWS_ACCESS_KEY_ID": f"AccessKeyId of {role}",
        "AWS_SECRET_ACCESS_KEY": f"SecretAccessKey of {role}",
        "AWS_SESSION_TOKEN": f"SessionToken of {role}",
    }
