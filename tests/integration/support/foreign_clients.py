"""The clients of tests/integration/clients: other SDKs than the one that the tests have.

Each is a program of its own, with packages of its own. It plays one scenario against a URL, and
prints what it observes.
"""

from __future__ import annotations

import json
import queue
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from local.environment import STATE, node_packages, python_packages, tool_environment

HERE: Final = Path(__file__).parents[1] / "clients"
FOLDER: Final = STATE / "clients"
SCENARIO_SECONDS: Final = 120.0
"""After this time, a scenario counts as hanging."""

Event = dict[str, Any]
"""What a client observed: `event` says what it is."""


@dataclass
class Observed:
    """What a client has observed, in order."""

    events: list[Event] = field(default_factory=list)

    def all(self, event: str, **members: Any) -> list[Event]:
        """The events of one kind that have these members."""
        wanted = {"event": event, **members}
        return [found for found in self.events if wanted.items() <= found.items()]

    def only(self, event: str) -> Event:
        """The one event of a kind. Raises AssertionError when there are none, or several."""
        found = self.all(event)
        assert len(found) == 1, self.events
        return found[0]

    @property
    def result(self) -> dict[str, Any]:
        """The result of the only call."""
        result: dict[str, Any] = self.only("result")["result"]
        return result

    @property
    def text(self) -> str:
        """The text that the result of the only call consists of."""
        (block,) = self.result["content"]
        text: str = block["text"]
        return text

    @property
    def statuses(self) -> list[str]:
        """The statuses of the only task, as the client learned them, without repetitions."""
        told = [event["status"] for event in self.all("task")]
        return [status for i, status in enumerate(told) if told[:i][-1:] != [status]]

    @property
    def resumed(self) -> list[str]:
        """The ids of the events from which streams were resumed."""
        ids = [event["lastEventId"] for event in self.all("http", method="GET")]
        return [event_id for event_id in ids if event_id]


class Playing(Observed):
    """A scenario that is being played."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        super().__init__()
        self._process = process
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._deadline = time.monotonic() + SCENARIO_SECONDS
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def __iter__(self) -> Iterator[Event]:
        """Yield events as they come. Raises AssertionError when the client hangs."""
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, self._deadline - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"the client hangs after {self.events}") from None
            if line is None:
                return
            self.events.append(json.loads(line))
            yield self.events[-1]

    def until(self, event: str) -> Event:
        """Wait for the next event of a kind. Raises AssertionError when the client ends before."""
        for found in self:
            if found["event"] == event:
                return found
        raise AssertionError(f"no event {event!r} in {self.events}")


@dataclass(frozen=True)
class ForeignClient:
    """A client that is installed."""

    command: Sequence[str | Path]
    folder: Path
    """Where it runs."""

    @contextmanager
    def playing(self, url: str, scenario: str, **options: Any) -> Iterator[Playing]:
        """Play a scenario, at whose end the client must have ended without a failure."""
        command = [*self.command, url, scenario, json.dumps(options)]
        with (
            tempfile.TemporaryFile("w+") as errors,
            subprocess.Popen(
                command,
                cwd=self.folder,
                env=tool_environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            ) as process,
        ):
            try:
                playing = Playing(process)
                yield playing
                list(playing)  # the rest
                code = process.wait()
                errors.seek(0)
                assert code == 0, f"{errors.read()}\n{playing.events}"
            finally:
                process.kill()

    def play(self, url: str, scenario: str, **options: Any) -> Observed:
        """Play a scenario to its end."""
        with self.playing(url, scenario, **options) as playing:
            return playing


def python_client(program: str) -> ForeignClient:
    """A client of the folder that is written in Python, installed if need be."""
    python_packages(HERE, FOLDER / "python", "the Python clients of the handshake revisions")
    return ForeignClient([FOLDER / "python" / "bin" / "python", HERE / program], HERE)


def node_client(program: str) -> ForeignClient:
    """A client of the folder that is written in JavaScript, installed if need be."""
    folder = FOLDER / "node"
    node_packages(HERE, folder, "the TypeScript client of the handshake revisions")
    return ForeignClient(["node", HERE / program], folder)
