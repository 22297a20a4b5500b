"""A resource, and a prompt that names it."""

from __future__ import annotations

from mcp_tasks import prompt, resource


@resource("growth://assumptions")
def assumptions() -> dict[str, float]:
    """What estimate_savings assumes about a year's growth."""
    return {"lowest": 1.03, "highest_with_stocks": 1.11}


@prompt
def plan(goal: str) -> str:
    """Plan how to save for a goal."""
    return f"I want to save for {goal}. Read growth://assumptions, then run estimate_savings."
