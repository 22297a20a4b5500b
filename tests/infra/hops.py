"""Every call that no caller waits for (a hop): its retries, dead-letter queue, alarm and outputs.

A hop that a fork adds is found here, too. What it needs is what `infra/dead_letter_queue.py` gives:
bounded retries, a dead-letter queue with an alarm, and outputs by which `make replay` finds both
ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tests.infra.assembly import Assembly

FOURTEEN_DAYS = 14 * 24 * 3600
WAITS = "apigateway.amazonaws.com"
"""The one service that calls functions and waits; Step Functions does so with a role."""
NOT_KNOWN = ("AWS::SNS::Subscription", "AWS::Pipes::Pipe", "AWS::Events::Archive", "AWS::IoT::")
"""Hops of kinds that this stack does not have. A fork that adds one adds a check for it here."""


class Hops:
    """The hops of a stack. `names` are all that were found, `faults` what is wrong with them."""

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly
        self._queues = assembly.resources("AWS::SQS::Queue")
        self._calls = {
            config["FunctionName"]: config
            for config in assembly.resources("AWS::Lambda::EventInvokeConfig").values()
        }
        outputs = assembly.template.get("Outputs", {})
        self._outputs = {k: assembly.readable(v["Value"]) for k, v in outputs.items()}
        self.names: list[str] = []
        self.faults: list[str] = []
        for name, found in self._all():
            self.names.append(name)
            self.faults += [f"{name}: {fault}" for fault in found]

    def _all(self) -> Iterator[tuple[str, list[str]]]:
        of = self._assembly.resources
        for path, mapping in of("AWS::Lambda::EventSourceMapping").items():
            yield path, list(self._mapping(mapping))
        for path, rule in of("AWS::Events::Rule").items():
            for target in rule["Targets"]:
                yield path, list(self._target(target))
        for path, schedule in of("AWS::Scheduler::Schedule").items():
            yield path, list(self._target(schedule["Target"]))
        for path, bus in of("AWS::Events::EventBus").items():
            if "KmsKeyIdentifier" in bus:
                yield path, list(self._kept(bus.get("DeadLetterConfig", {}).get("Arn")))
        for function in sorted(self._called()):
            yield f"calls of {function}", list(self._call(self._calls.get(f"<{function}>", {})))
        for name, resource in self._assembly.template["Resources"].items():
            if resource["Type"].startswith(NOT_KNOWN) and not _tells_people(resource):
                yield name, [f"a hop of a kind that this test does not know: {resource['Type']}"]

    def _called(self) -> set[str]:
        """The functions that something calls without waiting for them."""
        found = {function.strip("<>") for function in self._calls}
        for permission in self._assembly.resources("AWS::Lambda::Permission").values():
            if permission["Principal"] != WAITS:
                found.add(_path(permission["FunctionName"]))
        targets = [
            s["Target"] for s in self._assembly.resources("AWS::Scheduler::Schedule").values()
        ]
        functions = self._assembly.resources("AWS::Lambda::Function")
        return found | {_path(t["Arn"]) for t in targets if _path(t["Arn"]) in functions}

    def _mapping(self, mapping: Mapping[str, Any]) -> Iterator[str]:
        """Lambda developer guide, "How Lambda processes records from stream and queue-based event
        sources".
        """
        source = _path(mapping["EventSourceArn"])
        if source in self._queues:
            redrive = self._queues[source].get("RedrivePolicy", {})
            if "maxReceiveCount" not in redrive:
                yield "its queue retries without end"
            yield from self._kept(redrive.get("deadLetterTargetArn"))
            return
        limits = (mapping.get("MaximumRetryAttempts"), mapping.get("MaximumRecordAgeInSeconds"))
        if all(limit in (None, -1) for limit in limits):
            yield "tries for as long as the stream has the record, and holds up what comes after it"
        yield from self._kept(_on_failure(mapping))

    def _target(self, target: Mapping[str, Any]) -> Iterator[str]:
        """EventBridge's defaults are its most; here they are written down."""
        policy = target.get("RetryPolicy", {})
        for limit in ("MaximumRetryAttempts", "MaximumEventAgeInSeconds"):
            if limit not in policy:
                yield f"no {limit}"
        yield from self._kept(target.get("DeadLetterConfig", {}).get("Arn"))

    def _call(self, config: Mapping[str, Any]) -> Iterator[str]:
        for limit in ("MaximumRetryAttempts", "MaximumEventAgeInSeconds"):
            if limit not in config:
                yield f"no {limit}"
        yield from self._kept(_on_failure(config))

    def _kept(self, arn: str | None) -> Iterator[str]:
        """What the queue needs that an ARN names."""
        if arn is None:
            yield "it has no dead-letter queue"
            return
        queue = _path(arn)
        if queue not in self._queues:
            yield f"{arn} is no queue of the stack"
            return
        if self._queues[queue].get("MessageRetentionPeriod") != FOURTEEN_DAYS:
            yield f"{queue} does not keep messages for as long as SQS can"
        if not any(
            _rings(a, queue) for a in self._assembly.resources("AWS::CloudWatch::Alarm").values()
        ):
            yield f"{queue} has no alarm"
        hops = [
            k.removesuffix("DeadLetterQueueUrl")
            for k, v in self._outputs.items()
            if v == f"<{queue}>"
        ]
        ends = [{f"{hop}FunctionName", f"{hop}QueueUrl", *_bus(hop)} for hop in hops]
        if not any(names & set(self._outputs) for names in ends):
            yield f"{queue} cannot be replayed: the outputs do not say so"


def _tells_people(resource: Mapping[str, Any]) -> bool:
    """Whether an alarm is sent by e-mail. SNS tries for six hours (SNS developer guide, "Amazon SNS
    message delivery retries"); an alarm that rings stays in CloudWatch."""
    protocol: str = resource.get("Properties", {}).get("Protocol", "")
    return resource["Type"] == "AWS::SNS::Subscription" and protocol == "email"


def _bus(hop: str) -> list[str]:
    return ["EventBus"] if hop == "Events" else []


def _on_failure(properties: Mapping[str, Any]) -> str | None:
    destination: str | None = (
        properties.get("DestinationConfig", {}).get("OnFailure", {}).get("Destination")
    )
    return destination


def _rings(alarm: Mapping[str, Any], queue: str) -> bool:
    """At the first message."""
    return (
        alarm.get("MetricName") == "ApproximateNumberOfMessagesVisible"
        and alarm["Dimensions"] == [{"Name": "QueueName", "Value": f"<{queue}.QueueName>"}]
        and alarm["ComparisonOperator"] == "GreaterThanOrEqualToThreshold"
        and alarm["Threshold"] == 1
    )


def _path(arn: str) -> str:
    """The construct path in a readable ARN."""
    found = re.fullmatch(r"<([^.>]*)(\.\w+)?>", arn)
    return found[1] if found else arn
