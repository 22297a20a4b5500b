"""How the demo looks: lines and tables, a task's status as it changes, and the questions it asks.

Colours and a line that moves on a terminal, plain lines into a pipe.
"""

from __future__ import annotations

import asyncio
import io
import json
import math
import os
import shutil
import sys
import textwrap
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from mcp.client import ClientRequestContext
from mcp_types import ElicitRequestFormParams, ElicitRequestParams, ElicitResult

from mcp_tasks_client import InputRequiredTask, Task

Content = dict[str, str | int | float | bool | list[str] | None]
"""A form, filled in."""

STYLES: Final = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
STATUS_STYLE: Final = {
    "working": "cyan",
    "input_required": "yellow",
    "completed": "green",
    "failed": "red",
    "cancelled": "red",
}
HIDE_CURSOR, SHOW_CURSOR, CLEAR_REST = "\x1b[?25l", "\x1b[?25h", "\x1b[K"


@dataclass
class Outcome:
    """How a section ended: `problem` is None when all of it held."""

    title: str
    problem: str | None
    seconds: float


class Screen:
    """Standard output."""

    def __init__(self) -> None:
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="replace")  # a file's values may be any text
        self.moves = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
        self.colours = self.moves and not os.environ.get("NO_COLOR")  # no-color.org
        self.width = max(60, min(shutil.get_terminal_size((100, 24)).columns, 110))
        unicode = sys.stdout.encoding.lower().startswith("utf")
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
        """Write a table; what is too long for the last column is cut.

        `right` are the numbers of the columns to align on the right.
        """
        widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
        widths[-1] = min(widths[-1], self.width - 3 - sum(widths[:-1]) - 2 * len(widths[:-1]))
        for number, row in enumerate([header, *rows]):
            cells = [
                cell.rjust(width) if n in right else cut(cell, width).ljust(width)
                for n, (cell, width) in enumerate(zip(row, widths, strict=True))
            ]
            self.line(f"   {'  '.join(cells)}".rstrip(), *(["dim"] if number == 0 else []))

    def summary(self, outcomes: list[Outcome], seconds: float) -> None:
        """Write how each section ended, and how many held."""
        self.heading("Summary")
        for outcome in outcomes:
            held = outcome.problem is None
            mark = self.paint(self.ok, "green") if held else self.paint(self.bad, "red")
            said = self.paint("ok    ", "green") if held else self.paint("failed", "red")
            self.line(f"   {mark} {outcome.title:<40} {said} {outcome.seconds:6.1f} s")
            if outcome.problem is not None:
                self.say(outcome.problem, "red", indent=7)
        number = sum(outcome.problem is None for outcome in outcomes)
        self.line()
        text = f"{number} of {len(outcomes)} held, in {seconds:.1f} s"
        self.say(text, "bold", "green" if number == len(outcomes) else "red")


def cut(text: str, width: int) -> str:
    """The text, shortened to a width."""
    return text if len(text) <= width else f"{text[: max(0, width - 3)]}..."


