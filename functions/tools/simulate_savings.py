"""Simulate a savings plan: a function that runs as a task, reports, and asks for what it lacks."""

from __future__ import annotations

import random
from datetime import timedelta
from statistics import quantiles
from typing import Annotated

from pydantic import BaseModel, Field

from mcp_tasks import TaskContext, tool

Share = Annotated[float, Field(ge=0, le=1)]

# Yearly mean return and standard deviation; textbook values, no advice.
STOCKS = (0.07, 0.16)
BONDS = (0.03, 0.05)


class Mix(BaseModel):
    """The form that the client fills in."""

    share_of_stocks: Annotated[Share, Field(title="Share of stocks", description="From 0 to 1")] = (
        0.6
    )


class Savings(BaseModel):
    """What is there at the end."""

    paid_in: float
    bad_case: Annotated[float, Field(description="One run in ten ends below this")]
    median: float
    good_case: Annotated[float, Field(description="One run in ten ends above this")]
    chance_of_loss: Share
    runs: int


@tool(
    task="optional",
    title="Simulate a savings plan",
    annotations={"readOnlyHint": True},
    ttl=timedelta(hours=1),
    poll_every=timedelta(milliseconds=500),
    timeout=timedelta(seconds=10),
)
def simulate_savings(
    task: TaskContext,
    monthly: Annotated[float, Field(gt=0, le=1e9, description="Paid in every month")],
    years: Annotated[int, Field(ge=1, le=60)],
    share_of_stocks: Annotated[
        Share | None, Field(description="The rest goes into bonds; asked for when left out")
    ] = None,
    runs: Annotated[int, Field(ge=100, le=5_000_000, description="Simulated futures")] = 2_000,
) -> Savings:
    """Simulate a savings plan in stocks and bonds many times, and return the range of outcomes."""
    if share_of_stocks is None:
        share_of_stocks = task.ask("How much of it goes into stocks?", Mix).share_of_stocks
    dice = random.Random(f"{monthly} {years} {share_of_stocks}")  # noqa: S311  same dice, same result
    ends = []
    for run in range(runs):
        if run % max(1, runs // 10) == 0:
            task.report(f"simulated {run} of {runs} futures", progress=run / runs)
        ends.append(_simulate(dice, monthly, years, share_of_stocks))
    bad, *_, good = deciles = quantiles(ends, n=10)
    paid_in = 12 * years * monthly
    return Savings(
        paid_in=round(paid_in, 2),
        bad_case=round(bad, 2),
        median=round(deciles[4], 2),
        good_case=round(good, 2),
        chance_of_loss=sum(end < paid_in for end in ends) / runs,
        runs=runs,
    )


def _simulate(dice: random.Random, monthly: float, years: int, share: float) -> float:
    capital = 0.0
    for _ in range(years):
        stocks, bonds = dice.gauss(*STOCKS), dice.gauss(*BONDS)
        yearly = share * stocks + (1 - share) * bonds
        capital = capital * (1 + yearly) + 12 * monthly * (1 + yearly / 2)
    return capital
