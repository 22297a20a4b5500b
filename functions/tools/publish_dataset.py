"""Publish a dataset when somebody has approved: one Python function that may take a month.

It checks the files side by side, writes a draft into a catalogue, has another tool profile the
files, asks, and waits for the day. Whatever ends it before that day takes the draft back.
"""

from __future__ import annotations

import csv
import re
from datetime import timedelta
from typing import Annotated, Final

from pydantic import BaseModel, Field

from mcp_tasks import AsyncTaskContext, Retry, ToolError, tool

from .datasets import READ, WRITE, Dataset, Name, add, publish, remove
from .profile_dataset import MAX_CSV_CHARACTERS, profile_dataset
from .profile_dataset.profile import DatasetProfile

Csv = Annotated[str, Field(min_length=1, max_length=MAX_CSV_CHARACTERS)]

AGAIN: Final = Retry(attempts=5)
"""Parameter Store takes a few writes a second, and refuses the others."""
EMAIL: Final = re.compile(r"[\w.+-]+@[\w-]+\.\w+")


class Approval(BaseModel):
    """What the user is asked."""

    publish: Annotated[bool, Field(title="Publish", description="No takes the draft back")]


@tool(
    task="required",
    title="Publish a dataset",
    ttl=timedelta(days=30),
    poll_every=timedelta(milliseconds=500),
    timeout=timedelta(minutes=1),
    permissions=[READ, WRITE],
)
async def publish_dataset(
    task: AsyncTaskContext,
    name: Name,
    files: Annotated[dict[Name, Csv], Field(description="CSV by name", min_length=1, max_length=8)],
    publish_after_seconds: Annotated[int, Field(ge=0, le=28 * 24 * 3600)] = 2,
) -> Dataset:
    """Check and profile CSV files, and publish them as a dataset when the user has approved."""
    parts = sorted(files.items())  # the order of a JSON object may change on its way
    task.report(f"checks {len(parts)} files")
    rows = await task.map(count_rows, parts)

    counts = {part: count for (part, _), count in zip(parts, rows, strict=True)}
    entry = Dataset(name=name, version=await task.uuid(), rows=counts)
    draft: Dataset = await task.step(add, entry, retry=AGAIN, undo=remove)

    task.report(f"profiles {len(parts)} files")
    calls = [{"csv": text} for _, text in parts]
    profiles: list[DatasetProfile] = await task.map(profile_dataset, calls)  # subtasks

    empty = sum(column.missing for profile in profiles for column in profile.columns)
    question = f"Publish {name}? It has {sum(rows):,} rows; {empty} cells are empty."
    if not (await task.ask(question, Approval)).publish:
        raise ToolError(f"{name} was not approved")  # the draft is removed

    task.report(f"waits until {name} may be published")
    await task.sleep(timedelta(seconds=publish_after_seconds))
    published: Dataset = await task.step(publish, draft, retry=AGAIN)
    return published


def count_rows(part: tuple[str, str]) -> int:
    """Count a file's rows. Raises ToolError for a file that must not be published."""
    name, text = part
    _, *rows = csv.reader(text.splitlines(keepends=True))
    for number, row in enumerate(rows, start=2):
        if any(map(EMAIL.search, row)):
            raise ToolError(f"{name}: row {number} has an e-mail address, which may be personal")
    return len(rows)
