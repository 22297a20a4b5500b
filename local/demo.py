"""See a deployed server work, from its client's side: `python -m local.demo URL`.

Drives the sample tools through the official `mcp` SDK and `tasks_client`, checks what comes back,
and exits with 0 only when all of it held. It reads from top to bottom: each section of what it
prints is a function, docstring included, in the order in which they run.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import csv
import io
import json
import signal
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from mcp import Client, MCPError
from mcp.client import ClientRequestContext
from mcp_types import (
    CallToolResult,
    ElicitRequestParams,
    ElicitResult,
    ResourceTemplateReference,
    TextContent,
    TextResourceContents,
)

from mcp_tasks_client import (
    EXTENSION,
    CompletedTask,
    CreateTaskResult,
    DetailedTask,
    Task,
    TaskCancelled,
    TaskFailed,
    TasksExtension,
    cancel_task,
    get_task,
    start_tool,
    wait_for_task,
)

from .terminal import Content, Live, Outcome, Screen

ROOT: Final = Path(__file__).resolve().parents[1]
AIRPORTS: Final = ROOT / "events" / "airports.csv"
REVISION: Final = "2026-07-28"
OLDER_REVISION: Final = "2025-11-25"

ANSWERS: Final[Content] = {"show_values": True, "title": "US airports", "share_of_stocks": 0.7}
"""What the demo answers, by field, when nobody is asked."""

RUNS: Final = {
    "greet": "within the request",
    "profile_dataset": "as a task: a state machine of its own",
    "simulate_savings": "as a task: a Python function",
}
"""The sample tools and how they run. The protocol does not tell; the sections below show it."""

CHECK_SECONDS: Final = 90
"""How long one section may take; several times what it needs on a slow machine."""
REQUEST_SECONDS: Final = 30
"""How long one request may take; API Gateway gives up after 29."""


@dataclass
class Demo:
    """What the sections share."""

    url: str
    streaming_url: str
    """The endpoint that streams; without one, the same."""
    screen: Screen
    ask: bool
    """Whether the person at the terminal answers, and not the demo."""
    file: str = field(default_factory=lambda: AIRPORTS.read_text(encoding="utf-8"))
    live: Live = field(init=False)
    """The section's task on the screen, and who answers it: a new one for each section."""
    slow: CreateTaskResult | None = None
    connected: bool = False

    def new_client(self) -> Client:
        """A client that knows tasks, shows them, and can ask somebody."""
        return Client(
            self.url,
            read_timeout_seconds=REQUEST_SECONDS,
            elicitation_callback=self.live.answer,
            extensions=[TasksExtension(on_update=self.live.update)],
        )


# ---- The sections --------------------------------------------------------------------------------


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
        [name, RUNS.get(name, "as the server decides"), tool.title or tool.description or ""]
        for name, tool in tools.items()
    ]
    screen.line()
    screen.table(["tool", "runs", "what it does"], rows, right=set())
    expect("sample tools", sorted(RUNS.keys() & tools), sorted(RUNS))


async def answer_at_once(demo: Demo, client: Client) -> None:
    """A call of `greet` is answered within the request."""
    result = await client.call_tool("greet", {"name": "Ada"})
    demo.screen.say(f'greet(name="Ada") returns "{text_of(result)}"')
    expect("the task's statuses", demo.live.statuses, [])
    expect("isError", result.is_error, False)
    expect("the text", text_of(result), "Hello, Ada!")
    demo.slow = await start_slow(client)  # the last section's, so that nobody has to wait for it
    demo.screen.say("In the background, a simulation starts that has more to do than time.", "dim")


async def profile_a_file(demo: Demo, client: Client) -> None:
    """`profile_dataset` of a real file: a state machine cuts it up, profiles the chunks in
    parallel, merges, and asks before it shows any values.
    """
    demo.screen.say(f"{AIRPORTS.relative_to(ROOT)}, {len(demo.file):,} characters")
    # The SDK polls and asks through the extension, and checks the output schema.
    result = await client.call_tool("profile_dataset", {"csv": demo.file})
    profile = structured(result)
    show_profile(demo.screen, profile)
    # A poll may miss a short status: between the answer and the end there is little to do.
    statuses = demo.live.statuses
    expect_that("input_required" in statuses, "a question on the way", statuses)
    expect("the last status", statuses[-1], "completed")
    check_profile(demo.file, profile, demo.live.answers)
    demo.screen.line()
    demo.screen.say("Rows, columns, missing values, ranges and counts agree with the file.")


