"""What the bill says is in every stack (`operations/costs/usage.py`) is in the templates."""

from __future__ import annotations

from typing import Any, Final

import pytest

from operations.costs import usage
from operations.costs.calls import INDEX_WRITES_OF_CREATE
from operations.costs.load import Load
from tests.infra.assembly import Assembly

OF_A_SECOND_API: Final = 4
"""What streamed subscriptions at a domain bring."""


def alarm_metrics(assembly: Assembly) -> int:
    """How many metrics the alarms use. A query is one, whatever it finds."""
    found = 0
    for alarm in assembly.resources("AWS::CloudWatch::Alarm").values():
        metrics = alarm.get("Metrics", [])
        found += max(1, sum("MetricStat" in metric for metric in metrics))
    return found


@pytest.mark.parametrize(
    ("job", "auth", "more"),
    [
        ("aws", "iam", 0),
        ("streaming", "oauth", 0),
        ("own key", "oauth", usage.KEY_ALARM_METRICS + OF_A_SECOND_API),
    ],
)
def test_alarms_use_as_many_metrics_as_the_bill_has(
    assemblies: dict[str, Assembly], job: str, auth: Any, more: int
) -> None:
    assert alarm_metrics(assemblies[job]) == usage.ALARM_METRICS[auth] + more


def test_these_alarms_are_there_without_the_others(traced: Assembly) -> None:
    assert alarm_metrics(traced) == usage.KEPT_ALARM_METRICS + usage.KEY_ALARM_METRICS


def test_the_bill_has_every_key_and_secret(with_own_key: Assembly, open_server: Assembly) -> None:
    for assembly, load in (
        (with_own_key, Load(encryption="customer")),
        (open_server, Load(log_messages="on")),
    ):
        billed = {each.price: each.quantity for each in usage.usage(load)}
        assert len(assembly.resources("AWS::KMS::Key")) == billed["kms_key"]
        assert len(assembly.resources("AWS::SecretsManager::Secret")) == billed["secret"]


def test_tables_with_recovery_and_indexes_are_those_of_the_bill(on_aws: Assembly) -> None:
    tables = on_aws.resources("AWS::DynamoDB::Table")
    indexes = tables["Tasks/Table"]["GlobalSecondaryIndexes"]
    assert len(indexes) == INDEX_WRITES_OF_CREATE
    assert {index["Projection"]["ProjectionType"] for index in indexes} == {"KEYS_ONLY"}
    sizes = {
        path.partition("/")[0].removeprefix("Tools/"): function["MemorySize"]
        for path, function in on_aws.resources("AWS::Lambda::Function").items()
        if not path.startswith("Tools/")
    }
    assert (sizes["Api"], sizes["Finish"], sizes["Sweep"]) == (1024, 1024, 1024)
    assert (sizes["Publish"], sizes["Deliver"]) == (usage.OTHER_MB, usage.OTHER_MB)
