"""The emulator gets the same stack as AWS, except for what infra/deployment_profiles.py lists."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from typing import Any

from infra.deployment_profiles import AWS, LOCAL
from infra.kept_choices import CHOICES
from tests.infra.assembly import Assembly

ABSENT = "absent"
ONLY_ON_AWS = "mcp-tasks/Monitoring/"
"""Alarms that compute, the topic, the dashboard and saved queries: the emulator's CloudFormation
has no metric math and no saved queries. Every other part is on both."""
NOTIFIES = ("<Monitoring/Topic>",)
KEPT = ("AWS::DynamoDB::Table", "AWS::Logs::LogGroup")
POLICIES = ("DeletionPolicy", "UpdateReplacePolicy")

DIFFERENCES = {
    # An alarm notifies the topic, which is ONLY_ON_AWS.
    ("AWS::CloudWatch::Alarm", "AlarmActions"): {(NOTIFIES, ABSENT)},
    ("AWS::CloudWatch::Alarm", "OKActions"): {(NOTIFIES, ABSENT)},
    # One process per instance: a first burst of calls would start dozens, which takes seconds.
    ("AWS::Lambda::Function", "ReservedConcurrentExecutions"): {(ABSENT, 10), (20, 10), (3, 10)},
    ("AWS::Lambda::EventSourceMapping", "ScalingConfig.MaximumConcurrency"): {(20, 10)},
    # Pages of this machine may call a server that only this machine can reach.
    ("AWS::Lambda::Function", "Environment.Variables.ALLOWED_ORIGINS"): {
        ("", "http://localhost:* http://127.0.0.1:*")
    },
    # A page that made its own name resolve to this machine must not; AWS's names are AWS's.
    ("AWS::Lambda::Function", "Environment.Variables.ALLOWED_HOSTS"): {
        ("", "localhost:* 127.0.0.1:* *.execute-api.localhost:*")
    },
    # Whoever can reach the emulator can do all else on this machine, too.
    ("AWS::ApiGateway::Method", "AuthorizationType"): {("AWS_IAM", "NONE")},
    ("AWS::Lambda::Function", "Environment.Variables.AUTH"): {("iam", "none")},
    # The data of the emulator ends with it.
    **{(kind, name): {("Retain", "Delete")} for kind in KEPT for name in POLICIES},
    **{(kind, "DeletionProtectionEnabled"): {(True, False)} for kind in KEPT},
}
"""Resource type and property -> its values on AWS and here."""


def _normalised(assembly: Assembly) -> dict[str, Any]:
    """The template without what follows from the code's bytes and from other properties, without
    what is ONLY_ON_AWS, and without what is there for web pages because ALLOWED_ORIGINS names some
    (`test_cors.py`).

    The functions' code is built for another Python and machine (`Profile.target`), and the id of
    API Gateway's deployment is a hash of its methods.
    """
    template: dict[str, Any] = assembly.readable(assembly.template)
    template["Outputs"].pop("AlarmTopic", None)
    template["Resources"] = {
        name: resource
        for name, resource in template["Resources"].items()
        if not resource["Metadata"]["aws:cdk:path"].startswith(ONLY_ON_AWS)
        and "/OPTIONS/" not in resource["Metadata"]["aws:cdk:path"]
    }
    for resource in template["Resources"].values():
        if resource["Type"] == "AWS::ApiGateway::GatewayResponse":
            headers = resource["Properties"].pop("ResponseParameters", {})
            resource["Properties"]["ResponseParameters"] = {
                name: value for name, value in headers.items() if "Access-Control" not in name
            }
        if "DependsOn" in resource:
            resource["DependsOn"] = [n for n in resource["DependsOn"] if "OPTIONS" not in n]
    for resource in template["Resources"].values():
        code = resource["Properties"].get("Code")
        if code:
            code["S3Key"] = re.sub(r"^[0-9a-f]{64}\.zip$", "<code>", code["S3Key"])
    return {
        **template,
        "Resources": {
            re.sub(r"(Deployment[0-9A-F]{8})[0-9a-f]{32}$", r"\1", name): resource
            for name, resource in template["Resources"].items()
        },
    }


def _differences(aws: Any, local: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(aws, dict) and isinstance(local, dict):
        for key in sorted(aws.keys() | local.keys()):
            yield from _differences(aws.get(key, ABSENT), local.get(key, ABSENT), (*path, key))
    elif aws != local:
        yield path, aws, local


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def test_the_local_template_differs_only_in_what_is_listed(
    on_aws: Assembly, on_this_machine: Assembly
) -> None:
    resources = _normalised(on_aws)["Resources"]
    found: dict[tuple[str, str], set[tuple[Any, Any]]] = {}
    for path, aws, local in _differences(_normalised(on_aws), _normalised(on_this_machine)):
        if path[:2] == ("Metadata", CHOICES):
            continue  # what was chosen, which the resources show
        assert path[0] == "Resources", path
        kind = resources[path[1]]["Type"]
        name = ".".join(path[3:] if path[2] == "Properties" else path[2:])
        found.setdefault((kind, name), set()).add((_hashable(aws), _hashable(local)))
    assert found == DIFFERENCES


def test_the_profiles_differ_only_in_fields_that_are_accounted_for() -> None:
    differing = {
        field.name
        for field in dataclasses.fields(AWS)
        if getattr(AWS, field.name) != getattr(LOCAL, field.name)
    }
    in_the_template = {"reserved_concurrency", "allowed_origins", "allowed_hosts", "auth"}
    outside_of_it = {"name", "target", "checked", "loopback", "monitored"}
    assert differing == in_the_template | outside_of_it | {"data"}
    of_data = [kind for kind, _ in DIFFERENCES if kind in KEPT]
    assert len(DIFFERENCES) - len(of_data) == len(in_the_template) + len(
        [
            "who may call is there twice",
            "concurrency is there twice",
            "that an alarm rings and that it ends",
            "both of which go to the topic",
        ]
    )


def test_the_emulator_s_functions_share_their_limits_with_aws(
    on_aws: Assembly, on_this_machine: Assembly
) -> None:
    """The roles above all: what is denied on AWS is not found out there."""
    assert on_aws.grants() == on_this_machine.grants()
