"""Beside a tool: resources that say what it assumes, and a prompt that says how to use it."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from mcp_tasks import prompt, resource

from .simulate_savings import BONDS, STOCKS

Asset = Literal["stocks", "bonds"]


class Assumption(BaseModel):
    """Of one year's return, as a fraction: 0.07 is 7 %."""

    mean: float
    standard_deviation: float


ASSUMPTIONS: dict[Asset, Assumption] = {
    "stocks": Assumption(mean=STOCKS[0], standard_deviation=STOCKS[1]),
    "bonds": Assumption(mean=BONDS[0], standard_deviation=BONDS[1]),
}


@resource("savings://assumptions", fresh_for=timedelta(days=1), cache_scope="public")
def assumptions() -> dict[Asset, Assumption]:
    """What simulate_savings assumes about yearly returns."""
    return ASSUMPTIONS


@resource("savings://assumptions/{asset}", fresh_for=timedelta(days=1), cache_scope="public")
def assumption(asset: Asset) -> Assumption:
    """What simulate_savings assumes about one kind of asset."""
    return ASSUMPTIONS[asset]


@prompt(title="Plan savings")
def plan_savings(
    goal: Annotated[str, Field(description="What the money is for")],
    years: Annotated[int, Field(description="Until it is needed")] = 20,
) -> str:
    """Plan how to save for a goal."""
    return (
        f"I want to save for {goal}, and need the money in {years} years. "
        "Read savings://assumptions, then run simulate_savings with a few shares of stocks. "
        "Show me the bad case, the median and the good case of each as a table, and say in one "
        "sentence which you would choose, and why."
    )
