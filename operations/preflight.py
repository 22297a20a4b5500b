"""`make preflight`, which `make deploy` runs first: has the account what the stack reserves?

A function's reserved concurrency is taken from the account's concurrent executions in the region,
of which AWS keeps 100 unreserved (Lambda developer guide, "Configuring reserved concurrency"). A
new account may have 10 in all. CloudFormation would find out in the middle of a deployment, and
roll back.

`python -m operations.preflight [CLOUD ASSEMBLY]` reads the template that `cdk synth` wrote, the
account's settings, and the template that is deployed, with the credentials of whoever deploys. It
changes nothing. Where it may not read, it says so and lets CloudFormation decide.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from local.console import say
from local.environment import ROOT

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


def concurrency(client: Callable[[str], Any], stack: str) -> Concurrency:
    """Read the account's settings and the deployed template. Raises ClientError, BotoCoreError."""
    limits = client("lambda").get_account_settings()["AccountLimit"]
    return Concurrency(
        limits["ConcurrentExecutions"],
        limits["UnreservedConcurrentExecutions"],
        sum(reservations(_deployed(client("cloudformation"), stack)).values()),
    )


def _deployed(cloudformation: Any, stack: str) -> dict[str, Any]:
    """The stack's template; empty when there is no such stack."""
    try:
        body = cloudformation.get_template(StackName=stack)["TemplateBody"]
    except ClientError as error:
        if error.response["Error"]["Code"] != "ValidationError":
            raise
        return {}
    return body if isinstance(body, dict) else {}


def refusal(wanted: Mapping[str, int], found: Concurrency, region: str) -> str:
    """What to say when the account has too few; empty when it has enough."""
    total = sum(wanted.values())
    left = found.left(total)
    if left >= MIN_UNRESERVED:
        return ""
    quota = max(USUAL_QUOTA, found.quota + MIN_UNRESERVED - left)
    lines = "\n".join(f"    {count:>5}  {name}" for name, count in sorted(wanted.items()))
    return f"""\
error: nothing was deployed, because the account has too few concurrent executions in {region}.

The stack's functions reserve {total}:
{lines}
The account has {found.quota}. Of {found.left(0)} that are free, AWS lets no function reserve the last {MIN_UNRESERVED}.

Raise the quota, which AWS does within minutes or days, and deploy again:
    aws service-quotas request-service-quota-increase --region {region} \\
        --service-code lambda --quota-code {QUOTA_CODE} --desired-value {quota}

Or add reserved=off: the stack's own functions then reserve nothing, and running tasks and
subscriptions may take all that the account has. Ends of tasks, notifications and checks of access
tokens then come late or fail. What max_workers and a tool's max_concurrency reserve stays.
"""  # noqa: E501  narrower once the numbers are in


def client_factory() -> tuple[Callable[[str], Any], str]:
    """Clients for the account and region that the CDK's CLI deploys to, and the region."""
    session = boto3.Session(region_name=os.environ.get("AWS_REGION"))
    region = session.region_name or "us-east-1"

    def client(service: str) -> Any:
        return session.client(service, region_name=region)  # type: ignore[call-overload]

    return client, region


def check(assembly: Path, client: Callable[[str], Any], region: str) -> int:
    """Check an assembly's stack, and say what was found. Returns 1 when it cannot be deployed."""
    stack, template = _synthesized(assembly)
    wanted = reservations(template)
    if not wanted:
        say("no function reserves concurrency: tasks and subscriptions may take all there is")
        return 0
    try:
        found = concurrency(client, stack)
    except (BotoCoreError, ClientError) as error:
        say(f"WARNING: not checked whether the account has the concurrency to reserve: {error}")
        return 0
    refused = refusal(wanted, found, region)
    if refused:
        print(refused, end="", file=sys.stderr)
        return 1
    total = sum(wanted.values())
    say(
        f"the functions reserve {total} of {found.quota} concurrent executions in {region}, and "
        f"leave {found.left(total)} to all others"
    )
    return 0


def _synthesized(assembly: Path) -> tuple[str, dict[str, Any]]:
    """The stack's name and its template."""
    manifest = json.loads((assembly / "manifest.json").read_text(encoding="utf-8"))
    ((name, properties),) = (
        (name, artifact["properties"])
        for name, artifact in manifest["artifacts"].items()
        if artifact["type"] == "aws:cloudformation:stack"
    )
    text = (assembly / properties["templateFile"]).read_text(encoding="utf-8")
    return properties.get("stackName", name), json.loads(text)


if __name__ == "__main__":
    sys.exit(check(Path(sys.argv[1]) if sys.argv[1:] else ROOT / "cdk.out", *client_factory()))
