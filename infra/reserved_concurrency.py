"""How much of the account's concurrency each function has for itself, and may have at most.

Lambda has one number for both: a function's reserved concurrency (Lambda developer guide,
"Configuring reserved concurrency"). All functions of an account and region that reserve nothing
share what is left, of which AWS keeps 100. There is no number for several functions together.

Workers and subscriptions can use up what is shared. So the functions that end tasks, tell of their
changes, or let callers in have concurrency of their own (`-c reserved=`). A worker has one if its
tool says so, or the deployment (`-c max_workers=`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from aws_cdk import aws_lambda as lambda_

FINISH: Final = 20
"""Ends of 200 executions a second, at 100 ms each."""
PUBLISH: Final = 20
"""Each batch has up to 100 changes."""
DELIVER: Final = 20
"""Each batch has up to 10 messages."""
UNRESERVED_DELIVERIES: Final = 5
"""Batches at once where `deliver` has no instances of its own. Lambda would hand on up to 1,250,
and leave no instance to all others (developer guide, "Configuring scaling behavior for SQS event
source mappings")."""
SWEEP: Final = 3
"""A run may take two minutes, and one begins every minute."""
REQUESTS_PER_AUTHORIZER: Final = 10
"""A second. A check takes 10 ms, or 300 ms in an instance that starts."""


@dataclass(frozen=True, slots=True)
class ReservedConcurrency:
    """Instances by function, named by its handler."""

    by_handler: Mapping[str, int] = field(default_factory=dict)
    default: int | None = None
    """For the other functions; None for a share of what is not reserved."""

    @classmethod
    def of_stack(cls, requests_per_second: int) -> ReservedConcurrency:
        """What a stack reserves whose API lets so many requests through."""
        authorize = max(10, -(-requests_per_second // REQUESTS_PER_AUTHORIZER))
        return cls(
            {
                "finish": FINISH,
                "publish": PUBLISH,
                "deliver": DELIVER,
                "sweep": SWEEP,
                "authorize": authorize,
            }
        )

    def of(self, handler: str) -> int | None:
        """The number of one function."""
        return self.by_handler.get(handler, self.default)


def reserve(function: lambda_.Function, instances: int) -> None:
    """Give a function its own number of instances."""
    resource = function.node.default_child
    if not isinstance(resource, lambda_.CfnFunction):
        raise TypeError(f"{function.node.path} is not a function of this stack")
    resource.reserved_concurrent_executions = instances
