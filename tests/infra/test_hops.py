"""Every hop has bounded retries, a dead-letter queue with an alarm, and replay outputs."""

from __future__ import annotations

import copy
from typing import Any, Final

import pytest

from tests.infra.assembly import Assembly
from tests.infra.hops import Hops
from tests.infra.test_roles import EVERY_KIND

GONE: Final = object()
STREAM, QUEUE = "Publish/TaskChanges", "Deliver/Function/Queue"
HOPS = [
    "Deliver/Function/Queue",
    "Deliver/ServerChanged",
    "Deliver/TaskChanged",
    "Finish/ExecutionEnded",
    "Publish/TaskChanges",
    "Sweep/Schedule",
    "calls of Finish/Function",
    "calls of Sweep/Function",
]


@pytest.mark.parametrize("name", EVERY_KIND)
def test_no_hop_loses_anything_without_an_alarm(assemblies: dict[str, Assembly], name: str) -> None:
    assert Hops(assemblies[name]).faults == []


def test_these_are_the_hops(on_aws: Assembly) -> None:
    assert sorted(Hops(on_aws).names) == HOPS


def test_a_bus_whose_key_may_be_taken_away_is_one_more(with_own_key: Assembly) -> None:
    """EventBridge user guide, "Using dead-letter queues to capture encrypted event errors"."""
    assert sorted(Hops(with_own_key).names) == sorted([*HOPS, "Events/Bus"])


def _changed(assembly: Assembly, path: str, *edits: tuple[str, Any]) -> Assembly:
    """The assembly with properties of one resource changed; `a.0.b` is inside of lists, too."""
    changed = Assembly(assembly.folder, assembly.stack, None, [])
    template = copy.deepcopy(assembly.template)
    (properties,) = (
        resource["Properties"]
        for name, resource in template["Resources"].items()
        if assembly._path(name) == path
    )
    for where, value in edits:
        *parents, last = where.split(".")
        inside = properties
        for part in parents:
            inside = inside[int(part)] if isinstance(inside, list) else inside[part]
        if value is GONE:
            del inside[last]
        else:
            inside[last] = value
    changed.__dict__["template"] = template
    return changed


@pytest.mark.parametrize(
    ("path", "edit", "fault"),
    [
        (STREAM, ("MaximumRecordAgeInSeconds", -1), "tries for as long as the stream has"),
        (STREAM, ("MaximumRecordAgeInSeconds", GONE), "tries for as long as the stream has"),
        (STREAM, ("DestinationConfig", GONE), "it has no dead-letter queue"),
        (STREAM, ("EventSourceArn", "arn:aws:kafka:::cluster/c"), None),
        ("Deliver/Queue", ("RedrivePolicy.maxReceiveCount", GONE), "retries without end"),
        (
            "Deliver/Queue",
            ("RedrivePolicy.deadLetterTargetArn", GONE),
            "it has no dead-letter queue",
        ),
        (
            "Deliver/TaskChanged",
            ("Targets.0.DeadLetterConfig", GONE),
            "it has no dead-letter queue",
        ),
        ("Finish/ExecutionEnded", ("Targets.0.RetryPolicy.MaximumRetryAttempts", GONE), "no Max"),
        ("Finish/ExecutionEnded", ("Targets.0.RetryPolicy", GONE), "no MaximumEventAgeInSeconds"),
        ("Sweep/Schedule", ("Target.RetryPolicy.MaximumEventAgeInSeconds", GONE), "no Maximum"),
        ("Sweep/Schedule", ("Target.DeadLetterConfig", GONE), "it has no dead-letter queue"),
        ("Sweep/Schedule", ("Target.DeadLetterConfig.Arn", "arn:x"), "arn:x is no queue of the s"),
        ("Finish/OnFailure", ("MaximumRetryAttempts", GONE), "no MaximumRetryAttempts"),
        ("Finish/OnFailure", ("MaximumEventAgeInSeconds", GONE), "no MaximumEventAgeInSeconds"),
        ("Finish/OnFailure", ("DestinationConfig", GONE), "it has no dead-letter queue"),
        ("Finish/OnFailure", ("FunctionName", "another"), "no MaximumRetryAttempts"),
        ("Sweep/OnFailure", ("FunctionName", "another"), "no MaximumRetryAttempts"),
        ("Events/Bus", ("DeadLetterConfig", GONE), "it has no dead-letter queue"),
        ("Publish/DeadLetterQueue", ("MessageRetentionPeriod", GONE), "does not keep messages"),
        ("Sweep/DeadLetterMessages", ("Threshold", 2), "Sweep/DeadLetterQueue has no alarm"),
        ("Publish/DeadLetterMessages", ("Dimensions", []), "Publish/DeadLetterQueue has no alarm"),
        ("Publish/DeadLetterMessages", ("MetricName", "NumberOfMessagesSent"), "has no alarm"),
        (
            "Publish/DeadLetterMessages",
            ("ComparisonOperator", "LessThanThreshold"),
            "has no alarm",
        ),
    ],
)
def test_a_hop_that_could_lose_something_is_named(
    with_own_key: Assembly, path: str, edit: tuple[str, Any], fault: str | None
) -> None:
    faults = Hops(_changed(with_own_key, path, edit)).faults
    if fault is None:
        assert faults == [], "a source of another kind needs what a stream needs, and has it"
    else:
        assert any(fault in found for found in faults), faults


@pytest.mark.parametrize(
    "output", ["PublishDeadLetterQueueUrl", "PublishFunctionName", "DeliverQueueUrl"]
)
def test_a_hop_that_cannot_be_replayed_is_named(on_aws: Assembly, output: str) -> None:
    changed = _changed(on_aws, "Publish/DeadLetterQueue")
    del changed.template["Outputs"][output]
    assert any("cannot be replayed" in fault for fault in Hops(changed).faults)


@pytest.mark.parametrize(
    ("kind", "properties"),
    [("AWS::SNS::Subscription", {"Protocol": "lambda"}), ("AWS::Pipes::Pipe", {})],
)
def test_a_hop_of_a_new_kind_is_named(
    on_aws: Assembly, kind: str, properties: dict[str, str]
) -> None:
    changed = _changed(on_aws, "Publish/DeadLetterQueue")
    metadata = {"aws:cdk:path": "mcp-tasks/New"}
    new = {"Type": kind, "Properties": properties, "Metadata": metadata}
    changed.template["Resources"]["New"] = new
    assert Hops(changed).faults == [f"New: a hop of a kind that this test does not know: {kind}"]


def test_a_function_that_another_service_calls_is_a_hop(on_aws: Assembly) -> None:
    """S3, for instance, which does not wait for an answer."""
    permission = "Finish/ExecutionEnded/AllowEventRulemcptasksFinishFunction"
    found = [p for p in on_aws.resources("AWS::Lambda::Permission") if p.startswith(permission)]
    edits = (("Principal", "s3.amazonaws.com"), ("FunctionName", "arn:of:resize"))
    faults = Hops(_changed(on_aws, found[0], *edits)).faults
    assert "calls of arn:of:resize: it has no dead-letter queue" in faults
