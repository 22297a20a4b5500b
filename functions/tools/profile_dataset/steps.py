"""The functions that the workflow's states call. Each takes the state's `input` by name."""

from __future__ import annotations

import csv
import io
from functools import reduce
from typing import Any

from pydantic import BaseModel

from mcp_tasks import TaskContext, ToolError

from .profile import ColumnPart, DatasetProfile, finished, merge_columns, profile_column


class Chunk(BaseModel):
    """Some rows of the file, as CSV again."""

    number: int
    of: int
    columns: list[str]
    rows: str


class Merged(BaseModel):
    """The whole profile, and what to ask before it is shown."""

    profile: DatasetProfile
    requests: dict[str, dict[str, Any]]


def split(task: TaskContext, csv: str, chunk_rows: int = 500) -> list[Chunk]:
    """Cut the file into chunks of whole rows."""
    header, *rows = _read(csv)
    if not rows:
        raise ToolError("The CSV has a header and no rows")
    if len(set(header)) < len(header):
        raise ToolError("The CSV names two columns alike")
    for number, row in enumerate(rows, start=2):
        if len(row) != len(header):
            raise ToolError(f"Row {number} has {len(row)} cells, the header has {len(header)}")
    parts = [rows[start : start + chunk_rows] for start in range(0, len(rows), chunk_rows)]
    task.report(f"read {len(rows)} rows, {len(header)} columns", progress=0.1)
    return [
        Chunk(number=number, of=len(parts), columns=header, rows=_write(part))
        for number, part in enumerate(parts, start=1)
    ]


def profile(task: TaskContext, chunk: Chunk) -> list[ColumnPart]:
    """Profile every column of one chunk."""
    cells = zip(*_read(chunk.rows), strict=True)
    parts = [
        profile_column(name, column) for name, column in zip(chunk.columns, cells, strict=True)
    ]
    task.report(f"profiled chunk {chunk.number} of {chunk.of}", 0.1 + 0.8 * chunk.number / chunk.of)
    return parts


def merge(task: TaskContext, parts: list[list[ColumnPart]]) -> Merged:
    """Merge the chunks' profiles, and prepare the question."""
    columns = [finished(reduce(merge_columns, column)) for column in zip(*parts, strict=True)]
    rows = sum(part[0].values + part[0].missing for part in parts)
    task.report(f"merged {len(parts)} chunks", progress=0.9)
    shown = [column.name for column in columns if column.most_frequent]
    return Merged(
        profile=DatasetProfile(title="Profile", rows=rows, columns=columns),
        requests={
            "publish": {
                "message": f"{rows} rows and {len(columns)} columns are profiled. "
                f"Show the most frequent values of {', '.join(shown) or 'no column'}?",
                "schema": {
                    "type": "object",
                    "properties": {
                        "show_values": {
                            "type": "boolean",
                            "title": "Show values",
                            "description": "They may be personal data",
                        },
                        "title": {
                            "type": "string",
                            "title": "Title of the profile",
                            "maxLength": 80,
                        },
                    },
                    "required": ["show_values"],
                },
            }
        },
    )


def publish(profile: DatasetProfile, answers: dict[str, Any]) -> DatasetProfile:
    """The profile with what the answer lets through; no answer lets no values through."""
    answer = answers["publish"]
    content = answer["content"] if answer["action"] == "accept" else {"show_values": False}
    profile.title = content.get("title") or profile.title
    if not content["show_values"]:
        for column in profile.columns:
            column.most_frequent = None
    return profile


def _read(text: str) -> list[list[str]]:
    try:
        rows = [row for row in csv.reader(io.StringIO(text), strict=True) if row]
    except csv.Error as error:
        raise ToolError(f"This is not CSV: {error}") from None
    if not rows:
        raise ToolError("The CSV is empty")
    return rows


def _write(rows: list[list[str]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()
