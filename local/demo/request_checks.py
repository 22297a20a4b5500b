"""The checks of what the server answers within one request."""

from __future__ import annotations

import json
from typing import Final

from mcp import Client
from mcp_types import Prompt, ResourceTemplateReference, TextContent, TextResourceContents

from mcp_tasks_client import EXTENSION

from .demo import REQUEST_SECONDS, Demo, start_slow_task
from .expectations import expect, expect_that, structured, text_of

REVISION: Final = "2026-07-28"
OLDER_REVISION: Final = "2025-11-25"

HOW_TOOLS_RUN: Final = {
    "greet": "within the request",
    "profile_dataset": "as a task: a state machine of its own",
    "publish_dataset": "as a task: a durable function",
    "simulate_savings": "as a task: a Python function",
}
"""How each sample tool runs. `tools/list` does not say it; the checks below show it."""


async def connect(demo: Demo, client: Client) -> None:
    """The client discovers the server and lists its tools."""
    screen, server = demo.screen, client.server_info
    screen.say(f"{server.name} {server.version}" if server else "a server without a name")
    screen.say(f"revision {client.protocol_version}, with the extension {EXTENSION}")
    expect("the revision", client.protocol_version, REVISION)
    extensions = client.server_capabilities.extensions or {}
    expect_that(EXTENSION in extensions, f"the server to declare {EXTENSION}", sorted(extensions))
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    rows = [
        [
            name,
            HOW_TOOLS_RUN.get(name, "as its author declares"),
            tool.title or tool.description or "",
        ]
        for name, tool in tools.items()
    ]
    screen.line()
    screen.table(["tool", "runs", "what it does"], rows, right=set())
    prompts: list[Prompt] = []
    if client.server_capabilities.prompts is not None:
        prompts = (await client.list_prompts()).prompts
    demo.offered = frozenset([*tools, *(prompt.name for prompt in prompts)])


async def answer_within_the_request(demo: Demo, client: Client) -> None:
    """The server answers a call of `greet` within the request: no task is created."""
    result = await client.call_tool("greet", {"name": "Ada"})
    demo.screen.say(f'greet(name="Ada") returns "{text_of(result)}"')
    expect("the task's statuses", demo.task_line.statuses, [])
    expect("isError", result.is_error, False)
    expect("the text", text_of(result), "Hello, Ada!")
    if "simulate_savings" in (demo.offered or ()):
        # The last check needs this task. It runs in the background: nobody has to wait for it.
        demo.slow_task = await start_slow_task(client)
        demo.screen.say(
            "A simulation that needs more than its 10 s starts in the background.", "dim"
        )


async def ask_within_the_request(demo: Demo, client: Client) -> None:
    """The same call from a client that does not declare the tasks extension. The function runs
    within the request and asks by a multi round-trip request; its progress notifications come on
    the response's stream.
    """
    received: list[float] = []

    async def show_progress(progress: float, total: float | None, message: str | None) -> None:
        received.append(progress)
        demo.screen.say(f"progress {progress:.0f} of {total or 0:.0f}: {message}", "dim")

    arguments = {"monthly": 200, "years": 20, "runs": 1000}
    async with Client(
        demo.url,
        read_timeout_seconds=REQUEST_SECONDS,
        elicitation_callback=demo.task_line.answer,
    ) as plain:
        result = await plain.call_tool(
            "simulate_savings", arguments, progress_callback=show_progress
        )
    expect("questions asked", len(demo.task_line.answers), 1)
    expect("the task's statuses", demo.task_line.statuses, [])
    if demo.task_line.answers[0].action != "accept":
        demo.screen.say(f"Declined. The tool says: {text_of(result)}")
        return
    demo.screen.say(f"The median after 20 years: {structured(result)['median']:,.0f}")
    expect("progress", received, sorted(set(received)))
    expect_that(len(received) > 1, "more than one progress notification", received)


async def get_a_prompt(demo: Demo, client: Client) -> None:
    """The client gets the prompt `plan_savings` and reads the resource that the prompt names."""
    goal = {"goal": "a house"}
    got = await client.get_prompt("plan_savings", goal)
    text = "\n".join(m.content.text for m in got.messages if isinstance(m.content, TextContent))
    demo.screen.say(text)
    expect_that("a house" in text, "a prompt with its argument", text)
    uri = "savings://assumptions"
    expect_that(uri in text, "a prompt that names its resource", text)
    (contents,) = (await client.read_resource(uri)).contents
    expect_that(isinstance(contents, TextResourceContents), "text", contents)
    assumptions = json.loads(contents.text) if isinstance(contents, TextResourceContents) else {}
    rows = [
        [a, f"{v['mean']:.0%}", f"{v['standard_deviation']:.0%}"] for a, v in assumptions.items()
    ]
    demo.screen.line()
    demo.screen.table(["yearly return", "mean", "standard deviation"], rows, right={1, 2})
    template = ResourceTemplateReference(type="ref/resource", uri="savings://assumptions/{asset}")
    completed = await client.complete(template, {"name": "asset", "value": "st"})
    expect("the completion of st", completed.completion.values, ["stocks"])


async def connect_an_older_client(demo: Demo, client: Client) -> None:
    """A client of the previous protocol revision connects to the same URL, with `initialize`. It
    knows no tasks: a workflow runs as one call, with its progress and its question.
    """
    async with Client(
        demo.url,
        mode="legacy",
        read_timeout_seconds=REQUEST_SECONDS,
        elicitation_callback=demo.task_line.answer,
    ) as older:
        demo.screen.say(f"revision {older.protocol_version}")
        expect("the revision", older.protocol_version, OLDER_REVISION)
        tools = {tool.name: tool for tool in (await older.list_tools()).tools}
        unknown = tools.keys() - (demo.offered or tools.keys())
        expect("tools that the first client was not shown", sorted(unknown), [])
        demo.screen.say(f"{len(tools)} tools")
        if "greet" in tools:
            result = await older.call_tool("greet", {"name": "Grace"})
            demo.screen.say(f'greet(name="Grace") returns "{text_of(result)}"')
            expect("the text", text_of(result), "Hello, Grace!")
        if "profile_dataset" in tools:
            await call_a_workflow(demo, older)


async def call_a_workflow(demo: Demo, older: Client) -> None:
    """`profile_dataset` in one `await`, as any other tool."""
    told: list[str] = []

    async def progressed(progress: float, total: float | None, message: str | None) -> None:
        told.append(message or "")
        demo.screen.say(message or "", "dim")

    result = await older.call_tool(
        "profile_dataset", {"csv": demo.airports_csv}, progress_callback=progressed
    )
    expect("the result is no error", bool(result.is_error), False)
    expect("questions asked", len(demo.task_line.answers), 1)
    expect_that(bool(told), "progress", told)
    rows = structured(result)["rows"]
    demo.screen.say(f"profile_dataset(...) returns the profile of {rows:,} rows")
