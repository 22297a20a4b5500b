"""The official Python SDK 1.x as a client: python_sdk_1.py URL SCENARIO OPTIONS.

OPTIONS are a JSON object. Each thing that the client observes is a line on stdout, a JSON object
with `event`. It runs with the packages of this folder's uv.lock, not with those of the tests.
"""
# mypy: ignore-errors

import asyncio
import json
import sys
import warnings
from contextlib import asynccontextmanager

from mcp import ClientSession, McpError, types
from mcp.client.streamable_http import streamable_http_client
from observed import http_client, plain, tell


class Callbacks:
    """Fixed answers to everything that a client can be asked."""

    def __init__(self, options):
        self.form = options.get("form", {"name": "Ada"})
        self.updated = asyncio.Event()

    async def elicit(self, context, params):
        tell("asked", method="elicitation/create", params=plain(params))
        is_form = isinstance(params, types.ElicitRequestFormParams)
        return types.ElicitResult(action="accept", content=self.form if is_form else None)

    async def sample(self, context, params):
        tell("asked", method="sampling/createMessage", params=plain(params))
        text = types.TextContent(type="text", text="Roses are red")
        return types.CreateMessageResult(role="assistant", content=text, model="a-model")

    async def roots(self, context):
        tell("asked", method="roots/list", params={})
        return types.ListRootsResult(roots=[types.Root(uri="file:///home/ada")])

    async def progressed(self, progress, total, message):
        tell("progress", progress=progress, total=total, message=message)

    async def received(self, message):
        if isinstance(message, types.ServerNotification):
            tell("notification", **plain(message))
            if isinstance(message.root, types.ResourceUpdatedNotification):
                self.updated.set()


@asynccontextmanager
async def connect(url, options, callbacks):
    token = options.get("token")
    headers = {"Authorization": f"Bearer {token}"} if token else None
    async with (
        http_client(headers=headers) as http,
        streamable_http_client(url, http_client=http) as (read, write, session_id),
        ClientSession(
            read,
            write,
            elicitation_callback=callbacks.elicit,
            sampling_callback=callbacks.sample,
            list_roots_callback=callbacks.roots,
            message_handler=callbacks.received,
        ) as session,
    ):
        tell("initialized", **plain(await session.initialize()), sessionId=session_id())
        yield session


async def list_and_call(session, options, callbacks):
    tell("tools", tools=[plain(tool) for tool in (await session.list_tools()).tools])
    await call(session, {"tool": "hello", "arguments": {"name": "Ada"}}, callbacks)


async def call(session, options, callbacks):
    result = await session.call_tool(
        options["tool"], options["arguments"], progress_callback=callbacks.progressed
    )
    tell("result", result=plain(result))


async def task_call(session, options, callbacks):
    """As the SDK documents it: poll, and stay in tasks/result when the task asks."""
    tasks = session.experimental
    created = await tasks.call_tool_as_task(options["tool"], options["arguments"], ttl=120_000)
    tell("task", **plain(created.task))
    async for status in tasks.poll_task(created.task.taskId):
        tell("task", **plain(status))
        if status.status == "input_required":
            break
    result = await tasks.get_task_result(created.task.taskId, types.CallToolResult)
    tell("result", result=plain(result))
    tell("task", **plain(await tasks.get_task(created.task.taskId)))
    if session.get_server_capabilities().tasks.list is not None:
        page = await tasks.list_tasks()
        tell("tasks", tasks=[plain(task) for task in page.tasks])


async def task_cancel(session, options, callbacks):
    tasks = session.experimental
    created = await tasks.call_tool_as_task(options["tool"], options["arguments"])
    tell("task", **plain(created.task))
    tell("task", **plain(await tasks.cancel_task(created.task.taskId)))
    tell("task", **plain(await tasks.get_task(created.task.taskId)))
    await tasks.cancel_task(created.task.taskId)


async def subscribe_resource(session, options, callbacks):
    """With a `tool`, that is what changes the resource."""
    await session.subscribe_resource(options["uri"])
    tell("subscribed")
    if "tool" in options:
        await call(session, options, callbacks)
    await callbacks.updated.wait()
    await session.unsubscribe_resource(options["uri"])
    tell("unsubscribed")


async def end_session(session, options, callbacks):
    await session.send_ping()


SCENARIOS = [list_and_call, call, task_call, task_cancel, subscribe_resource, end_session]


async def main(url, scenario, options):
    (play,) = (known for known in SCENARIOS if known.__name__ == scenario)
    callbacks = Callbacks(options)
    async with connect(url, options, callbacks) as session:
        try:
            await play(session, options, callbacks)
        except McpError as error:
            tell("error", code=error.error.code, message=error.error.message)
    tell("ended")


warnings.simplefilter("ignore", DeprecationWarning)  # of everything experimental
asyncio.run(main(sys.argv[1], sys.argv[2], json.loads(sys.argv[3])))
