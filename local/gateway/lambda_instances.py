"""The instances of a Lambda function on this machine.

An instance is a process that handles one event at a time. As in Lambda, instances are started when
they are needed, used again, and killed when an event's time has run out.
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

from .invocation import FunctionError, Invocation
from .runtime_api import RuntimeApi

MAX_INSTANCES: Final = 80
WARM_INSTANCES: Final = 2
"""How many instances start with the pool."""
SPARE_INSTANCES: Final = 1
"""How many instances are kept idle, so that the next caller need not wait for a start."""
MAX_STARTING: Final = 2 * (os.cpu_count() or 1)
"""How many instances start at the same time. In Lambda each would have a processor of its own."""

DRAIN_SECONDS: Final = 1.0
"""How long the pool waits for what an instance sent before it ended."""


@dataclass(frozen=True, slots=True)
class LambdaFunction:
    """A function's code and configuration."""

    name: str
    arn: str
    bundle: Path
    """The folder that Lambda would unzip. Its `api/exec_wrapper` starts an instance."""
    interpreter: Path
    environment: Mapping[str, str]
    timeout_seconds: float
    memory_mb: int
    log: Path
    """The file that instances write their output to."""

    def process_environment(self, runtime_api: str) -> dict[str, str]:
        """All environment variables of an instance. Only PATH comes from the gateway's own."""
        return {
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "TZ": ":UTC",
            # The bundle is an asset of the CDK and must not change. It is compiled already.
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


class TooManyInstancesError(Exception):
    """All instances are busy, and the pool may not start another."""


class LambdaInstance:
    """One process, and the Runtime API that it talks to."""

    def __init__(
        self,
        function: LambdaFunction,
        on_next: Callable[[LambdaInstance], None],
        on_exit: Callable[[LambdaInstance], None],
    ) -> None:
        self.killed = False
        self.invocation: Invocation | None = None
        self.timer: threading.Timer | None = None
        self.api = RuntimeApi(lambda: on_next(self), function.arn)
        self._on_exit = on_exit
        with function.log.open("ab") as log:
            self.process = subprocess.Popen(
                [function.bundle / "api" / "exec_wrapper", function.interpreter, "bootstrap"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=function.process_environment(self.api.address),
                cwd=function.bundle,
                # Ctrl-C sends a signal to the whole session. It is meant for the gateway only.
                start_new_session=True,
            )
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()

    def end_invocation(self) -> None:
        """Forget the invocation: the instance asked for the next event, or has ended."""
        self.invocation = None
        if self.timer is not None:
            self.timer.cancel()

    def kill(self, reason: str) -> None:
        """Kill the process. Its current invocation ends with a FunctionError with `reason`."""
        self.killed = True
        self.api.close(reason)
        self.process.kill()

    def join(self) -> None:
        """Wait until the process and its Runtime API have ended."""
        self._watcher.join()

    def _watch(self) -> None:
        self.process.wait()
        self.api.drain(DRAIN_SECONDS)
        self.api.close()
        self._on_exit(self)


class InstancePool:
    """All instances of a function."""

    def __init__(self, function: LambdaFunction, max_instances: int = MAX_INSTANCES) -> None:
        self._function = function
        self._max_instances = max_instances
        self._changed = threading.Condition()
        self._waiting: deque[Invocation] = deque()
        self._starting: set[LambdaInstance] = set()
        self._idle: list[LambdaInstance] = []
        self._busy: set[LambdaInstance] = set()
        self._init_error: FunctionError | None = None
        self._closed = False
        with self._changed:
            self._start_instances(WARM_INSTANCES)

    @property
    def process_ids(self) -> list[int]:
        """The process ids of all instances."""
        with self._changed:
            return [instance.process.pid for instance in self._all()]

    def wait_until_warm(self, seconds: float) -> None:
        """Wait until an instance has started. Raises FunctionError when none does."""
        with self._changed:
            self._changed.wait_for(lambda: self._idle or self._busy or self._init_error, seconds)
            if not self._idle and not self._busy:
                raise self._init_error or FunctionError("Sandbox.Timedout")

    def invoke(self, event: Mapping[str, Any]) -> Invocation:
        """Give an event to the first instance that is idle. Raises TooManyInstancesError."""
        invocation = Invocation(event)
        with self._changed:
            if self._closed or len(self._busy) + len(self._waiting) >= self._max_instances:
                raise TooManyInstancesError
            self._waiting.append(invocation)
            self._dispatch()
            self._start_instances(SPARE_INSTANCES)
        return invocation

    def abandon(self, invocation: Invocation) -> None:
        """Drop an invocation whose client has disconnected, and kill the instance that has it."""
        with self._changed:
            if invocation in self._waiting:
                self._waiting.remove(invocation)
        self._kill(invocation, "abandoned")

    def close(self) -> None:
        """Kill all instances, and wait until they have ended."""
        with self._changed:
            self._closed = True
            instances = self._all()
            for invocation in self._waiting:
                invocation.parts.put(FunctionError("Runtime.ExitError"))
        for instance in instances:
            instance.kill("Runtime.ExitError")
        for instance in instances:
            instance.join()

    def _all(self) -> list[LambdaInstance]:
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

    def _start_instances(self, spare: int) -> None:
        """Start an instance for each waiting invocation, and `spare` more, within the limits."""
        while (
            len(self._idle) + len(self._starting) < len(self._waiting) + spare
            and len(self._starting) < MAX_STARTING
            and len(self._all()) < self._max_instances
            and not self._closed
        ):
            self._starting.add(LambdaInstance(self._function, self._on_next, self._on_exit))

    def _on_next(self, instance: LambdaInstance) -> None:
        with self._changed:
            # The instance may have asked for an event just before it was killed.
            if not instance.killed and self._remove(instance):
                self._idle.append(instance)
                self._dispatch()
                self._start_instances(SPARE_INSTANCES)
                self._changed.notify_all()

    def _on_exit(self, instance: LambdaInstance) -> None:
        with self._changed:
            started = instance not in self._starting
            self._remove(instance)
            if not started:
                self._init_error = instance.api.init_error or FunctionError("Runtime.ExitError")
                if self._waiting:
                    self._waiting.popleft().parts.put(self._init_error)
            # No spare instance of a function that cannot start: it would be started for ever.
            self._start_instances(SPARE_INSTANCES if started else 0)
            self._changed.notify_all()

    def _remove(self, instance: LambdaInstance) -> bool:
        """Take an instance out of its set. Returns False when the instance has ended before."""
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