class Live:
    """A running task: its status on a line that is rewritten in place, and its questions below.

    What a status said last stays on the screen. Without a terminal, every change is a line.
    """

    def __init__(self, screen: Screen, ready: Content | None) -> None:
        """`ready` holds an answer for every field; None asks the person at the terminal."""
        self.statuses: list[str] = []
        self.answers: list[ElicitResult] = []
        self._screen = screen
        self._ready = ready
        self._since = 0.0
        self._shown = ("", "")
        self._open = False

    def update(self, task: Task) -> None:
        """Show a task that has changed (an `OnUpdate`)."""
        if not self.statuses:
            self._since = time.monotonic()
        message = task.status_message or ""
        if isinstance(task, InputRequiredTask):
            waiting = len(task.input_requests)
            message = f"waits for {'an answer' if waiting == 1 else f'{waiting} answers'}"
        if (task.status, message) == self._shown:
            return
        if task.status not in self.statuses[-1:]:
            self.settle()
            self.statuses.append(task.status)
        self._shown = (task.status, message)
        self._open = True
        if self._screen.moves and task.status in ("working", "input_required"):
            self._draw(self._screen.spinner[0])
        else:
            self.settle()

    def settle(self) -> None:
        """Leave the line as it is, and write no more to it: something else is about to be said."""
        if self._open:
            self._open = False
            self._draw(self._screen.done)

    @asynccontextmanager
    async def spinning(self) -> AsyncIterator[None]:
        """Meanwhile, keep the line moving; then settle it."""
        spinner = asyncio.create_task(self._spin())
        try:
            yield
        finally:
            spinner.cancel()
            self.settle()

    async def _spin(self) -> None:
        while True:
            for mark in self._screen.spinner:
                await asyncio.sleep(0.1)
                if self._open:
                    self._draw(mark)

    def _draw(self, mark: str) -> None:
        status, message = self._shown
        seconds = f"{time.monotonic() - self._since:5.1f} s"
        screen, style = self._screen, STATUS_STYLE[status]
        if not screen.moves:
            screen.line(f"   {seconds}  {status:<14}  {message}".rstrip())
            return
        mark, seconds = screen.paint(mark, style), screen.paint(seconds, "dim")
        status, message = screen.paint(f"{status:<14}", style), cut(message, screen.width - 30)
        line = f" {mark} {seconds}  {status}  {message}{CLEAR_REST}"
        screen.write(f"\r{HIDE_CURSOR}{line}" if self._open else f"\r{line}{SHOW_CURSOR}\n")

    async def answer(
        self, context: ClientRequestContext, params: ElicitRequestParams
    ) -> ElicitResult:
        """Show a question with its form, and answer it (an `elicitation_callback`)."""
        if not isinstance(params, ElicitRequestFormParams):
            return ElicitResult(action="decline")  # a URL to visit; the sample tools ask for none
        self.settle()
        show_question(self._screen, params)
        content: Content | None
        if self._ready is None:
            content = await fill_in(self._screen, params.requested_schema)
        else:
            content = {name: self._ready[name] for name in params.requested_schema["properties"]}
            said = ", ".join(f"{name} = {json.dumps(value)}" for name, value in content.items())
            self._screen.say(f"The demo answers: {said}", "yellow", indent=6)
        result = ElicitResult(action="decline" if content is None else "accept", content=content)
        self.answers.append(result)
        return result


def show_question(screen: Screen, params: ElicitRequestFormParams) -> None:
    """Write what is asked, and a line for each of the form's fields."""
    screen.say(f"The tool asks: {params.message}", "bold", indent=6)
    required = params.requested_schema.get("required", [])
    for name, field in params.requested_schema["properties"].items():
        said = [field["type"], "required" if name in required else "optional"]
        if "default" in field:
            said.append(f"default {json.dumps(field['default'])}")
        text = f"{name:<16} {field['title']} ({', '.join(said)}) {field.get('description', '')}"
        screen.say(text.rstrip(), indent=8)


async def fill_in(screen: Screen, schema: dict[str, Any]) -> Content | None:
    """Let the person at the terminal fill in a form; None when they decline, by Ctrl-D."""
    content: Content = {}
    for name, field in schema["properties"].items():
        hint = " [yes/no]" if field["type"] == "boolean" else ""
        while True:
            screen.write(f"      {field['title']}{hint}: ")
            text = await read_line()
            if text is None:
                screen.line()
                return None
            if not text and name not in schema.get("required", []):
                break
            try:
                content[name] = parsed(text, field)
                break
            except ValueError as error:
                screen.say(str(error), "red", indent=6)
    return content


def parsed(text: str, field: dict[str, Any]) -> str | float | bool:
    """What somebody typed, as the field's type and within its limits.

    Knows the fields that the sample tools ask for; the server checks every answer in any case.
    Raises ValueError with words for whoever typed it.
    """
    if field["type"] == "boolean":
        if text.lower() not in ("y", "yes", "n", "no"):
            raise ValueError("Please type yes or no")
        return text.lower().startswith("y")
    if field["type"] == "number":
        try:
            number = float(text)
        except ValueError:
            raise ValueError(f"Please type a number, not {text!r}") from None
        low, high = field.get("minimum", -math.inf), field.get("maximum", math.inf)
        if not low <= number <= high:
            raise ValueError(f"Please type a number from {low} to {high}")
        return number
    if len(text) > field.get("maxLength", math.inf):
        raise ValueError(f"Please type 1 to {field['maxLength']} characters")
    return text


async def read_line() -> str | None:
    """A line from the terminal, None at its end. No thread, so that Ctrl-C ends it."""
    typed = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(sys.stdin, typed.set)
    try:
        await typed.wait()
    finally:
        loop.remove_reader(sys.stdin)
    line = sys.stdin.readline()
    return line.strip() if line else None
