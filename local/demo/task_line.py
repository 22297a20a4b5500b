"""One task on the screen: its status on a line that is rewritten in place, and its questions."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from mcp.client import ClientRequestContext
from mcp_types import ElicitRequestFormParams, ElicitRequestParams, ElicitResult

from mcp_tasks_client import InputRequiredTask, Task

from .questions import Content, fill_in, show_question
from .screen import Screen, cut

STATUS_STYLE: Final = {
    "working": "cyan",
    "input_required": "yellow",
    "completed": "green",
    "failed": "red",
    "cancelled": "red",
}
HIDE_CURSOR, SHOW_CURSOR, CLEAR_REST = "\x1b[?25l", "\x1b[?25h", "\x1b[K"


class TaskLine:
    """Shows one task: its status on a line that is rewritten in place, and its questions below.

    The last line of each status stays on the screen. In a pipe, every change is a line of its own.
    """

    def __init__(self, screen: Screen, answers: Content | None) -> None:
        """`answers` holds a value for every field; None asks the person at the terminal."""
        self.statuses: list[str] = []
        self.answers: list[ElicitResult] = []
        self._screen = screen
        self._given_answers = answers
        self._begun = 0.0
        self._shown = ("", "")
        self._open = False

    def update(self, task: Task) -> None:
        """Show a change of the task (an `OnUpdate` of `mcp_tasks_client`)."""
        if not self.statuses:
            self._begun = time.monotonic()
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
        if self._screen.is_terminal and task.status in ("working", "input_required"):
            self._draw(self._screen.spinner[0])
        else:
            self.settle()

    def settle(self) -> None:
        """Finish the line, so that something else can be written below it."""
        if self._open:
            self._open = False
            self._draw(self._screen.done)

    @asynccontextmanager
    async def spinning(self) -> AsyncIterator[None]:
        """Redraw the line ten times a second inside this context, and settle it at the end."""
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
        seconds = f"{time.monotonic() - self._begun:5.1f} s"
        screen, style = self._screen, STATUS_STYLE[status]
        if not screen.is_terminal:
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
            # Elicitation in URL mode: no sample tool uses it.
            return ElicitResult(action="decline")
        self.settle()
        show_question(self._screen, params)
        content: Content | None
        if self._given_answers is None:
            content = await fill_in(self._screen, params.requested_schema)
        else:
            fields = params.requested_schema["properties"]
            content = {name: self._given_answers[name] for name in fields}
            shown = ", ".join(f"{name} = {json.dumps(value)}" for name, value in content.items())
            self._screen.say(f"The demo answers: {shown}", "yellow", indent=6)
        result = ElicitResult(action="decline" if content is None else "accept", content=content)
        self.answers.append(result)
        return result
