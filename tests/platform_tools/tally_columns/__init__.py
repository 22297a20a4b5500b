"""A workflow: steps of its own, a Map that runs them in parallel, and a question.

Split -> Tally (one run per chunk, in parallel) -> Merge -> Confirm (asks the client) -> Publish
"""

from __future__ import annotations

import csv as csv_format
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field

from mcp_tasks import TaskContext, ToolError, workflow_tool

SHOWN = 3
"""Values of a column that a tally shows."""


class Arguments(BaseModel):
    """What the tool takes."""

    csv: Annotated[str, Field(min_length=1, max_length=220_000)]
    chunk_rows: Annotated[int, Field(ge=50, le=100_000)] = 1000


class Chunk(BaseModel):
    """Some rows of the file."""

    columns: list[str]
    rows: list[list[str]]


class Part(BaseModel):
    """How often each value of each column occurs in a chunk."""

    columns: list[str]
    rows: int
    counts: list[dict[str, int]]


class Column(BaseModel):
    """A column of the whole file."""

    name: str
    distinct: int
    most_frequent: list[dict[str, Any]] | None


class Tally(BaseModel):
    """The whole file."""

    title: str
    rows: int
    columns: list[Column]


class Merged(BaseModel):
    """The tally, and what to ask before it is shown."""

    tally: Tally
    requests: dict[str, dict[str, Any]]


def split(task: TaskContext, csv: str, chunk_rows: int = 1000) -> list[Chunk]:
    """Cut the file into chunks of whole rows."""
    header, *rows = csv_format.reader(csv.splitlines())
    for number, row in enumerate(rows, start=2):
        if len(row) != len(header):
            raise ToolError(f"Row {number} has {len(row)} cells, the header has {len(header)}")
    task.report(f"read {len(rows)} rows")
    starts = range(0, len(rows), chunk_rows)
    return [Chunk(columns=header, rows=rows[start : start + chunk_rows]) for start in starts]


def tally(task: TaskContext, chunk: Chunk) -> Part:
    """Count the values of one chunk."""
    counts: list[dict[str, int]] = [Counter(cells) for cells in zip(*chunk.rows, strict=True)]
    task.report(f"counted {len(chunk.rows)} rows")
    return Part(columns=chunk.columns, rows=len(chunk.rows), counts=counts)


def merge(task: TaskContext, parts: list[Part]) -> Merged:
    """Add the chunks up, and prepare the question."""
    columns, rows = parts[0].columns, sum(part.rows for part in parts)
    totals: list[Counter[str]] = [Counter() for _ in columns]
    for part in parts:
        for total, counts in zip(totals, part.counts, strict=True):
            total.update(counts)
    task.report(f"merged {len(parts)} chunks")
    message = f"{rows} rows and {len(columns)} columns. Show values of {', '.join(columns)}?"
    properties = {"show_values": {"type": "boolean"}, "title": {"type": "string", "maxLength": 80}}
    schema = {"type": "object", "properties": properties, "required": ["show_values"]}
    return Merged(
        tally=Tally(
            title="Tally",
            rows=rows,
            columns=[
                Column(
                    name=name,
                    distinct=len(total),
                    most_frequent=[
                        {"value": value, "count": count}
                        for value, count in total.most_common(SHOWN)
                    ],
                )
                for name, total in zip(columns, totals, strict=True)
            ],
        ),
        requests={"publish": {"message": message, "schema": schema}},
    )


def publish(tally: Tally, answers: dict[str, Any]) -> Tally:
    """The tally with the values that the answer lets through."""
    answer = answers["publish"]
    content: dict[str, Any] = answer["content"] if answer["action"] == "accept" else {}
    tally.title = content.get("title") or tally.title
    if not content.get("show_values"):
        for column in tally.columns:
            column.most_frequent = None
    return tally


tally_columns = workflow_tool(
    "tally_columns",
    description="Count the values of a CSV file's columns. Asks before it shows them.",
    arguments=Arguments,
    result=Tally,
    definition=Path(__file__).with_name("workflow.asl.json"),
    steps=[split, tally, merge, publish],
    ttl=timedelta(hours=12),
    poll_every=timedelta(milliseconds=500),
)
