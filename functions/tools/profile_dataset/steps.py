"""The functions that the workflow's states call. Each takes the state's `input` by name."""

from __future__ import annotations

import csv
import io
from functools import reduce
from typing import Any

from pydantic import BaseModel

from mcp_tasks import TaskContext, ToolError

from .profile import ColumnPart, DatasetProfile, finished, merge_columns, profile_column

MERGED_CHARACTERS = 220_000
"""What the Map state may return (Step Functions: 256 KiB), with room for its envelope."""
COLUMN_CHARACTERS = 1_000
"""What a column's part takes besides its hashes, mostly counts of values."""
MIN_HASHES, MAX_HASHES = 32, 2048


class Chunk(BaseModel):
    """Some rows of the file, as CSV again."""

    first: int
    last: int
    columns: list[str]
    hashes: int
    rows: str


class Merged(BaseModel):
    """The whole profile, and what to ask before it is shown."""

    profile: DatasetProfile
    requests: dict[str, dict[str, Any]]


def split(task: TaskContext, csv: str, chunk_rows: int = 1000) -> list[Chunk]:
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
    # All parts of all columns come back in one payload: five bytes a hash, in Base64.
    share = MERGED_CHARACTERS // (len(parts) * len(header))
    hashes = min(MAX_HASHES, (share - COLUMN_CHARACTERS) // 7)
    if hashes < MIN_HASHES:
        raise ToolError(
            f"{len(parts)} chunks of {len(header)} columns are too many; use a larger chunk_rows"
        )
    task.report(f"read {len(rows)} rows, {len(header)} columns")
    return [
        Chunk(
            first=number * chunk_rows + 1,
            last=number * chunk_rows + len(part),
            columns=header,
            hashes=hashes,
            rows=_write(part),
        )
        for number, part in enumerate(parts)
    ]


def profile(task: TaskContext, chunk: Chunk) -> list[ColumnPart]:
    """Profile every column of one chunk."""
    cells = zip(*_read(chunk.rows), strict=True)
    parts = [
        profile_column(name, column, chunk.hashes)
        for name, column in zip(chunk.columns, cells, strict=True)
    ]
    task.report(f"profiled rows {chunk.first} to {chunk.last}")
    return parts


def merge(task: TaskContext, parts: list[list[ColumnPart]]) -> Merged:
    """Merge the chunks' profiles, and prepare the question."""
    columns = [finished(reduce(merge_columns, column)) for column in zip(*parts, strict=True)]
    rows = sum(part[0].values + part[0].missing for part in parts)
    task.report(f"merged {len(parts)} chunks")
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
    nothing = {"show_values": False}
    content: dict[str, Any] = answer["content"] if answer["action"] == "accept" else nothing
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
