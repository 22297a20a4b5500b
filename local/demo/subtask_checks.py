"""The checks of a durable function: its tree of subtasks, and what is undone when it is cancelled.

What is in the server's catalogue is read as a resource, `datasets://<name>`.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from typing import Any, Final

from mcp import Client, MCPError
from mcp_types import TextResourceContents

from mcp_tasks_client import CancelledTask, CompletedTask, cancel_task, follow_tree, get_task

from .demo import Demo, start_task
from .expectations import CheckFailed, expect, expect_that, structured, text_of

NOT_FOUND: Final = -32602
UNDO_SECONDS: Final = 30
"""How long the server may take to undo what a cancelled task did."""


async def publish(demo: Demo, client: Client) -> None:
    """`publish_dataset` is one Python function. It counts the rows of two files side by side,
    writes a draft into a catalogue, and has `profile_dataset` profile each file: two subtasks,
    which run and ask for themselves. Then it asks, sleeps for two seconds, and publishes.
    """
    files, name = airports_in_two_files(demo.airports_csv), new_name()
    result = await client.call_tool("publish_dataset", {"name": name, "files": files})
    expect("the last status", demo.task_line.statuses[-1:], ["completed"])
    show_subtasks(demo, sorted(files))
    if result.is_error:  # the person at the terminal has declined
        demo.screen.say(f"Not published. The tool says: {text_of(result)}")
        expect("what is in the catalogue", await in_catalogue(client, name), None)
        return
    expect("rows", structured(result)["rows"], {n: t.count("\n") - 1 for n, t in files.items()})
    entry = await in_catalogue(client, name)
    expect("what is in the catalogue", entry, {**structured(result), "status": "published"})
    demo.screen.say(f"datasets://{name} is published")


async def cancel(demo: Demo, client: Client) -> None:
    """The same call. The client sends `tasks/cancel` while the subtasks wait for answers: they end
    first, then their parent. The draft is taken back, behind the cancelled task.
    """
    session, name = client.session, new_name()
    arguments = {"name": name, "files": airports_in_two_files(demo.airports_csv)}
    created = await start_task(client, "publish_dataset", arguments)
    demo.task_line.update(created)
    waiting = set()
    async for task in follow_tree(session, created.task_id):
        demo.task_line.update(task)
        if task.status == "input_required":
            waiting.add(task.task_id)
        if len(waiting) == 2:
            break
    entry = await in_catalogue(client, name) or {}
    expect("the entry's status", entry.get("status"), "draft")
    demo.task_line.settle()
    demo.screen.say(f"datasets://{name} is a draft. The client sends tasks/cancel:")
    cancelled_at = time.monotonic()
    await cancel_task(session, created.task_id)
    async for task in follow_tree(session, created.task_id):
        demo.task_line.update(task)
    ends = [await get_task(session, task_id) for task_id in (*waiting, created.task_id)]
    expect_that(all(isinstance(end, CancelledTask) for end in ends), "three cancelled tasks", ends)
    while await in_catalogue(client, name) is not None:
        if time.monotonic() > cancelled_at + UNDO_SECONDS:
            raise CheckFailed(f"datasets://{name} is still there after {UNDO_SECONDS} seconds")
        await asyncio.sleep(0.2)
    seconds = time.monotonic() - cancelled_at
    demo.screen.say(f"datasets://{name} is gone, {seconds:.1f} s after tasks/cancel.")


def airports_in_two_files(text: str) -> dict[str, str]:
    """The airports of Alaska, of which there are most, and the others, each with the header."""
    header, *rows = text.splitlines(keepends=True)
    alaska = [row for row in rows if ",AK,USA," in row]
    others = [row for row in rows if ",AK,USA," not in row]
    return {"alaska": "".join([header, *alaska]), "other-states": "".join([header, *others])}


def new_name() -> str:
    """A name that the catalogue does not have: the demo may have run before."""
    return f"airports-{secrets.token_hex(3)}"


def show_subtasks(demo: Demo, files: list[str]) -> None:
    """Print what each subtask has returned: a result of its own. Raises CheckFailed without one."""
    subtasks = list(demo.task_line.subtasks.values())
    expect("the subtasks' statuses", [task.status for task in subtasks], ["completed"] * len(files))
    profiles = [structured(task.result) for task in subtasks if isinstance(task, CompletedTask)]
    rows = [
        [f"{number}  {file}", f"{profile['rows']:,}", str(len(profile["columns"]))]
        for number, (file, profile) in enumerate(zip(files, profiles, strict=True), start=1)
    ]
    demo.screen.line()
    demo.screen.table(["profiled by a subtask", "rows", "columns"], rows, right={1, 2})
    demo.screen.line()


async def in_catalogue(client: Client, name: str) -> dict[str, Any] | None:
    """The catalogue's entry of a dataset; None when there is none."""
    try:
        (contents,) = (await client.read_resource(f"datasets://{name}")).contents
    except MCPError as error:
        if error.code != NOT_FOUND:
            raise
        return None
    if not isinstance(contents, TextResourceContents):
        raise CheckFailed(f"expected text, received {contents!r}")
    entry: dict[str, Any] = json.loads(contents.text)
    return entry