async def ask_from_a_function(demo: Demo, client: Client) -> None:
    """`simulate_savings` without a share of stocks. When the function asks, it ends, and runs again
    with the answer; nothing runs meanwhile.
    """
    result = await client.call_tool("simulate_savings", {"monthly": 200, "years": 20})
    expect("questions asked", len(demo.live.answers), 1)
    expect("the last status", demo.live.statuses[-1:], ["completed"])
    if demo.live.answers[0].action != "accept":
        demo.screen.say(f"Declined. The tool says: {text_of(result)}")
        return
    savings = structured(result)
    rows = [
        ["paid in", f"{savings['paid_in']:,.0f}", ""],
        ["bad case", f"{savings['bad_case']:,.0f}", "one run in ten ends below"],
        ["median", f"{savings['median']:,.0f}", ""],
        ["good case", f"{savings['good_case']:,.0f}", "one run in ten ends above"],
        ["chance of a loss", f"{savings['chance_of_loss']:.1%}", f"of {savings['runs']:,} runs"],
    ]
    demo.screen.line()
    demo.screen.table(["after 20 years", "", ""], rows, right={1})
    expect("paid in", savings["paid_in"], 12 * 20 * 200)
    cases = [savings["bad_case"], savings["median"], savings["good_case"]]
    expect_that(cases == sorted(cases), "bad case <= median <= good case", cases)


async def ask_within_the_request(demo: Demo, client: Client) -> None:
    """The same call from a client that does not know tasks. The function runs within the request,
    asks by a multi round-trip request, and its progress comes on the answer's own stream.
    """
    heard: list[float] = []

    async def progressed(progress: float, total: float | None, message: str | None) -> None:
        heard.append(progress)
        demo.screen.say(f"progress {progress:.0f} of {total or 0:.0f}: {message}", "dim")

    arguments = {"monthly": 200, "years": 20, "runs": 1000}
    async with Client(
        demo.url,
        read_timeout_seconds=REQUEST_SECONDS,
        elicitation_callback=demo.live.answer,
    ) as plain:
        result = await plain.call_tool("simulate_savings", arguments, progress_callback=progressed)
    expect("questions asked", len(demo.live.answers), 1)
    expect("the task's statuses", demo.live.statuses, [])
    if demo.live.answers[0].action != "accept":
        demo.screen.say(f"Declined. The tool says: {text_of(result)}")
        return
    demo.screen.say(f"The median after 20 years: {structured(result)['median']:,.0f}")
    expect("progress", heard, sorted(set(heard)))
    expect_that(len(heard) > 1, "more than one progress notification", heard)


async def follow_a_prompt(demo: Demo, client: Client) -> None:
    """`plan_savings`, and the resource that it tells the model to read."""
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
    """A client of the revision before, with its handshake, at the same address."""
    async with Client(demo.url, mode="legacy", read_timeout_seconds=REQUEST_SECONDS) as older:
        demo.screen.say(f"revision {older.protocol_version}")
        expect("the revision", older.protocol_version, OLDER_REVISION)
        tools = {tool.name: tool for tool in (await older.list_tools()).tools}
        result = await older.call_tool("greet", {"name": "Grace"})
        demo.screen.say(f'greet(name="Grace") returns "{text_of(result)}"')
        expect("the text", text_of(result), "Hello, Grace!")
        execution = tools["profile_dataset"].execution
        expect("profile_dataset needs a task", execution and execution.task_support, "required")


async def kill_the_client(demo: Demo, client: Client) -> None:
    """`profile_dataset` again, from another process, which is killed while it polls. Another client
    goes on, and knows nothing but the task's id.
    """
    victim = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "local.demo", demo.url, "--wait-for-ever"),
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
    )
    try:
        line = await victim.stdout.readline() if victim.stdout else b""
        task_id = line.decode().strip()
        expect_that(task_id != "", "a task id from the other process", task_id)
        demo.screen.say(f"Process {victim.pid} has started the task {task_id}")
    finally:
        with contextlib.suppress(ProcessLookupError):  # it failed, and ended by itself
            victim.kill()
        ended = await victim.wait()
    expect("the process's end", ended, -signal.SIGKILL)
    demo.screen.say(f"Process {victim.pid} is killed. Another client polls on by the id:")
    result = await wait_for_task(client.session, task_id, demo.live.update)
    check_profile(demo.file, structured(result), demo.live.answers)
    demo.screen.say("Nothing is lost: the profile agrees with the file.")


