"""See a deployed server work, from its client's side: `python -m infra.local.demo URL [--ask]`.

Drives the sample tools through the official `mcp` SDK and `tasks_client`, checks what comes back,
and exits with 0 only when all of it held. Each function of CHECKS is one section of what it prints,
docstring included, and can be read as an example of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import csv
import io
import json
import math
import os
import shutil
import signal
import sys
import textwrap
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final, TypeVar

from mcp import Client, MCPError
from mcp.client import ClientRequestContext
from mcp_types import (
    CallToolResult,
    ElicitRequestFormParams,
    ElicitRequestParams,
    ElicitResult,
    TextContent,
)
from pydantic import BaseModel

from .tasks_client import (
    EXTENSION,
    CompletedTask,
    CreateTaskResult,
    InputRequiredTask,
    Task,
    TaskCancelled,
    TaskFailed,
    TasksExtension,
    cancel_task,
    get_task,
    start_tool,
    wait_for_task,
)

ROOT: Final = Path(__file__).resolve().parents[2]
AIRPORTS: Final = ROOT / "events" / "airports.csv"
REVISION: Final = "2026-07-28"

ANSWERS: Final[dict[str, Any]] = {
    "show_values": True,
    "title": "US airports",
    "share_of_stocks": 0.7,
}
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

Content = dict[str, str | int | float | bool | list[str] | None]


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


# ---- The terminal --------------------------------------------------------------------------------

STYLES: Final = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
STATUS_STYLE: Final = {
    "working": "cyan",
    "input_required": "yellow",
    "completed": "green",
    "failed": "red",
    "cancelled": "red",
}


HIDE_CURSOR, SHOW_CURSOR, CLEAR_REST = "\x1b[?25l", "\x1b[?25h", "\x1b[K"


class Screen:
    """Writes to standard output: plain text, and colours and a moving line on a terminal."""

    def __init__(self) -> None:
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="replace")  # a file's values may be any text
        self.moves = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
        self.colours = self.moves and not os.environ.get("NO_COLOR")  # no-color.org
        self.width = max(60, min(shutil.get_terminal_size((100, 24)).columns, 110))
        unicode = (sys.stdout.encoding or "").lower().replace("-", "").startswith("utf")
        self.spinner = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏" if unicode else "|/-\\"
        self.ok, self.bad, self.done, self.rule = "✓✗•─" if unicode else "+!*-"

    def paint(self, text: str, *styles: str) -> str:
        """Give text a style, if the terminal may have colours."""
        if not self.colours or not styles:
            return text
        return f"\x1b[{';'.join(STYLES[style] for style in styles)}m{text}\x1b[0m"

    def write(self, text: str) -> None:
        """Write at once, for a line that is not finished."""
        sys.stdout.write(text)
        sys.stdout.flush()

    def line(self, text: str = "", *styles: str) -> None:
        """Write one line, as it is."""
        self.write(f"{self.paint(text, *styles)}\n")

    def say(self, text: str, *styles: str, indent: int = 3) -> None:
        """Write a paragraph."""
        margin = " " * indent
        for row in textwrap.wrap(text, self.width, initial_indent=margin, subsequent_indent=margin):
            self.line(row, *styles)

    def heading(self, text: str) -> None:
        """Begin a section."""
        self.line()
        self.line(f"{text} {self.rule * (self.width - len(text) - 1)}", "bold")

    def table(self, header: list[str], rows: list[list[str]], right: set[int]) -> None:
        """Write a table; what is too long for the last column is cut."""
        widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
        widths[-1] = min(widths[-1], self.width - 3 - sum(widths[:-1]) - 2 * len(widths[:-1]))
        for number, row in enumerate([header, *rows]):
            cells = [
                cell.rjust(width) if n in right else cut(cell, width).ljust(width)
                for n, (cell, width) in enumerate(zip(row, widths, strict=True))
            ]
            self.line(f"   {'  '.join(cells)}".rstrip(), *(["dim"] if number == 0 else []))


def cut(text: str, width: int) -> str:
    """The text, shortened to a width."""
    return text if len(text) <= width else f"{text[: max(0, width - 3)]}..."


class Live:
    """A running task: one line that is rewritten in place, or a line per change without a terminal.

    What a status said last stays on the screen.
    """

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._since = time.monotonic()
        self._shown = ("", "")
        self._open = False
        self._frame = 0
        self.statuses: list[str] = []
        self.last: Task | None = None

    def update(self, task: Task) -> None:
        """Show a task that has changed (an `OnUpdate`)."""
        self.last = task
        message = task.status_message or ""
        if isinstance(task, InputRequiredTask):
            waiting = len(task.input_requests)
            message = f"waits for {'an answer' if waiting == 1 else f'{waiting} answers'}"
        if (task.status, message) == self._shown:
            return
        if not self.statuses or self.statuses[-1] != task.status:
            self.settle()
            self.statuses.append(task.status)
        self._shown = (task.status, message)
        self._open = True
        if self._screen.moves:
            self._write(f"\r{HIDE_CURSOR}", self._screen.spinner[0], CLEAR_REST)
        else:
            self.settle()

    def settle(self) -> None:
        """Leave the line as it is, and write no more to it: something else is about to be said."""
        if self._open:
            self._open = False
            self._write("\r", self._screen.done, f"{CLEAR_REST}{SHOW_CURSOR}\n")

    async def spin(self) -> None:
        """Rewrite the open line, for ever."""
        while True:
            await asyncio.sleep(0.1)
            self._frame = (self._frame + 1) % len(self._screen.spinner)
            if self._open:
                self._write("\r", self._screen.spinner[self._frame], CLEAR_REST)

    def _write(self, before: str, mark: str, after: str) -> None:
        status, message = self._shown
        seconds = f"{time.monotonic() - self._since:5.1f} s"
        if not self._screen.moves:
            self._screen.line(f"   {seconds}  {status:<14}  {message}".rstrip())
            return
        paint, style = self._screen.paint, STATUS_STYLE[status]
        text = cut(message, self._screen.width - 30)
        line = f" {paint(mark, style)} {paint(seconds, 'dim')}  {paint(f'{status:<14}', style)}"
        self._screen.write(f"{before}{line}  {text}{after}")


# ---- Questions -----------------------------------------------------------------------------------


class Person:
    """Whoever answers: somebody at the terminal, or the demo itself."""

    def __init__(self, screen: Screen, *, at_terminal: bool) -> None:
        self._screen = screen
        self.at_terminal = at_terminal
        self.live: Live | None = None
        self.answers: list[ElicitResult] = []

    async def __call__(
        self, context: ClientRequestContext, params: ElicitRequestParams
    ) -> ElicitResult:
        """Show a question with its form and answer it (an `elicitation_callback`)."""
        if not isinstance(params, ElicitRequestFormParams):
            return ElicitResult(action="decline")  # a URL to visit; the sample tools ask for none
        if self.live is not None:
            self.live.settle()
        self._show(params)
        if self.at_terminal:
            result = await self._fill(params)
        else:
            fields = params.requested_schema.get("properties", {})
            content: Content = {name: ANSWERS[name] for name in fields if name in ANSWERS}
            said = ", ".join(f"{name} = {json.dumps(value)}" for name, value in content.items())
            self._screen.say(f"The demo answers: {said}", "yellow", indent=6)
            result = ElicitResult(action="accept", content=content)
        self.answers.append(result)
        return result

    def _show(self, params: ElicitRequestFormParams) -> None:
        self._screen.say(f"The task asks: {params.message}", "bold", indent=6)
        required = params.requested_schema.get("required", [])
        for name, form in params.requested_schema.get("properties", {}).items():
            said = [form.get("type", "any"), "required" if name in required else "optional"]
            if "default" in form:
                said.append(f"default {json.dumps(form['default'])}")
            text = f"{name:<16} {form.get('title', '')} ({', '.join(said)})"
            self._screen.say(f"{text} {form.get('description', '')}".strip(), indent=8)

    async def _fill(self, params: ElicitRequestFormParams) -> ElicitResult:
        schema = params.requested_schema
        required = schema.get("required", [])
        content: Content = {}
        for name, form in schema.get("properties", {}).items():
            while True:
                hint = " [yes/no]" if form.get("type") == "boolean" else ""
                self._screen.write(f"      {form.get('title', name)}{hint}: ")
                text = await read_line()
                if text is None:
                    self._screen.line()
                    return ElicitResult(action="decline")
                if not text and name not in required:
                    break
                try:
                    content[name] = parsed(text, form)
                    break
                except ValueError as error:
                    self._screen.say(str(error), "red", indent=6)
        return ElicitResult(action="accept", content=content)


def parsed(text: str, form: dict[str, Any]) -> str | int | float | bool:
    """What somebody typed, as the form's type and within its limits.

    Raises ValueError with words for whoever typed it.
    """
    if form.get("type") == "boolean":
        if text.lower() not in ("y", "yes", "n", "no"):
            raise ValueError("Please type yes or no")
        return text.lower().startswith("y")
    if form.get("type") in ("integer", "number"):
        try:
            number = int(text) if form["type"] == "integer" else float(text)
        except ValueError:
            raise ValueError(f"Please type a number, not {text!r}") from None
        low, high = form.get("minimum", -math.inf), form.get("maximum", math.inf)
        if not low <= number <= high:
            raise ValueError(f"Please type a number from {low} to {high}")
        return number
    if not text or len(text) > form.get("maxLength", math.inf):
        raise ValueError(f"Please type 1 to {form.get('maxLength', 'any number of')} characters")
    if "enum" in form and text not in form["enum"]:
        raise ValueError(f"Please type one of {', '.join(form['enum'])}")
    return text


async def read_line() -> str | None:
    """A line from the terminal, None at its end. No thread, so that Ctrl-C ends it."""
    loop = asyncio.get_running_loop()
    line: asyncio.Future[str] = loop.create_future()

    def readable() -> None:
        if not line.done():
            line.set_result(sys.stdin.readline())

    loop.add_reader(sys.stdin, readable)
    try:
        text = await line
    finally:
        loop.remove_reader(sys.stdin)
    return text.strip() if text else None


# ---- What the tools return, as far as the demo reads it ------------------------------------------


class Frequent(BaseModel):
    """A value and how often it occurs."""

    value: str
    count: int


class Column(BaseModel):
    """A column's profile."""

    name: str
    type: str
    missing: int
    distinct: int
    distinct_is_exact: bool = True
    minimum: float | None = None
    maximum: float | None = None
    mean: float | None = None
    most_frequent: list[Frequent] | None = None


