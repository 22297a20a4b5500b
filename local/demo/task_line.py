"""One task on the screen, with its subtasks: lines that are rewritten in place, and questions."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
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


@dataclass
class Line:
    """What is shown of one task."""

    number: tuple[int, ...]
    """Its place in the tree: (2, 1) is the first subtask of the root's second one."""
    status: str = ""
    message: str = ""
    seconds: float = 0
    """When it was last changed."""

    @property
    def ended(self) -> bool:
        """Whether it changes no more."""
        return self.status in ("completed", "failed", "cancelled")


class TaskLine:
    """Shows one task: its status on a line that is rewritten in place, its subtasks on lines of
    their own below it, and below these the questions.

    The last line of each status stays on the screen; with subtasks, the lines at each question and
    at the end. In a pipe, every change is a line of its own.
    """

    def __init__(self, screen: Screen, answers: Content | None) -> None:
        """`answers` holds a value for every field; None asks the person at the terminal."""
        self.statuses: list[str] = []
        """Of the task itself."""
        self.answers: list[ElicitResult] = []
        self.subtasks: dict[str, Task] = {}
        """The last states of its subtasks, by their ids."""
        self._screen = screen
        self._given_answers = answers
        self._begun = 0.0
        self._lines: dict[str, Line] = {}
        self._children: dict[str, list[str]] = {}
        self._open = False
        self._drawn = 0

    def update(self, task: Task) -> None:
        """Show a change of the task or of a subtask (an `OnUpdate` of `mcp_tasks_client`)."""
        if not self._lines:
            self._begun = time.monotonic()
        line = self._lines.setdefault(task.task_id, Line(self._number(task)))
        self._children[task.task_id] = task.child_task_ids
        if task.parent_task_id is not None:
            self.subtasks[task.task_id] = task
        message = task.status_message or ""
        if isinstance(task, InputRequiredTask):
            waiting = len(task.input_requests)
            message = f"waits for {'an answer' if waiting == 1 else f'{waiting} answers'}"
        if (task.status, message) == (line.status, line.message):
            return
        if not line.number and task.status not in self.statuses[-1:]:
            if len(self._lines) == 1:
                self.settle()
            self.statuses.append(task.status)
        line.status, line.message = task.status, message
        line.seconds = time.monotonic() - self._begun
        self._open = True
        if not self._screen.is_terminal:
            self._screen.line(self._text(line))
        elif line.ended and not line.number:
            self.settle()
        else:
            self._draw(self._screen.spinner[0])

    def _number(self, task: Task) -> tuple[int, ...]:
        parent = task.parent_task_id
        if parent not in self._lines:
            return ()
        return (*self._lines[parent].number, self._children[parent].index(task.task_id) + 1)

    def settle(self) -> None:
        """Finish the lines, so that something else can be written below them."""
        if self._open and self._screen.is_terminal:
            self._draw(self._screen.done)
            self._screen.write(f"{SHOW_CURSOR}\n")
        self._open, self._drawn = False, 0

    @asynccontextmanager
    async def spinning(self) -> AsyncIterator[None]:
        """Redraw the lines ten times a second inside this context, and settle them at the end."""
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
                if self._open and self._screen.is_terminal:
                    self._draw(mark)

    def _draw(self, mark: str) -> None:
        """Write all lines, over those that were written before."""
        up = f"\x1b[{self._drawn - 1}A" if self._drawn > 1 else ""
        lines = sorted(self._lines.values(), key=lambda line: line.number)
        text = "\n".join(f"{self._painted(line, mark)}{CLEAR_REST}" for line in lines)
        self._screen.write(f"\r{HIDE_CURSOR}{up}{text}")
        self._drawn = len(lines)

    def _painted(self, line: Line, mark: str) -> str:
        screen, style = self._screen, STATUS_STYLE[line.status]
        seconds = line.seconds if line.ended else time.monotonic() - self._begun
        room = screen.width - 30 - len(_indent(line))
        return (
            f" {screen.paint(screen.done if line.ended else mark, style)}"
            f" {screen.paint(f'{seconds:5.1f} s', 'dim')}  {_indent(line)}"
            f"{screen.paint(f'{line.status:<14}', style)}  {cut(line.message, room)}"
        )

    def _text(self, line: Line) -> str:
        text = f"   {line.seconds:5.1f} s  {_indent(line)}{line.status:<14}  {line.message}"
        return text.rstrip()

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


def _indent(line: Line) -> str:
    """What stands before a subtask's status: its number, indented by its depth."""
    number = ".".join(map(str, line.number))
    return f"{'  ' * len(line.number)}{number} " if number else ""
