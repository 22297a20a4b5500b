"""FastMCP 2.14 as a client: fastmcp_2.py URL SCENARIO OPTIONS, as python_sdk_1.py has them."""
# mypy: ignore-errors

import asyncio
import json
import sys

from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.transports import StreamableHttpTransport
from mcp import McpError
from observed import http_client, plain, tell


async def sample(messages, params, context):
    tell("asked", method="sampling/createMessage", params=plain(params))
    return "Roses are red"


async def roots(context):
    tell("asked", method="roots/list", params={})
    return ["file:///home/ada"]


async def progressed(progress, total, message):
    tell("progress", progress=progress, total=total, message=message)


async def logged(message):
    tell("notification", method="notifications/message", params=plain(message))


def tell_result(result):
    content = [plain(block) for block in result.content]
    structured = result.structured_content
    told = {"content": content, "structuredContent": structured, "isError": result.is_error}
    tell("result", result=told)


async def list_and_call(client, options):
    tell("tools", tools=[plain(tool) for tool in await client.list_tools()])
    await call(client, {"tool": "hello", "arguments": {"name": "Ada"}})


async def call(client, options):
    tell_result(
        await client.call_tool(
            options["tool"],
            options["arguments"],
            progress_handler=progressed,
            raise_on_error=False,
        )
    )


async def task_call(client, options):
    task = await client.call_tool(options["tool"], options["arguments"], task=True, ttl=120_000)
    tell("created", taskId=task.task_id, immediate=task.returned_immediately)
    task.on_status_change(lambda status: tell("task", **plain(status)))
    tell_result(await task)
    if not task.returned_immediately:
        tell("task", **plain(await client.get_task_status(task.task_id)))


async def task_cancel(client, options):
    task = await client.call_tool(options["tool"], options["arguments"], task=True)
    tell("created", taskId=task.task_id, immediate=task.returned_immediately)
    await task.cancel()
    tell("task", **plain(await task.status()))


async def end_session(client, options):
    await client.ping()


SCENARIOS = [list_and_call, call, task_call, task_cancel, end_session]


async def main(url, scenario, options):
    (play,) = (known for known in SCENARIOS if known.__name__ == scenario)
    form = options.get("form", {"name": "Ada"})

    async def elicit(message, response_type, params, context):
        tell("asked", method="elicitation/create", params=plain(params))
        return ElicitResult(action="accept", content=form if params.mode == "form" else None)

    client = Client(
        StreamableHttpTransport(url, httpx_client_factory=http_client),
        auth=options.get("token"),
        log_handler=logged,
        elicitation_handler=elicit,
        sampling_handler=sample,
        roots=roots,
    )
    async with client:
        session_id = client.transport.get_session_id()
        tell("initialized", **plain(client.initialize_result), sessionId=session_id)
        try:
            await play(client, options)
        except McpError as error:
            tell("error", code=error.error.code, message=error.error.message)
    tell("ended")


asyncio.run(main(sys.argv[1], sys.argv[2], json.loads(sys.argv[3])))