async def wait_for_ever(url: str) -> None:
    """The client that gets killed: start a task, print its id, poll, and never answer it."""

    async def think(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        return await asyncio.Future[ElicitResult]()

    extension = TasksExtension(on_update=lambda task: print(task.task_id, flush=True))
    async with Client(url, elicitation_callback=think, extensions=[extension]) as client:
        await client.call_tool("profile_dataset", {"csv": AIRPORTS.read_text(encoding="utf-8")})


async def follow_tasks(demo: Demo, client: Client) -> None:
    """Two simulations and one listen. Nobody polls: each change of each task is pushed, through the
    table's stream, EventBridge and a mailbox, and the final states bring the results.
    """
    extension = TasksExtension()
    heard: list[DetailedTask] = []
    names: dict[str, str] = {}

    def changed(task: DetailedTask) -> None:
        heard.append(task)
        late = (datetime.now(UTC) - datetime.fromisoformat(task.last_updated_at)).total_seconds()
        text = task.status_message or ""
        if isinstance(task, CompletedTask):
            text = f"median {structured(task.result)['median']:,.0f}"
        name = names[task.task_id]
        demo.screen.say(f"{name}  {task.status:<10} {text:<37} told after {late * 1000:4,.0f} ms")

    async with Client(
        demo.streaming_url, read_timeout_seconds=REQUEST_SECONDS, extensions=[extension]
    ) as follower:
        for share in (0.1, 0.9):
            arguments = {"monthly": 200, "years": 20, "share_of_stocks": share, "runs": 20_000}
            created = await started(follower, "simulate_savings", arguments)
            names[created.task_id] = f"{share:.0%} stocks"
        await extension.follow(follower.session, names, changed)
    for task_id, name in names.items():
        own = [task for task in heard if task.task_id == task_id]
        expect(f"the last status of {name}", own[-1].status, "completed")
        times = [task.last_updated_at for task in own]
        expect(f"the order of {name}", times, sorted(times))
        expect_that(len(own) > 1, f"several states of {name}", own)


async def cancel(demo: Demo, client: Client) -> None:
    """`profile_dataset` again; `tasks/cancel` comes while it works, or waits for the answer."""
    session = client.session
    created = await started(client, "profile_dataset", {"csv": demo.file})
    demo.live.update(created)
    await asyncio.sleep((created.poll_interval_ms or 0) / 1000)
    demo.live.update(await get_task(session, created.task_id))
    await cancel_task(session, created.task_id)
    with contextlib.suppress(TaskCancelled):
        await wait_for_task(session, created.task_id, demo.live.update)
    task = await get_task(session, created.task_id)
    demo.screen.say(f"tasks/get says {task.status}")
    expect("the status", task.status, "cancelled")


async def err(demo: Demo, client: Client) -> None:
    """`profile_dataset` of a file without rows. What a tool finds wrong is a result: the task is
    completed, with `isError`.
    """
    result = await client.call_tool("profile_dataset", {"csv": "iata,name\n"})
    demo.screen.say(f'isError, "{text_of(result)}"')
    expect("the last status", demo.live.statuses[-1:], ["completed"])
    expect("isError", result.is_error, True)
    expect_that("no rows" in text_of(result), "a message that names the cause", text_of(result))


async def run_over_time(demo: Demo, client: Client) -> None:
    """`simulate_savings` with 5,000,000 runs, started after section 2; it has 10 seconds. What the
    server has to stop is failed, with a JSON-RPC error.
    """
    slow = demo.slow or await start_slow(client)
    try:
        result = await wait_for_task(client.session, slow.task_id, demo.live.update)
    except TaskFailed as error:
        failure = error
    else:
        raise Unexpected(f"expected the task to fail, came {text_of(result)!r}")
    demo.screen.say(f'JSON-RPC error {failure.code}, "{failure.message}"')
    task = await get_task(client.session, slow.task_id)
    demo.screen.say(f"{lasted(task):.1f} s after its start, by the server's clock")
    expect("the code", failure.code, -32603)
    expect_that("time" in failure.message, "a message that names the cause", failure.message)
    expect_that("Traceback" not in failure.message, "no stack trace", failure.message)


Check = Callable[[Demo, Client], Awaitable[None]]
"""One section, with a client of its own. Raises what did not hold."""

CHECKS: Final[list[tuple[str, Check]]] = [
    ("Connect", connect),
    ("A tool that answers at once", answer_at_once),
    ("A workflow, with a question", profile_a_file),
    ("A function as a task, with a question", ask_from_a_function),
    ("The same function within a request", ask_within_the_request),
    ("A prompt, and its resource", follow_a_prompt),
    ("An older client", connect_an_older_client),
    ("Tasks that are followed", follow_tasks),
    ("The client is killed", kill_the_client),
    ("A task is cancelled", cancel),
    ("A tool's own error", err),
    ("A task that runs over its time", run_over_time),
]


async def start_slow(client: Client) -> CreateTaskResult:
    """Start the simulation that has more to do than time."""
    arguments = {"monthly": 200, "years": 20, "share_of_stocks": 0.5, "runs": 5_000_000}
    return await started(client, "simulate_savings", arguments)


async def started(client: Client, tool: str, arguments: dict[str, Any]) -> CreateTaskResult:
    """Start a task and do not wait for it."""
    created = await start_tool(client.session, tool, arguments)
    if not isinstance(created, CreateTaskResult):
        raise Unexpected(f"expected a task, came {text_of(created)!r}")
    return created


def lasted(task: Task) -> float:
    """The seconds from a task's creation to its last change."""
    begin, end = map(datetime.fromisoformat, (task.created_at, task.last_updated_at))
    return (end - begin).total_seconds()


# ---- What the tools return, and what is expected of it -------------------------------------------


class Unexpected(Exception):
    """A check that did not hold; the message says what was expected and what came."""


def expect(what: str, came: object, expected: object) -> None:
    """Raise Unexpected unless `came` equals `expected`."""
    if came != expected:
        raise Unexpected(f"{what}: expected {expected!r}, came {came!r}")


def expect_that(holds: bool, what: str, came: object) -> None:
    """Raise Unexpected unless it holds."""
    if not holds:
        raise Unexpected(f"expected {what}, came {came!r}")


def structured(result: CallToolResult) -> dict[str, Any]:
    """The result's structured content, which must not be an error, and has a copy as text."""
    expect("isError", result.is_error, False)
    expect("the copy as text", json.loads(text_of(result)), result.structured_content)
    content: dict[str, Any] = result.structured_content
    return content


def text_of(result: CallToolResult) -> str:
    """The result's text."""
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))


