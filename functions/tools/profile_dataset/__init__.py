"""Profile a CSV file: a workflow tool, made of `workflow.asl.json` and the functions it calls.

Split -> Profile (one per chunk, in parallel) -> Merge -> Confirm (asks the client) -> Publish
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field

from mcp_tasks import workflow_tool

from .profile import DatasetProfile
from .steps import merge, profile, publish, split

MAX_CSV_CHARACTERS = 220_000
"""Step Functions passes at most 256 KiB between states, and the file travels twice."""


class Arguments(BaseModel):
    """What the tool takes."""

    csv: Annotated[
        str,
        Field(
            description="The file's text; its first row names the columns",
            min_length=1,
            max_length=MAX_CSV_CHARACTERS,
        ),
    ]
    chunk_rows: Annotated[
        int, Field(description="How many rows one worker profiles", ge=50, le=100_000)
    ] = 1000


profile_dataset = workflow_tool(
    "profile_dataset",
    title="Profile a CSV file",
    description="""
        Profile a CSV file: per column its type, missing values, range, mean, distinct values and
        most frequent values. Asks before it shows values, which may be personal data.
        """,
    arguments=Arguments,
    result=DatasetProfile,
    definition=Path(__file__).with_name("workflow.asl.json"),
    steps=[split, profile, merge, publish],
    annotations={"readOnlyHint": True},
    ttl=timedelta(hours=12),
    poll_every=timedelta(milliseconds=500),
)
