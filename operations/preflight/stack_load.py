"""What a synthesized stack lets its callers ask of the account, from its template.

The stage's throttle is the only number that bounds all callers together. What follows from it is
counted in tasks that are polled ten times and report ten times, as in `docs/cost-and-scale.md`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcp_tasks.environment import LIMITS
from mcp_tasks.limits import Limits

from ..state_machine_metadata import CUSTOMER_KEY
from .deployment import properties_of

REQUESTS_PER_TASK: Final = 11
"""A call and ten polls."""
CHANGES_PER_TASK: Final = 12
"""The creation, ten reports, and the end."""
TRANSITIONS_PER_TASK: Final = 4
"""Of a function that takes a TaskContext."""
WRITE_UNITS_PER_CHANGE: Final = 3
"""Of a row of up to 3 KB, which is written as a whole."""
RULES_PER_CHANGE: Final = 1
"""The one that leads to `deliver`; rules of others come on top."""
RECONCILES_A_SECOND: Final = 8
"""The sweeper's, at most (`workflows/sweep.py`)."""


@dataclass(frozen=True, slots=True)
class StackLoad:
    """What the stack lets through."""

    rate: int
    """Requests a second, of all stages together."""
    burst: int
    """Requests at once."""
    limits: Limits
    """Of one caller."""
    streams: bool
    """Whether a subscription holds its function for up to 15 minutes."""
    customer_key: bool
    """Whether each end of a task takes a DescribeExecution."""

    @classmethod
    def read(cls, template: Mapping[str, Any]) -> StackLoad:
        """Read it from a template."""
        stages = list(properties_of(template, "AWS::ApiGateway::Stage"))
        throttles = [each for stage in stages for each in stage.get("MethodSettings", ())]
        functions = list(properties_of(template, "AWS::Lambda::Function"))
        variables = [each.get("Environment", {}).get("Variables", {}) for each in functions]
        limits = next((each[LIMITS] for each in variables if LIMITS in each), None)
        methods = properties_of(template, "AWS::ApiGateway::Method")
        integrations = [each.get("Integration", {}) for each in methods]
        machines = properties_of(template, "AWS::StepFunctions::StateMachine")
        return cls(
            rate=sum(int(each.get("ThrottlingRateLimit", 0)) for each in throttles),
            burst=sum(int(each.get("ThrottlingBurstLimit", 0)) for each in throttles),
            limits=Limits.from_json(limits),
            streams=any(each.get("ResponseTransferMode") == "STREAM" for each in integrations),
            customer_key=any(
                each.get("EncryptionConfiguration", {}).get("Type") == CUSTOMER_KEY
                for each in machines
            ),
        )

    @property
    def tasks(self) -> float:
        """Tasks a second."""
        return self.rate / REQUESTS_PER_TASK

    @property
    def describes(self) -> float:
        """DescribeExecution a second."""
        return RECONCILES_A_SECOND + (self.tasks if self.customer_key else 0)

    @property
    def held_by_one_caller(self) -> float:
        """Instances of functions that one caller may keep busy: each subscription holds one, and so
        does each call within a request. Infinite where a limit is off."""
        limits = (self.limits.max_open_subscriptions, self.limits.max_open_calls)
        return sum(limits) if all(limits) else math.inf
