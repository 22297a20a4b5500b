"""An alias that a failed deployment has left split. botocore checks calls and answers."""

from __future__ import annotations

from typing import Any, Final

import pytest
from botocore.session import get_session
from botocore.stub import Stubber

from operations.preflight.alias_routing import RUNNING, find
from operations.preflight.deployment import Deployment

REGION: Final = "eu-west-1"
ALIAS: Final = {"Live": {"Type": "AWS::Lambda::Alias", "Properties": {"Name": "live"}}}
SHIFTED: Final = {
    **ALIAS,
    "App": {"Type": "AWS::CodeDeploy::Application"},
    "Group": {
        "Type": "AWS::CodeDeploy::DeploymentGroup",
        "Properties": {"ApplicationName": {"Ref": "App"}},
    },
}
IDS: Final = {
    "Live": f"arn:aws:lambda:{REGION}:111122223333:function:notes-api:live",
    "App": "notes-app",
    "Group": "notes-group",
}


class Account:
    """An account with the alias, whose calls are answered in this order for each service."""

    def __init__(self, weights: dict[str, float], own: str = "85") -> None:
        self._stubs: dict[str, Stubber] = {}
        self._has("Live")
        found: dict[str, Any] = {"FunctionVersion": own}
        if weights:
            found["RoutingConfig"] = {"AdditionalVersionWeights": weights}
        asked = {"FunctionName": "notes-api", "Name": "live"}
        self._stub("lambda").add_response("get_alias", found, asked)

    def with_deployments(self, *ids: str) -> Account:
        """What CodeDeploy does now."""
        self._has("App")
        self._has("Group")
        self._stub("codedeploy").add_response(
            "list_deployments",
            {"deployments": list(ids)},
            {
                "applicationName": "notes-app",
                "deploymentGroupName": "notes-group",
                "includeOnlyStatuses": list(RUNNING),
            },
        )
        return self

    def client(self, service: str) -> Any:
        """Only for a service that is asked."""
        return self._stubs[service].client

    def _has(self, name: str) -> None:
        detail = {
            "LogicalResourceId": name,
            "PhysicalResourceId": IDS[name],
            "ResourceType": "x",
            "LastUpdatedTimestamp": "2026-01-01T00:00:00Z",
            "ResourceStatus": "UPDATE_COMPLETE",
        }
        self._stub("cloudformation").add_response(
            "describe_stack_resource",
            {"StackResourceDetail": detail},
            {"StackName": "notes", "LogicalResourceId": name},
        )

    def _stub(self, service: str) -> Stubber:
        if service not in self._stubs:
            client = get_session().create_client(
                service, region_name=REGION, aws_access_key_id="x", aws_secret_access_key="x"
            )
            self._stubs[service] = Stubber(client)
            self._stubs[service].activate()
        return self._stubs[service]


def deployment(
    account: Account, deployed: dict[str, Any], wanted: dict[str, Any] = ALIAS
) -> Deployment:
    """A deployment of a template to an account that has another."""
    found = Deployment("notes", {"Resources": wanted}, account.client, REGION)
    found.__dict__["deployed"] = {"Resources": deployed}
    return found


def test_an_alias_of_one_version_is_deployed_to() -> None:
    found = find(deployment(Account({}), ALIAS))
    assert (found.refused, found.text) == (False, "")


@pytest.mark.parametrize(
    ("own", "weights", "kept", "said"),
    [
        ("85", {"84": 1.0}, "84", "version 85: 0%, version 84: 100%"),
        ("84", {"85": 0.1}, "84", "version 84: 90%, version 85: 10%"),
    ],
)
def test_a_split_that_nothing_shifts_is_refused_with_the_command(
    own: str, weights: dict[str, float], kept: str, said: str
) -> None:
    """The version that answers now goes on to answer: the other one may be what fails."""
    found = find(deployment(Account(weights, own), ALIAS))
    assert found.refused
    assert f"notes-api:live  {said}" in found.text
    assert found.text.endswith(
        "    aws lambda update-alias --region eu-west-1 --function-name notes-api \\\n"
        f"        --name live --function-version {kept} --routing-config '{{}}'"
    )


def test_a_rollout_that_has_ended_does_not_excuse_it() -> None:
    account = Account({"84": 0.9}).with_deployments()
    assert find(deployment(account, SHIFTED)).refused


def test_a_rollout_that_goes_on_is_only_told() -> None:
    account = Account({"85": 0.1}).with_deployments("d-1")
    found = find(deployment(account, SHIFTED))
    assert not found.refused
    assert "CodeDeploy shifts requests to a new version now" in found.text


@pytest.mark.parametrize(
    ("deployed", "wanted"), [({}, ALIAS), (ALIAS, {})], ids=["a new alias", "one that goes"]
)
def test_nobody_is_asked_about_an_alias_that_does_not_stay(
    deployed: dict[str, Any], wanted: dict[str, Any]
) -> None:
    class Nobody(Account):
        def __init__(self) -> None:
            self._stubs = {}

    assert find(deployment(Nobody(), deployed, wanted)).text == ""