class Profile(BaseModel):
    """A file's profile."""

    title: str
    rows: int
    columns: list[Column]


class Savings(BaseModel):
    """The range of outcomes of a savings plan."""

    paid_in: float
    bad_case: float
    median: float
    good_case: float
    chance_of_loss: float
    runs: int


Model = TypeVar("Model", bound=BaseModel)


def structured(result: CallToolResult, model: type[Model]) -> Model:
    """The result's structured content, which must not be an error, and has a copy as text."""
    expect("isError", bool(result.is_error), False)
    copies = [json.loads(block.text) for block in result.content if isinstance(block, TextContent)]
    expect("the copy as text", copies, [result.structured_content])
    return model.model_validate(result.structured_content)


def text_of(result: CallToolResult) -> str:
    """The result's text."""
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))


# ---- The checks ----------------------------------------------------------------------------------


Check = Callable[["Demo", Client], Awaitable[None]]
"""One section of the demo, with a client of its own. Raises what did not hold."""


@dataclass
class Outcome:
    """How a check ended: `problem` is None when it held."""

    title: str
    problem: str | None
    seconds: float


@dataclass
class Demo:
    """What the checks share."""

    url: str
    screen: Screen
    person: Person
    file: str = field(default_factory=lambda: AIRPORTS.read_text(encoding="utf-8"))
    connected: bool = False
    slow: CreateTaskResult | None = None

    def new_client(self) -> Client:
        """A client that knows tasks, shows them, and can ask somebody."""
        return Client(
            self.url,
            read_timeout_seconds=REQUEST_SECONDS,
            elicitation_callback=self.person,
            extensions=[TasksExtension(on_update=self._update)],
        )

    def _update(self, task: Task) -> None:
        if self.person.live is not None:
            self.person.live.update(task)

    @asynccontextmanager
    async def live(self) -> AsyncIterator[Live]:
        """Show the task that runs meanwhile, and collect the answers that it gets."""
        self.person.answers = []
        self.person.live = live = Live(self.screen)
        spinning = asyncio.create_task(live.spin())
        try:
            yield live
        finally:
            spinning.cancel()
            live.settle()
            self.person.live = None