def check_profile(text: str, profile: dict[str, Any], answers: list[ElicitResult]) -> None:
    """Compare a profile with the file, and with what was answered."""
    expect("questions asked", len(answers), 1)
    answer = answers[0].content or {}
    header, *rows = csv.reader(io.StringIO(text))
    columns = profile["columns"]
    expect("rows", profile["rows"], len(rows))
    expect("columns", [column["name"] for column in columns], header)
    for column, cells in zip(columns, zip(*rows, strict=True), strict=True):
        name = column["name"]
        values = Counter(cell.strip() for cell in cells if cell.strip())
        expect(f"missing in {name}", column["missing"], len(rows) - values.total())
        if column["distinct_is_exact"]:
            expect(f"distinct in {name}", column["distinct"], len(values))
        if column["type"] == "number":
            came, numbers = [column["minimum"], column["maximum"]], [float(v) for v in values]
            expect(f"range of {name}", came, [min(numbers), max(numbers)])
        for item in column["most_frequent"] or []:
            expect(f"{item['value']} in {name}", item["count"], values[item["value"]])
    expect("the title", profile["title"], answer.get("title", "Profile"))
    shown = any(column["most_frequent"] for column in columns)
    expect("values are shown", shown, answer.get("show_values", False))


def show_profile(screen: Screen, profile: dict[str, Any]) -> None:
    """Print a profile as a table."""
    columns, rows = profile["columns"], []
    for column in columns:
        number = column["type"] == "number"
        frequent = [f"{item['value']} {item['count']:,}" for item in column["most_frequent"] or []]
        rows.append(
            [
                column["name"],
                column["type"],
                f"{column['missing']:,}",
                f"{'' if column['distinct_is_exact'] else '~'}{column['distinct']:,}",
                f"{column['minimum']:.5g} to {column['maximum']:.5g}" if number else "",
                f"{column['mean']:.5g}" if number else "",
                ", ".join(frequent),
            ]
        )
    screen.line()
    screen.say(f"{profile['title']}: {profile['rows']:,} rows, {len(columns)} columns", "bold")
    header = ["column", "type", "missing", "distinct", "range", "mean", "most frequent values"]
    screen.table(header, rows, right={2, 3, 5})


