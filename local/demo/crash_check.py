"""The check of a client that is killed while its task runs."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys

from mcp import Client
from mcp.client import ClientRequestContext
from mcp_types import ElicitRequestParams, ElicitResult

from mcp_tasks_client import TasksExtension, wait_for_task

from .demo import AIRPORTS, ROOT, Demo
from .expectations import expect, expect_that, structured
from .profile import check_profile


async def kill_the_client(demo: Demo, client: Client) -> None:
    """Another process calls `profile_dataset` and is killed while it polls. A second client, which
    has nothing but the task's id, polls until the result is there.
    """
    killed = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "local.demo", demo.url, "--poll-forever"),
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
    )
    try:
        line = await killed.stdout.readline() if killed.stdout else b""
        task_id = line.decode().strip()
        expect_that(task_id != "", "a task id from the other process", task_id)
        demo.screen.say(f"Process {killed.pid} has started the task {task_id}")
    finally:
        with contextlib.suppress(ProcessLookupError):  # the process failed and ended by itself
            killed.kill()
        exit_code = await killed.wait()
    expect("the process's exit code", exit_code, -signal.SIGKILL)
    demo.screen.say(f"Process {killed.pid} is killed. Another client polls by the task's id:")
    result = await wait_for_task(client.session, task_id, demo.task_line.update)
    check_profile(demo.airports_csv, structured(result), demo.task_line.answers)
    demo.screen.say("Nothing is lost: the profile agrees with the file.")


async def start_and_poll_forever(url: str) -> None:
    """Be the client that is killed: start a task, print its id, poll, and never answer."""

    async def never_answer(
        context: ClientRequestContext, params: ElicitRequestParams
    ) -> ElicitResult:
        return await asyncio.Future[ElicitResult]()

    extension = TasksExtension(on_update=lambda task: print(task.task_id, flush=True))
    async with Client(url, elicitation_callback=never_answer, extensions=[extension]) as client:
        await client.call_tool("profile_dataset", {"csv": AIRPORTS.read_text(encoding="utf-8")})