async def connect(demo: Demo, client: Client) -> None:
    """The client discovers the server and lists its tools."""
    screen = demo.screen
    demo.connected = True
    server = client.server_info
    screen.say(f"{server.name} {server.version}" if server else "a server without a name")
    screen.say(f"revision {client.protocol_version}, with the extension {EXTENSION}")
    expect("the revision", client.protocol_version, REVISION)
    extensions = client.server_capabilities.extensions or {}
    expect_that(EXTENSION in extensions, f"the server to declare {EXTENSION}", sorted(extensions))
    tools = (await client.list_tools()).tools
    rows = [
        [
            tool.name,
            RUNS.get(tool.name, "as the server decides"),
            tool.title or tool.description or "",
        ]
        for tool in tools
    ]
    screen.line()
    screen.table(["tool", "runs", "what it does"], rows, right=set())
    expect("sample tools", sorted(set(RUNS) & {tool.name for tool in tools}), sorted(RUNS))


async def answer_at_once(demo: Demo, client: Client) -> None:
    """A call of `greet` is answered within the request."""
    result = await start_tool(client.session, "greet", {"name": "Ada"})
    if isinstance(result, CreateTaskResult):
        raise Unexpected("expected a result, came a task")
    demo.screen.say(f'greet(name="Ada") returns "{text_of(result)}"')
    expect("isError", bool(result.is_error), False)
    expect("the text", text_of(result), "Hello, Ada!")


