"""A workflow whose steps hand large values to each other, and which says nothing of it."""

from __future__ import annotations

from datetime import timedelta
from hashlib import sha256
from pathlib import Path

from pydantic import BaseModel

from mcp_tasks import workflow_tool


class Arguments(BaseModel):
    """A text, how often it is repeated, and how many parts of which size are made beside it."""

    text: str
    times: int
    parts: int
    size: int


class Made(BaseModel):
    """What the first step passes on."""

    kind: str
    text: str
    parts: list[int]


class Output(BaseModel):
    """What became of all of it."""

    text: str
    digests: list[str]


def make(text: str, times: int, parts: int, size: int) -> Made:
    """Make something large, and a list for a Map state."""
    return Made(kind="large", text=text * times, parts=list(range(parts)))


def part(n: int, size: int) -> dict[str, object]:
    """Make one part."""
    return {"n": n, "text": f"{n:>10}" * (size // 10)}


def gather(made: Made, parts: list[dict[str, object]]) -> Output:
    """Put all together."""
    texts = [f"{one['n']}:{one['text']}" for one in parts]
    return Output(text=made.text, digests=[sha256(text.encode()).hexdigest() for text in texts])


large_flow = workflow_tool(
    "large_flow",
    description="Hand large values from step to step.",
    arguments=Arguments,
    result=Output,
    definition=Path(__file__).with_name("workflow.asl.json"),
    steps=[make, part, gather],
    poll_every=timedelta(milliseconds=200),
)
