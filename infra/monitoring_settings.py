"""How a deployment is watched: the values of the options of `infra/monitoring_options.py`."""

from __future__ import annotations

from dataclasses import dataclass

from .cdk_context import Context, refusal
from .monitoring_options import OFF, TOPIC


@dataclass(frozen=True, slots=True)
class MonitoringSettings:
    """The values of these options."""

    alarms: str = TOPIC
    """`topic`, `off`, the ARN of a topic, or an e-mail address."""
    budget: int | None = None
    """US dollars a month."""
    dashboard: bool = True
    tool_metrics: bool = False
    tracing: bool = False
    execution_log: bool = False

    @classmethod
    def from_context(cls, context: Context) -> MonitoringSettings:
        """Read the options. Raises ValueError."""
        alarms, budget = context.text("alarms"), context.text("budget")
        if budget and alarms == OFF:
            raise refusal(
                "budget", budget, "a budget notifies the alarms' topic; alarms=off has none"
            )
        return cls(
            alarms=alarms,
            budget=int(budget) if budget else None,
            dashboard=context.text("dashboard") == "on",
            tool_metrics=context.text("tool_metrics") == "on",
            tracing=context.text("tracing") == "on",
            execution_log=context.text("execution_log") == "on",
        )
