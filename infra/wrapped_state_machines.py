"""The state machines that tools wrap: they exist already, and are no part of the stack.

The server starts them, hears of their ends by an event of its own region and account, and reads the
rest with DescribeExecution. So a state machine elsewhere cannot be a tool: no event of it arrives,
and Step Functions has no resource policies that would let another account start it (Step Functions
developer guide, "Accessing resources in other AWS accounts").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

from aws_cdk import Stack

from mcp_tasks.registry.catalogue import Catalogue
from mcp_tasks.registry.workflow_tool import WorkflowTool

METADATA: Final = "WrappedStateMachines"
"""The key of a template's metadata that `make preflight` reads."""
MAX_MATCHER_CHARACTERS: Final = 1_500
"""Of the ARNs in one rule. An event pattern has at most 2,048 characters (EventBridge user guide,
"Amazon EventBridge quotas"); the rest of it has up to 400."""
MAX_POLICY_CHARACTERS: Final = 5_700
"""Of the ARNs in one statement, which stands in a managed policy of 6,144 characters at most (IAM
user guide, "IAM and AWS STS quotas"). The CDK divides long policies, and no statements."""
_EXECUTIONS: Final = 20
"""Characters by which the ARN of a state machine's executions is longer."""


@dataclass(frozen=True, slots=True)
class Wrapped:
    """A state machine that a tool wraps."""

    tool: str
    arn: str
    key_arn: str | None

    def refusal(self, account: str, region: str) -> str:
        """Why a deployment to this account and region cannot use it; empty when it can."""
        _, _, _, its_region, its_account, *_ = self.arn.split(":")
        if (its_region, its_account) == (region, account):
            return ""
        return (
            f"{self.tool} wraps a state machine in {its_region} of the account {its_account}, and "
            f"the deployment is in {region} of {account}: Step Functions starts and reports it "
            "only in its own region and account. Deploy there, or copy the state machine here, or "
            'let a workflow of your own call it (docs/workflows.md, "A state machine that exists")'
        )


@dataclass(frozen=True, slots=True)
class WrappedStateMachines:
    """All of a deployment."""

    machines: tuple[Wrapped, ...]

    @classmethod
    def of(cls, catalogue: Catalogue) -> Self:
        """Those that the tools name, one for each tool. Raises ValueError for too many."""
        found = []
        for entry in catalogue.tools.values():
            tool = entry.load() if entry.state_machine_arn else None
            if isinstance(tool, WorkflowTool) and tool.state_machine_arn:
                found.append(Wrapped(tool.name, tool.state_machine_arn, tool.kms_key_arn))
        length = sum(len(machine.arn) + _EXECUTIONS for machine in found)
        if length > MAX_POLICY_CHARACTERS:
            raise ValueError(
                f"{len(found)} tools wrap state machines, whose ARNs are too long together for "
                f"one policy ({length} characters, at most {MAX_POLICY_CHARACTERS}). Deploy some "
                "of the tools as a second stack (tools=... stack=... cell=...)"
            )
        return cls(tuple(found))

    @property
    def arns(self) -> list[str]:
        """Their ARNs."""
        return [machine.arn for machine in self.machines]

    @property
    def in_rules(self) -> list[list[str]]:
        """Their ARNs, as many in each list as fit into one event pattern; at least one list."""
        rules: list[list[str]] = [[]]
        length = 0
        for arn in self.arns:
            length += len(arn) + len('"",')
            if length > MAX_MATCHER_CHARACTERS:
                rules.append([])
                length = len(arn) + len('"",')
            rules[-1].append(arn)
        return rules

    @property
    def by_key(self) -> Mapping[str, Sequence[str]]:
        """Customer managed key -> the ARNs of the state machines that it encrypts."""
        keys: dict[str, list[str]] = {}
        for machine in self.machines:
            if machine.key_arn:
                keys.setdefault(machine.key_arn, []).append(machine.arn)
        return keys

    def check_place(self, account: str | None, region: str | None) -> None:
        """Raise ValueError when one is not where the deployment goes.

        The CDK's CLI knows the account only with credentials; without them its region is no more
        than a default, and `make preflight` finds out.
        """
        if not account or not region:
            return
        refused = [text for machine in self.machines if (text := machine.refusal(account, region))]
        if refused:
            raise ValueError("; ".join(refused))

    def describe_in_template(self, stack: Stack) -> None:
        """Name them in the template's metadata."""
        if self.machines:
            described = [
                {"Tool": m.tool, "Arn": m.arn, **({"KmsKeyArn": m.key_arn} if m.key_arn else {})}
                for m in self.machines
            ]
            stack.add_metadata(METADATA, described)
