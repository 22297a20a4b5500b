"""A function that runs as a task: it reports, asks for what it lacks, and may run over its time."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import BaseModel, Field

from mcp_tasks import TaskContext, tool

Share = Annotated[float, Field(ge=0, le=1)]


class Mix(BaseModel):
    """What the client is asked for."""

    share_of_stocks: Share = 0.6


class Savings(BaseModel):
    """What there is at the end."""

    paid_in: float
    mean: float
    runs: int


@tool(
    task="optional",
    ttl=timedelta(hours=1),
    poll_every=timedelta(milliseconds=500),
    timeout=timedelta(seconds=10),
)
def estimate_savings(
    task: TaskContext,
    monthly: Annotated[float, Field(gt=0, le=1e9)],
    years: Annotated[int, Field(ge=1, le=60)],
    share_of_stocks: Share | None = None,
    runs: Annotated[int, Field(ge=100, le=5_000_000)] = 2_000,
) -> Savings:
    """Estimate what savings grow to. How long it takes depends on `runs`."""
    if share_of_stocks is None:
        share_of_stocks = task.ask("How much of it goes into stocks?", Mix).share_of_stocks
    total = 0.0
    for run in range(runs):
        if run % max(1, runs // 10) == 0:
            task.report(f"estimated {run} of {runs} runs", progress=run / runs)
        capital = 0.0
        for year in range(years):
            growth = 1.03 + share_of_stocks * ((run + year) % 9) / 100
            capital = (capital + 12 * monthly) * growth
        total += capital
    return Savings(paid_in=12 * years * monthly, mean=round(total / runs, 2), runs=runs)
