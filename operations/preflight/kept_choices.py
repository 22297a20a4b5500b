"""Would the deployment change what the deployed stack was given, by a forgotten argument perhaps?

A stack keeps its choices: `infra/kept_choices.py` writes them into the template. A deployment that
has others is refused, with the words that keep what is deployed, and with those that change it. A
stack of an earlier version has no such metadata; its choices are then read from its resources.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from infra.kept_choices import CHOICES
from infra.operation_options import AWS_MANAGED, OWN_KEY

from .check import Check, Finding
from .deployment import Deployment


def _always(deployed: str, wanted: str) -> bool:
    return True


def _unprotected(deployed: str, wanted: str) -> bool:
    return (deployed, wanted) == ("retain", "destroy")


def _lowered(deployed: str, wanted: str) -> bool:
    return int(wanted) < int(deployed)


def _something_missing(deployed: str, wanted: str) -> bool:
    return not set(deployed.split()) <= set(wanted.split())


@dataclass(frozen=True, slots=True)
class Kept:
    """A choice that is kept."""

    loss: str
    """What a change of it does."""
    matters: Callable[[str, str], bool] = _always
    """Whether the change from the one value to the other does it."""


KEPT: Final = {
    "auth": Kept("tasks belong to nobody who can call any more, and clients must log in otherwise"),
    "cell": Kept("the server does not find the tasks that exist any more"),
    "data": Kept("tables and logs lose their protection, and go with the stack", _unprotected),
    "domain": Kept("clients find the server at another address"),
    "earlier_keys": Kept("what was written with such a key cannot be read", _something_missing),
    "encryption": Kept("data is encrypted with another key from now on"),
    "issuer": Kept("tasks that exist are lost to their owners"),
    "max_ttl_days": Kept("stored payloads expire before the tasks that need them", _lowered),
    "principal": Kept("tasks that exist are lost to their owners"),
}


def deployed_choices(template: Mapping[str, Any]) -> dict[str, str]:
    """What a deployed template was given, as far as it says so."""
    recorded: dict[str, str] | None = template.get("Metadata", {}).get(CHOICES)
    return recorded if recorded is not None else _read_from_resources(template)


def _read_from_resources(template: Mapping[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for resource in template.get("Resources", {}).values():
        properties = resource.get("Properties", {})
        if resource["Type"] == "AWS::DynamoDB::Table":
            key = properties.get("SSESpecification", {}).get("KMSMasterKeyId", AWS_MANAGED)
            found["encryption"] = key if isinstance(key, str) else OWN_KEY
        if resource["Type"] == "AWS::Lambda::Function":
            variables = properties.get("Environment", {}).get("Variables", {})
            # Only the function that answers clients has them.
            found |= {
                name: variables[name.upper()]
                for name in ("auth", "cell")
                if isinstance(variables.get(name.upper()), str)
            }
    return found


@dataclass(frozen=True, slots=True)
class Difference:
    """How the choices of the template differ from those of the deployed one."""

    deployed: Mapping[str, str]
    wanted: Mapping[str, str]
    changed: list[str]
    """Only what matters."""
    lost_key: str
    """The ARN of the key that what was written until now needs, and the template does not name."""

    @classmethod
    def of(cls, deployment: Deployment) -> Difference:
        """Compare the two. Raises ClientError, BotoCoreError."""
        wanted: dict[str, str] = deployment.template.get("Metadata", {}).get(CHOICES, {})
        deployed = deployed_choices(deployment.deployed)
        changed = [
            name
            for name, kept in KEPT.items()
            if name in deployed
            and deployed[name] != wanted.get(name, "")
            and kept.matters(deployed[name], wanted.get(name, ""))
        ]
        key = _key(deployment, deployed["encryption"]) if "encryption" in changed else ""
        known = {wanted.get("encryption"), *wanted.get("earlier_keys", "").split()}
        return cls(deployed, wanted, changed, "" if key in known else key)

    @property
    def words(self) -> frozenset[str]:
        """What `change=` has to say for it."""
        return frozenset((*self.changed, *(["earlier_keys"] if self.lost_key else [])))


def find(deployment: Deployment) -> Finding:
    """Compare the choices of the template with those of the deployed one."""
    difference = Difference.of(deployment)
    if not difference.words <= deployment.changes:
        return Finding(_refusal(deployment.stack, difference), refused=True)
    if difference.changed:
        return Finding(f"changed, as told: {', '.join(difference.changed)}")
    return Finding("the stack keeps what it was deployed with")


def _key(deployment: Deployment, encryption: str) -> str:
    """The ARN of the deployed stack's key; empty when it has none."""
    if encryption != OWN_KEY:
        return "" if encryption == AWS_MANAGED else encryption
    (name,) = (
        name
        for name, resource in deployment.deployed["Resources"].items()
        if resource["Type"] == "AWS::KMS::Key"
    )
    detail = deployment.resource(name)
    _, partition, _, region, account, _ = detail["StackId"].split(":", 5)
    return f"arn:{partition}:kms:{region}:{account}:key/{detail['PhysicalResourceId']}"


def _refusal(stack: str, found: Difference) -> str:
    keep = [f"{name}={shlex.quote(found.deployed[name])}" for name in found.changed]
    change = [f"change={shlex.quote(' '.join(found.changed))}"]
    if found.lost_key:
        earlier = [*found.wanted.get("earlier_keys", "").split(), found.lost_key]
        change.append(f"earlier_keys={shlex.quote(' '.join(earlier))}")
    return "\n".join(
        [
            f"the stack {stack} was deployed with other choices.",
            "",
            *_lines(found),
            "",
            "To keep what is deployed, add this; or write it once into `context` of cdk.json or",
            "into the stage's file, so that no deployment forgets it:",
            f"    {' '.join(keep)}",
            "",
            "To change it, add:",
            f"    {' '.join(change)}",
            *(_about_key(found) if found.lost_key else []),
        ]
    )


def _lines(found: Difference) -> Iterator[str]:
    for name in found.changed:
        deployed, wanted = found.deployed[name], found.wanted.get(name, "")
        yield f"    {name}: deployed with {deployed or 'none'}, now {wanted or 'none'}"
        yield f"        {KEPT[name].loss}"


def _about_key(found: Difference) -> Iterator[str]:
    words = shlex.quote(" ".join(sorted(found.words)))
    yield "With `earlier_keys`, what was written until now can still be read: stored payloads,"
    yield f"queued messages, running executions. To give that up, add change={words} instead."
    if found.deployed["encryption"] == OWN_KEY:
        yield "The key outlives the change. To go on with it as a key of yours, add:"
        yield f"    encryption={found.lost_key} change=encryption"


CHECK: Final = Check(
    "the stack keeps its encryption, cell and callers", find, changes=frozenset(KEPT)
)