# ---- Running it ----------------------------------------------------------------------------------


async def run(url: str, streaming_url: str, *, ask: bool) -> int:
    """Run all checks; returns the exit code."""
    screen = Screen()
    demo = Demo(url, streaming_url, screen, ask=ask and screen.moves and sys.stdin.isatty())
    screen.line("An MCP server with durable tasks, seen by its client", "bold")
    screen.line(url, "dim")
    if ask and not demo.ask:
        screen.line("--ask needs a terminal; the demo answers by itself", "yellow")
    elif not ask and screen.moves:
        screen.line("The demo answers the tools' questions; --ask lets you answer them", "dim")
    outcomes: list[Outcome] = []
    begun = time.monotonic()
    for number, (title, check) in enumerate(CHECKS, start=1):
        screen.heading(f"{number}  {title}")
        screen.say(" ".join((check.__doc__ or "").split()), "dim")
        outcomes.append(outcome := await run_check(demo, title, check))
        if not demo.connected:
            screen.say(f"{screen.bad} No MCP server answers at {url}: {outcome.problem}", "red")
            screen.line()
            screen.say("Is it up? `make up` starts it here and writes its URL to .local/endpoint.")
            return 1
        if outcome.problem is not None:
            screen.say(f"{screen.bad} {outcome.problem}", "red")
    screen.summary(outcomes, time.monotonic() - begun)
    return 0 if all(outcome.problem is None for outcome in outcomes) else 1


async def run_check(demo: Demo, title: str, check: Check) -> Outcome:
    """Run one check; whatever it raises is its outcome, so that the others still run."""
    begun = time.monotonic()
    problem = None
    demo.live = Live(demo.screen, None if demo.ask else ANSWERS)
    try:
        async with (
            asyncio.timeout(None if demo.ask else CHECK_SECONDS),
            demo.live.spinning(),
            demo.new_client() as client,
        ):
            demo.connected = True
            await check(demo, client)
    except Exception as error:
        problem = "; ".join(causes(error))
    return Outcome(title, problem, time.monotonic() - begun)


def causes(error: BaseException) -> Iterator[str]:
    """What went wrong, in words, from inside the SDK's exception groups."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from causes(inner)
    elif isinstance(error, Unexpected):
        yield str(error)
    elif isinstance(error, TimeoutError):
        yield f"expected an end within {CHECK_SECONDS} seconds, came none"
    elif isinstance(error, MCPError):
        yield f"JSON-RPC error {error.code}: {error.message}"
    else:
        yield f"{type(error).__name__}: {error}"


def main() -> int:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(
        prog="python -m local.demo", description="See a deployed server work."
    )
    parser.add_argument("url", help="the MCP endpoint, as `make up` writes it to .local/endpoint")
    parser.add_argument("--streaming", metavar="URL", help="the endpoint that streams, if any")
    parser.add_argument("--ask", action="store_true", help="answer the tools' questions yourself")
    parser.add_argument("--wait-for-ever", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    try:
        if options.wait_for_ever:
            asyncio.run(wait_for_ever(options.url))
            return 1
        return asyncio.run(run(options.url, options.streaming or options.url, ask=options.ask))
    except KeyboardInterrupt:
        print("\nInterrupted. Tasks that were started go on without their client.")
        return 130


if __name__ == "__main__":
    sys.exit(main())
