"""What the checks of one demo share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from mcp import Client

from mcp_tasks_client import CreateTaskResult, TasksExtension, start_tool

from .expectations import CheckFailed, text_of
from .screen import Screen
from .task_line import TaskLine

ROOT: Final = Path(__file__).resolve().parents[2]
AIRPORTS: Final = ROOT / "tests" / "tools" / "airports.csv"

REQUEST_SECONDS: Final = 30
"""How long one request may take; API Gateway gives up after 29 seconds."""


@dataclass
class Demo:
    """What the checks share: the server's addresses, the screen, and what one leaves to another."""

    url: str
    streaming_url: str
    """The endpoint that streams; the same as `url` when there is none."""
    screen: Screen
    ask: bool
    """Whether the person at the terminal answers the tools' questions. Else the demo does."""
    task_line: TaskLine = field(init=False)
    """Shows the task of the current check and answers its questions. Each check has a new one."""
    slow_task: CreateTaskResult | None = None
    """The task that exceeds its time, started by an early check for the last one."""
    connected: bool = False
    offered: frozenset[str] | None = None
    """The names of the server's tools and prompts, once the first check has listed them."""

    @cached_property
    def airports_csv(self) -> str:
        """The file that `profile_dataset` profiles."""
        return AIRPORTS.read_text(encoding="utf-8")

    def missing(self, check: Check) -> list[str]:
        """The samples that a check needs and the server does not offer."""
        if self.offered is None:
            return []
        return [name for name in check.needs if name not in self.offered]

    def new_client(self) -> Client:
        """A client that declares the tasks extension, shows task states and answers questions."""
        return Client(
            self.url,
            read_timeout_seconds=REQUEST_SECONDS,
            elicitation_callback=self.task_line.answer,
            extensions=[TasksExtension(on_update=self.task_line.update)],
        )


@dataclass(frozen=True, slots=True)
class Check:
    """One section of the demo. `run` gets a client of its own and raises CheckFailed.

    The docstring of `run` is printed below the title.
    """

    title: str
    run: Callable[[Demo, Client], Awaitable[None]]
    needs: tuple[str, ...] = ()
    """The sample tools and prompts that it calls. Without one of them, the check is skipped."""


async def start_task(client: Client, tool: str, arguments: dict[str, Any]) -> CreateTaskResult:
    """Call a tool and return its task without waiting for the end.

    Raises CheckFailed when the server answers with a result and not with a task.
    """
    created = await start_tool(client.session, tool, arguments)
    if not isinstance(created, CreateTaskResult):
        raise CheckFailed(f"expected a task, received {text_of(created)!r}")
    return created


async def start_slow_task(client: Client) -> CreateTaskResult:
    """Start a simulation that needs more time than the tool has."""
    arguments = {"monthly": 200, "years": 20, "share_of_stocks": 0.5, "runs": 5_000_000}
    return await start_task(client, "simulate_savings", arguments)
