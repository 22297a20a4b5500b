"""Has the account the concurrency that the stack reserves?

A function's reserved concurrency is taken from the account's concurrent executions in the region,
of which AWS keeps 100 unreserved (Lambda developer guide, "Configuring reserved concurrency"). A
new account may have 10 in all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from .check import Check, Finding
from .deployment import Deployment

MIN_UNRESERVED: Final = 100
USUAL_QUOTA: Final = 1_000
"""Concurrent executions of an account by default."""
QUOTA_CODE: Final = "L-B99A9384"
"""Of Lambda's "Concurrent executions" (Service Quotas)."""
PROPERTY: Final = "ReservedConcurrentExecutions"


@dataclass(frozen=True, slots=True)
class Concurrency:
    """Concurrent executions of the account in the region."""

    quota: int
    unreserved: int
    """Without what functions reserve, those of the deployed stack included."""
    held: int
    """What the deployed stack reserves."""

    def left(self, wanted: int) -> int:
        """What stays unreserved when the stack reserves so many."""
        return self.unreserved + self.held - wanted


def reservations(template: Mapping[str, Any]) -> dict[str, int]:
    """What each function of a template reserves, by its description."""
    return {
        properties.get("Description", name): int(properties[PROPERTY])
        for name, resource in template.get("Resources", {}).items()
        if resource["Type"] == "AWS::Lambda::Function"
        and PROPERTY in (properties := resource.get("Properties", {}))
    }


def concurrency(deployment: Deployment) -> Concurrency:
    """Read the account's settings and the deployed template. Raises ClientError, BotoCoreError."""
    limits = deployment.client("lambda").get_account_settings()["AccountLimit"]
    return Concurrency(
        limits["ConcurrentExecutions"],
        limits["UnreservedConcurrentExecutions"],
        sum(reservations(deployment.deployed).values()),
    )


def refusal(wanted: Mapping[str, int], found: Concurrency, region: str) -> str:
    """What to say when the account has too few; empty when it has enough."""
    total = sum(wanted.values())
    left = found.left(total)
    if left >= MIN_UNRESERVED:
        return ""
    quota = max(USUAL_QUOTA, found.quota + MIN_UNRESERVED - left)
    lines = "\n".join(f"    {count:>5}  {name}" for name, count in sorted(wanted.items()))
    return f"""\
the account has too few concurrent executions in {region}.

The stack's functions reserve {total}:
{lines}
The account has {found.quota}. Of {found.left(0)} that are free, AWS lets no function reserve the last {MIN_UNRESERVED}.

Raise the quota, which AWS does within minutes or days, and deploy again:
    aws service-quotas request-service-quota-increase --region {region} \\
        --service-code lambda --quota-code {QUOTA_CODE} --desired-value {quota}

Or add reserved=off: the stack's own functions then reserve nothing, and running tasks and
subscriptions may take all that the account has. Ends of tasks, notifications and checks of access
tokens then come late or fail. What max_workers and a tool's max_concurrency reserve stays."""  # noqa: E501  narrower once the numbers are in


def find(deployment: Deployment) -> Finding:
    """Compare what the template reserves with what the account has."""
    wanted = reservations(deployment.template)
    if not wanted:
        return Finding("no function reserves concurrency: tasks and subscriptions may take it all")
    found = concurrency(deployment)
    refused = refusal(wanted, found, deployment.region)
    if refused:
        return Finding(refused, refused=True)
    total = sum(wanted.values())
    return Finding(
        f"the functions reserve {total} of {found.quota} concurrent executions in "
        f"{deployment.region}, and leave {found.left(total)} to all others"
    )


CHECK: Final = Check("the account has the concurrency to reserve", find)