async def start_the_slow_one(demo: Demo, client: Client) -> None:
    """Start what runs over its time (the last section), so that nobody has to wait for it."""
    arguments = {"monthly": 200, "years": 20, "share_of_stocks": 0.5, "runs": 5_000_000}
    demo.slow = await started(client, "simulate_savings", arguments)
    demo.screen.say("In the background, a simulation starts that has more to do than time.", "dim")


async def profile_a_file(demo: Demo, client: Client) -> None:
    """`profile_dataset` of a real file: a state machine cuts it up, profiles the chunks in
    parallel, merges, and asks before it shows any values.
    """
    demo.screen.say(f"{AIRPORTS.relative_to(ROOT)}, {len(demo.file):,} characters")
    async with demo.live() as live:
        # The SDK polls and asks through the extension, and checks the output schema.
        result = await client.call_tool("profile_dataset", {"csv": demo.file})
    profile = structured(result, Profile)
    show_profile(demo.screen, profile)
    # A poll may miss a short status: between the answer and the end there is little to do.
    expect_that("input_required" in live.statuses, "a question on the way", live.statuses)
    expect("the last status", live.statuses[-1], "completed")
    check_profile(demo.file, profile, demo.person.answers)
    demo.screen.line()
    demo.screen.say("Rows, columns, missing values, ranges and counts agree with the file.")


async def ask_from_a_function(demo: Demo, client: Client) -> None:
    """`simulate_savings` without a share of stocks. When the function asks, it ends, and runs again
    with the answer; nothing runs meanwhile.
    """
    async with demo.live() as live:
        result = await client.call_tool("simulate_savings", {"monthly": 200, "years": 20})
    expect("questions asked", len(demo.person.answers), 1)
    if demo.person.answers[0].action != "accept":
        demo.screen.say(f"Declined. The tool says: {text_of(result)}")
        return
    savings = structured(result, Savings)
    rows = [
        ["paid in", f"{savings.paid_in:,.0f}", ""],
        ["bad case", f"{savings.bad_case:,.0f}", "one run in ten ends below"],
        ["median", f"{savings.median:,.0f}", ""],
        ["good case", f"{savings.good_case:,.0f}", "one run in ten ends above"],
        ["chance of a loss", f"{savings.chance_of_loss:.1%}", f"of {savings.runs:,} runs"],
    ]
    demo.screen.line()
    demo.screen.table(["after 20 years", "", ""], rows, right={1})
    expect("the last status", live.statuses[-1], "completed")
    expect("paid in", savings.paid_in, 12 * 20 * 200)
    cases = [savings.bad_case, savings.median, savings.good_case]
    expect_that(cases == sorted(cases), "bad case <= median <= good case", cases)


async def kill_the_client(demo: Demo, client: Client) -> None:
    """`profile_dataset` again, from another process, which is killed while it polls. Another client
    goes on, and knows nothing but the task's id.
    """
    victim = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "infra.local.demo", demo.url, "--wait-for-ever"),
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
    )
    try:
        if victim.stdout is None:
            raise Unexpected("no pipe from the other process")
        task_id = (await victim.stdout.readline()).decode().strip()
        expect_that(bool(task_id), "a task id from the other process", task_id)
        demo.screen.say(f"Process {victim.pid} has started the task {task_id}")
    finally:
        with contextlib.suppress(ProcessLookupError):
            victim.kill()
        ended = await victim.wait()
    expect("the process's end", ended, -signal.SIGKILL)
    demo.screen.say(f"Process {victim.pid} is killed. Another client polls on by the id:")
    async with demo.live() as live:
        result = await wait_for_task(client.session, task_id, live.update)
    check_profile(demo.file, structured(result, Profile), demo.person.answers)
    demo.screen.say("Nothing is lost: the profile agrees with the file.")


