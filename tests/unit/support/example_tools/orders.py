"""A state machine that existed before."""

from __future__ import annotations

from pydantic import BaseModel

from mcp_tasks import workflow_tool


class Order(BaseModel):
    """What is ordered."""

    item: str


orders = workflow_tool(
    "orders",
    description="Order something.",
    arguments=Order,
    state_machine_arn="arn:aws:states:us-east-1:123456789012:stateMachine:orders",
)
