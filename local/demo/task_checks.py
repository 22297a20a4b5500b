"""The checks of calls that become tasks."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import UTC, datetime
from typing import Any

from mcp import Client

from mcp_tasks_client import (
    CompletedTask,
    DetailedTask,
    Task,
    TaskCancelled,
    TaskFailed,
    TasksExtension,
    cancel_task,
    get_task,
    wait_for_task,
)

from .demo import AIRPORTS, REQUEST_SECONDS, ROOT, Demo, start_slow_task, start_task
from .expectations import CheckFailed, expect, expect_that, structured, text_of
from .profile import check_profile, show_profile
from .screen import Screen


async def run_a_workflow(demo: Demo, client: Client) -> None:
    """`profile_dataset` of a real file: a state machine divides it into chunks, profiles them in
    parallel, merges the results, and asks before it shows any values.
    """
    demo.screen.say(f"{AIRPORTS.relative_to(ROOT)}, {len(demo.airports_csv):,} characters")
    # Through the extension, the SDK polls, asks, and checks the result against the output schema.
    result = await client.call_tool("profile_dataset", {"csv": demo.airports_csv})
    profile = structured(result)
    show_profile(demo.screen, profile)
    # Polls may miss `working` after the answer: little remains to be done then.
    statuses = demo.task_line.statuses
    expect_that("input_required" in statuses, "the status input_required", statuses)
    expect("the last status", statuses[-1], "completed")
    check_profile(demo.airports_csv, profile, demo.task_line.answers)
    demo.screen.line()
    demo.screen.say("Rows, columns, missing values, ranges and counts agree with the file.")


async def ask_from_a_function(demo: Demo, client: Client) -> None:
    """`simulate_savings` without a share of stocks: the function asks for it. While the question is
    open, no function runs. The function starts again when the answer is there.
    """
    result = await client.call_tool("simulate_savings", {"monthly": 200, "years": 20})
    expect("questions asked", len(demo.task_line.answers), 1)
    expect("the last status", demo.task_line.statuses[-1:], ["completed"])
    if demo.task_line.answers[0].action != "accept":
        demo.screen.say(f"Declined. The tool says: {text_of(result)}")
        return
    savings = structured(result)
    show_savings(demo.screen, savings)
    expect("paid in", savings["paid_in"], 12 * 20 * 200)
    cases = [savings["bad_case"], savings["median"], savings["good_case"]]
    expect_that(cases == sorted(cases), "bad case <= median <= good case", cases)


def show_savings(screen: Screen, savings: dict[str, Any]) -> None:
    """Print what `simulate_savings` returns as a table."""
    rows = [
        ["paid in", f"{savings['paid_in']:,.0f}", ""],
        ["bad case", f"{savings['bad_case']:,.0f}", "one run in ten ends below"],
        ["median", f"{savings['median']:,.0f}", ""],
        ["good case", f"{savings['good_case']:,.0f}", "one run in ten ends above"],
        ["chance of a loss", f"{savings['chance_of_loss']:.1%}", f"of {savings['runs']:,} runs"],
    ]
    screen.line()
    screen.table(["after 20 years", "", ""], rows, right={1})


async def subscribe_to_tasks(demo: Demo, client: Client) -> None:
    """Two simulations and one subscription. The client does not poll: the server sends each change
    of each task, through the table's stream, EventBridge and a mailbox. The last change of a task
    carries its result.
    """
    extension = TasksExtension()
    received: list[DetailedTask] = []
    names: dict[str, str] = {}

    def show_change(task: DetailedTask) -> None:
        received.append(task)
        delay = datetime.now(UTC) - datetime.fromisoformat(task.last_updated_at)
        text = task.status_message or ""
        if isinstance(task, CompletedTask):
            text = f"median {structured(task.result)['median']:,.0f}"
        delivered = f"delivered after {delay.total_seconds() * 1000:4,.0f} ms"
        demo.screen.say(f"{names[task.task_id]}  {task.status:<10} {text:<37} {delivered}")

    async with Client(
        demo.streaming_url, read_timeout_seconds=REQUEST_SECONDS, extensions=[extension]
    ) as subscriber:
        for share in (0.1, 0.9):
            arguments = {"monthly": 200, "years": 20, "share_of_stocks": share, "runs": 10_000}
            created = await start_task(subscriber, "simulate_savings", arguments)
            names[created.task_id] = f"{share:.0%} stocks"
        await extension.listen(subscriber.session, names, show_change)
    for task_id, name in names.items():
        changes = [task for task in received if task.task_id == task_id]
        expect(f"the last status of {name}", changes[-1].status, "completed")
        times = [task.last_updated_at for task in changes]
        expect(f"the order of {name}", times, sorted(times))
        expect_that(len(changes) > 1, f"several changes of {name}", changes)


async def cancel(demo: Demo, client: Client) -> None:
    """`profile_dataset` again. The client sends `tasks/cancel` before the task has ended."""
    session = client.session
    created = await start_task(client, "profile_dataset", {"csv": demo.airports_csv})
    demo.task_line.update(created)
    await asyncio.sleep((created.poll_interval_ms or 0) / 1000)
    demo.task_line.update(await get_task(session, created.task_id))
    await cancel_task(session, created.task_id)
    with contextlib.suppress(TaskCancelled):
        await wait_for_task(session, created.task_id, demo.task_line.update)
    task = await get_task(session, created.task_id)
    demo.screen.say(f"tasks/get says {task.status}")
    expect("the status", task.status, "cancelled")


async def return_a_tool_error(demo: Demo, client: Client) -> None:
    """`profile_dataset` of a file without rows. An error that the tool reports is a result: the
    task is completed, and its result has `isError`.
    """
    result = await client.call_tool("profile_dataset", {"csv": "iata,name\n"})
    demo.screen.say(f'isError, "{text_of(result)}"')
    expect("the last status", demo.task_line.statuses[-1:], ["completed"])
    expect("isError", result.is_error, True)
    expect_that("no rows" in text_of(result), "a message that names the cause", text_of(result))


async def exceed_the_time(demo: Demo, client: Client) -> None:
    """`simulate_savings` with 5,000,000 runs, started in section 2; the tool may take 10 seconds.
    The server stops it: the task is failed, with a JSON-RPC error.
    """
    slow = demo.slow_task or await start_slow_task(client)
    try:
        result = await wait_for_task(client.session, slow.task_id, demo.task_line.update)
    except TaskFailed as error:
        failure = error
    else:
        raise CheckFailed(f"expected the task to fail, received {text_of(result)!r}")
    demo.screen.say(f'JSON-RPC error {failure.code}, "{failure.message}"')
    task = await get_task(client.session, slow.task_id)
    demo.screen.say(f"failed {seconds_of(task):.1f} s after its creation, by the server's clock")
    expect("the code", failure.code, -32603)
    expect_that("time" in failure.message, "a message that names the cause", failure.message)
    expect_that("Traceback" not in failure.message, "no stack trace", failure.message)


def seconds_of(task: Task) -> float:
    """The seconds from a task's creation to its last change."""
    begin, end = map(datetime.fromisoformat, (task.created_at, task.last_updated_at))
    return (end - begin).total_seconds()