async def cancel(demo: Demo, client: Client) -> None:
    """`profile_dataset` again; `tasks/cancel` comes while it works, or waits for the answer."""
    session = client.session
    created = await started(client, "profile_dataset", {"csv": demo.file})
    async with demo.live() as live:
        live.update(created)
        await asyncio.sleep((created.poll_interval_ms or 0) / 1000)
        live.update(await get_task(session, created.task_id))
        await cancel_task(session, created.task_id)
        try:
            result = await wait_for_task(session, created.task_id, live.update)
        except TaskCancelled:
            pass
        else:
            raise Unexpected(f"expected the task to be cancelled, came {text_of(result)!r}")
    task = await get_task(session, created.task_id)
    demo.screen.say(f"tasks/get says {task.status}")
    expect("the status", task.status, "cancelled")


async def err(demo: Demo, client: Client) -> None:
    """`profile_dataset` of a file without rows. What a tool finds wrong is a result: the task is
    completed, with `isError`.
    """
    async with demo.live() as live:
        result = await client.call_tool("profile_dataset", {"csv": "iata,name\n"})
    demo.screen.say(f'isError, "{text_of(result)}"')
    expect_that(isinstance(live.last, CompletedTask), "the task to be completed", live.statuses)
    expect("isError", result.is_error, True)
    expect_that("no rows" in text_of(result), "a message that names the cause", text_of(result))


async def run_over_time(demo: Demo, client: Client) -> None:
    """`simulate_savings` with 5,000,000 runs, started after section 2; it has 10 seconds. What the
    server has to stop is failed, with a JSON-RPC error.
    """
    if demo.slow is None:
        raise Unexpected("expected a task, but it did not start")
    async with demo.live() as live:
        try:
            result = await wait_for_task(client.session, demo.slow.task_id, live.update)
        except TaskFailed as failed:
            failure = failed
        else:
            raise Unexpected(f"expected the task to fail, came {text_of(result)!r}")
    demo.screen.say(f'JSON-RPC error {failure.code}, "{failure.message}"')
    if live.last is not None:
        begin, end = live.last.created_at, live.last.last_updated_at
        took = datetime.fromisoformat(end) - datetime.fromisoformat(begin)
        demo.screen.say(f"{took.total_seconds():.1f} s after its start, by the server's clock")
    expect("the code", failure.code, -32603)
    expect_that("time" in failure.message, "a message that names the cause", failure.message)
    expect_that("Traceback" not in failure.message, "no stack trace", failure.message)


CHECKS: Final[list[tuple[str, Check]]] = [
    ("Connect", connect),
    ("A tool that answers at once", answer_at_once),
    ("A workflow, with a question", profile_a_file),
    ("A function as a task, with a question", ask_from_a_function),
    ("The client is killed", kill_the_client),
    ("A task is cancelled", cancel),
    ("A tool's own error", err),
    ("A task that runs over its time", run_over_time),
]


async def started(client: Client, tool: str, arguments: dict[str, Any]) -> CreateTaskResult:
    """Start a task and do not wait for it."""
    created = await start_tool(client.session, tool, arguments)
    if not isinstance(created, CreateTaskResult):
        raise Unexpected(f"expected a task, came {text_of(created)!r}")
    return created


def check_profile(text: str, profile: Profile, answers: list[ElicitResult]) -> None:
    """Compare a profile with the file, and with what was answered."""
    expect("questions asked", len(answers), 1)
    answer: Content = answers[0].content or {}
    header, *rows = csv.reader(io.StringIO(text))
    expect("rows", profile.rows, len(rows))
    expect("columns", [column.name for column in profile.columns], header)
    for column, cells in zip(profile.columns, zip(*rows, strict=True), strict=True):
        values = Counter(cell.strip() for cell in cells if cell.strip())
        expect(f"missing in {column.name}", column.missing, len(rows) - values.total())
        if column.distinct_is_exact:
            expect(f"distinct in {column.name}", column.distinct, len(values))
        if column.type == "number":
            low, high = min(map(float, values)), max(map(float, values))
            expect(f"range of {column.name}", (column.minimum, column.maximum), (low, high))
        for item in column.most_frequent or []:
            expect(f"{item.value} in {column.name}", item.count, values[item.value])
    expect("the title", profile.title, answer.get("title", "Profile"))
    shown = any(column.most_frequent for column in profile.columns)
    expect("values are shown", shown, bool(answer.get("show_values", False)))


