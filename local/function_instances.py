"""The instances of a function, each a process that answers one event at a time, as Lambda keeps
them: started when they are needed, used again, killed when an event's time is up.

Standard library only.
"""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from .runtime_api import FunctionError, Invocation, RuntimeApi

MAX_INSTANCES: Final = 80
WARM: Final = 2
"""Instances at the start."""
SPARE: Final = 1
"""Instances beyond those that are busy, so that the next caller need not wait for a start."""
STARTING: Final = 2 * (os.cpu_count() or 1)
"""How many start at the same time. In Lambda, each would have a processor of its own."""

DRAIN_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class Function:
    """What instances are made of."""

    name: str
    arn: str
    bundle: Path
    """The code, as Lambda would unzip it; `api/stream` in it starts an instance."""
    interpreter: Path
    environment: Mapping[str, str]
    timeout_seconds: float
    memory_mb: int
    log: Path
    """Where the instances' output goes."""

    def variables(self, runtime_api: str) -> dict[str, str]:
        """Everything in an instance's environment; nothing of the caller's but the PATH."""
        return {
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "TZ": ":UTC",
            # The bundle is compiled, and an asset of the CDK's, which must stay as it is.
            "PYTHONDONTWRITEBYTECODE": "1",
            **self.environment,
            "LAMBDA_TASK_ROOT": str(self.bundle),
            "AWS_LAMBDA_RUNTIME_API": runtime_api,
            "AWS_LAMBDA_FUNCTION_NAME": self.name,
            "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(self.memory_mb),
            "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
            "AWS_LAMBDA_LOG_GROUP_NAME": f"/aws/lambda/{self.name}",
            "AWS_LAMBDA_LOG_STREAM_NAME": "local",
        }


class BusyError(Exception):
    """All instances are busy, and there may be no more."""


class Instance:
    """One process, and the Runtime API that it talks to."""

    def __init__(
        self,
        function: Function,
        on_next: Callable[[Instance], None],
        on_exit: Callable[[Instance], None],
    ) -> None:
        self.killed = False
        self.invocation: Invocation | None = None
        self.timer: threading.Timer | None = None
        self.api = RuntimeApi(lambda: on_next(self), function.arn)
        self._on_exit = on_exit
        # No signal that is meant for the gateway may reach it: Ctrl-C goes to a whole session.
        with function.log.open("ab") as log:
            self.process = subprocess.Popen(
                [function.bundle / "api" / "stream", function.interpreter, "bootstrap"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=function.variables(self.api.address),
                cwd=function.bundle,
                start_new_session=True,
            )
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()

    def end_invocation(self) -> None:
        """It asks for the next event, or is gone."""
        self.invocation = None
        if self.timer is not None:
            self.timer.cancel()

    def kill(self, reason: str) -> None:
        """End the process; the answer that it is at ends with `reason`."""
        self.killed = True
        self.api.close(reason)
        self.process.kill()

    def join(self) -> None:
        """Wait until the process is gone, and nothing of it is left."""
        self._watcher.join()

    def _watch(self) -> None:
        self.process.wait()
        self.api.drain(DRAIN_SECONDS)
        self.api.close()
        self._on_exit(self)


class Fleet:
    """All instances of a function."""

    def __init__(self, function: Function, max_instances: int = MAX_INSTANCES) -> None:
        self._function = function
        self._max = max_instances
        self._changed = threading.Condition()
        self._waiting: deque[Invocation] = deque()
        self._starting: set[Instance] = set()
        self._idle: list[Instance] = []
        self._busy: set[Instance] = set()
        self._init_error: FunctionError | None = None
        self._closed = False
        with self._changed:
            self._top_up(WARM)

    @property
    def processes(self) -> list[int]:
        """The process ids of all instances."""
        with self._changed:
            return [instance.process.pid for instance in self._all()]

    def wait_until_warm(self, seconds: float) -> None:
        """Wait for the first instance. Raises FunctionError when the function does not start."""
        with self._changed:
            self._changed.wait_for(lambda: self._idle or self._busy or self._init_error, seconds)
            if not self._idle and not self._busy:
                raise self._init_error or FunctionError("Sandbox.Timedout")

    def invoke(self, event: Mapping[str, Any]) -> Invocation:
        """Give an event to the first instance that is free. Raises BusyError."""
        invocation = Invocation(event)
        with self._changed:
            if self._closed or len(self._busy) + len(self._waiting) >= self._max:
                raise BusyError
            self._waiting.append(invocation)
            self._dispatch()
            self._top_up(SPARE)
        return invocation

    def abandon(self, invocation: Invocation) -> None:
        """Nobody wants the answer: forget the event, or kill the instance that is at it."""
        with self._changed:
            if invocation in self._waiting:
                self._waiting.remove(invocation)
        self._kill(invocation, "abandoned")

    def close(self) -> None:
        """Kill all instances, and wait until they are gone."""
        with self._changed:
            self._closed = True
            instances = self._all()
            for invocation in self._waiting:
                invocation.parts.put(FunctionError("Runtime.ExitError"))
        for instance in instances:
            instance.kill("Runtime.ExitError")
        for instance in instances:
            instance.join()

    def _all(self) -> list[Instance]:
        return [*self._starting, *self._idle, *self._busy]

    def _dispatch(self) -> None:
        while self._waiting and self._idle:
            instance, invocation = self._idle.pop(), self._waiting.popleft()
            seconds = self._function.timeout_seconds
            invocation.deadline_ms = int((time.time() + seconds) * 1000)
            timer = threading.Timer(seconds, self._kill, (invocation, "Sandbox.Timedout"))
            timer.daemon = True
            timer.start()
            instance.invocation, instance.timer = invocation, timer
            instance.api.invoke(invocation)
            self._busy.add(instance)

    def _top_up(self, spare: int) -> None:
        """Start what the waiting need, and some more; as many at a time as the machine bears."""
        while (
            len(self._idle) + len(self._starting) < len(self._waiting) + spare
            and len(self._starting) < STARTING
            and len(self._all()) < self._max
            and not self._closed
        ):
            self._starting.add(Instance(self._function, self._on_next, self._on_exit))

    def _on_next(self, instance: Instance) -> None:
        with self._changed:
            # It may have asked just before it was killed.
            if not instance.killed and self._remove(instance):
                self._idle.append(instance)
                self._dispatch()
                self._top_up(SPARE)
                self._changed.notify_all()

    def _on_exit(self, instance: Instance) -> None:
        with self._changed:
            started = instance not in self._starting
            self._remove(instance)
            if not started:
                self._init_error = instance.api.init_error or FunctionError("Runtime.ExitError")
                if self._waiting:
                    self._waiting.popleft().parts.put(self._init_error)
            # A function that does not start is tried again for those who wait, and then no more.
            self._top_up(SPARE if started else 0)
            self._changed.notify_all()

    def _remove(self, instance: Instance) -> bool:
        """Take an instance out of its set; False when it is in none, because it is gone."""
        instance.end_invocation()
        known = instance in self._all()
        self._starting.discard(instance)
        self._busy.discard(instance)
        if instance in self._idle:
            self._idle.remove(instance)
        return known

    def _kill(self, invocation: Invocation, reason: str) -> None:
        with self._changed:
            for instance in self._busy:
                if instance.invocation is invocation:
                    instance.kill(reason)