def show_profile(screen: Screen, profile: Profile) -> None:
    """Print a profile as a table."""
    screen.line()
    screen.say(f"{profile.title}: {profile.rows:,} rows, {len(profile.columns)} columns", "bold")
    rows = []
    for column in profile.columns:
        number = column.minimum is not None and column.maximum is not None
        frequent = [f"{item.value} {item.count:,}" for item in column.most_frequent or []]
        rows.append(
            [
                column.name,
                column.type,
                f"{column.missing:,}",
                f"{'' if column.distinct_is_exact else '~'}{column.distinct:,}",
                f"{column.minimum:.5g} to {column.maximum:.5g}" if number else "",
                "" if column.mean is None else f"{column.mean:.5g}",
                ", ".join(frequent),
            ]
        )
    header = ["column", "type", "missing", "distinct", "range", "mean", "most frequent values"]
    screen.table(header, rows, right={2, 3, 5})


# ---- Running it ----------------------------------------------------------------------------------


async def run(url: str, *, ask: bool) -> int:
    """Run all checks; returns the exit code."""
    screen = Screen()
    at_terminal = ask and screen.moves and sys.stdin.isatty()
    demo = Demo(url, screen, Person(screen, at_terminal=at_terminal))
    screen.line("An MCP server with durable tasks, seen by its client", "bold")
    screen.line(url, "dim")
    if ask and not at_terminal:
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
        if check is answer_at_once:
            await run_check(demo, "", start_the_slow_one)  # its problem shows in the last section
    return summarize(screen, outcomes, time.monotonic() - begun)


async def run_check(demo: Demo, title: str, check: Check) -> Outcome:
    """Run one check; whatever it raises is its outcome, so that the others still run."""
    begun = time.monotonic()
    problem = None
    try:
        async with asyncio.timeout(None if demo.person.at_terminal else CHECK_SECONDS):
            async with demo.new_client() as client:
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


def summarize(screen: Screen, outcomes: list[Outcome], seconds: float) -> int:
    """Print the summary; returns the exit code."""
    screen.heading("Summary")
    for outcome in outcomes:
        mark, said, style = (
            (screen.ok, "ok", "green") if outcome.problem is None else (screen.bad, "failed", "red")
        )
        mark, said = screen.paint(mark, style), screen.paint(f"{said:<6}", style)
        screen.line(f"   {mark} {outcome.title:<40} {said} {outcome.seconds:6.1f} s")
        if outcome.problem is not None:
            screen.say(outcome.problem, "red", indent=7)
    held = sum(outcome.problem is None for outcome in outcomes)
    screen.line()
    text = f"{held} of {len(outcomes)} held, in {seconds:.1f} s"
    screen.say(text, "bold", "green" if held == len(outcomes) else "red")
    return 0 if held == len(outcomes) else 1


async def wait_for_ever(url: str) -> None:
    """The client that gets killed: start a task, print its id, poll, and never answer it."""

    async def think(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        await asyncio.Event().wait()
        raise AssertionError("unreachable")

    async with Client(url, elicitation_callback=think, extensions=[TasksExtension()]) as client:
        arguments = {"csv": AIRPORTS.read_text(encoding="utf-8")}
        created = await start_tool(client.session, "profile_dataset", arguments)
        if isinstance(created, CreateTaskResult):
            print(created.task_id, flush=True)
            await wait_for_task(client.session, created.task_id)


def main() -> int:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(
        prog="python -m infra.local.demo", description="See a deployed server work."
    )
    parser.add_argument("url", help="the MCP endpoint, as `make up` writes it to .local/endpoint")
    parser.add_argument("--ask", action="store_true", help="answer the tools' questions yourself")
    parser.add_argument("--wait-for-ever", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    try:
        if options.wait_for_ever:
            asyncio.run(wait_for_ever(options.url))
            return 1
        return asyncio.run(run(options.url, ask=options.ask))
    except KeyboardInterrupt:
        print("\nInterrupted. Tasks that were started go on without their client.")
        return 130


if __name__ == "__main__":
    sys.exit(main())
