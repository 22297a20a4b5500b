"""Who calls AWS: one run of a function, which other runs may overtake and faults may hit.

An `Actor` runs in a thread of its own, but never at the same time as another: it goes on until it
is done or its plan lets it pause before a call to AWS, and hands over. So every order of the calls
of several actors can be had, and the same plan gives the same order.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from botocore.exceptions import ClientError, ConnectTimeoutError, ReadTimeoutError


class Fault(StrEnum):
    """What may happen to a call to AWS, after all that the SDK has repeated."""

    THROTTLED = "throttled"
    FAILED_BEFORE = "failed before it took effect"
    FAILED_AFTER = "failed after it took effect"
    UNREACHED = "timed out before it was sent"
    UNANSWERED = "timed out after it took effect"
    LATE = "timed out, and takes effect later"
    """Only a start: it waits for its turn within Step Functions, or on the way."""
    REPEATED = "repeated by the SDK after it took effect"
    REFUSED = "refused for good"
    """Only a start: there is no such state machine, or no right to start it."""
    KILLED_BEFORE = "killed before it was sent"
    KILLED_AFTER = "killed after it took effect"


class Killed(BaseException):
    """The function died: out of time, out of memory, or its machine is gone."""


class Violation(BaseException):
    """What must never be was seen. Not an Exception, so that the code under test lets it pass."""


Point = tuple[str, int]
"""A call of an actor: to what, a table or a service, and which of its calls to that."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What happens to an actor, by the call to AWS before which, or to which."""

    faults: Mapping[Point, Fault] = field(default_factory=dict)
    pauses: frozenset[Point] = frozenset()
    skew_ms: int = 0
    """How far its clock is ahead."""

    def __repr__(self) -> str:
        said = [f"{of} {n}: {fault.name}" for (of, n), fault in sorted(self.faults.items())]
        said += [f"{of} {n}: pause" for of, n in sorted(self.pauses)]
        said += [f"{self.skew_ms:+} ms"] if self.skew_ms else []
        return f"Plan({', '.join(said)})"


TASKS: Final = "tasks"
CALLERS: Final = "callers"
STATES: Final = "states"
OBJECTS: Final = "objects"
CLOCK: Final = "clock"
SESSIONS: Final = "sessions"
TOOL: Final = "tool"
JOURNAL: Final = "journal"

CALM: Final = Plan()

LATE_MS: Final = 20_000
"""How much later a late start takes effect."""

_THROTTLES: Final = {
    TASKS: "ProvisionedThroughputExceededException",
    CALLERS: "ProvisionedThroughputExceededException",
    STATES: "ThrottlingException",
    OBJECTS: "SlowDown",
    SESSIONS: "ProvisionedThroughputExceededException",
    JOURNAL: "ProvisionedThroughputExceededException",
}


class Actor:
    """One run of a function, until it is done."""

    def __init__(self, stage: Stage, name: str, work: Callable[[], Any], plan: Plan) -> None:
        self.name = name
        self.plan = plan
        self.calls: Counter[str] = Counter()
        self.at: Point = ("", 0)
        """The call that it made last."""
        self.hit: list[Fault] = []
        """The faults that it met."""
        self.result: Any = None
        self.error: BaseException | None = None
        self.done = False
        self._stage = stage
        self._work = work
        self._to_go = threading.Semaphore(0)
        self._gone = threading.Semaphore(0)
        self._thread: threading.Thread | None = None

    def go_on(self) -> None:
        """Run until it is done, or pauses."""
        stage, others = self._stage, self._stage.actor
        stage.actor = self
        if not self.plan.pauses and self._thread is None:
            self._run()
        elif self._thread is None:
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()
            self._gone.acquire()
        else:
            self._to_go.release()
            self._gone.acquire()
        stage.actor = others

    def finish(self, killed: bool = False) -> None:
        """Run to the end without another fault; or die at the next call."""
        self.plan = Plan(skew_ms=self.plan.skew_ms)
        if killed:
            self.plan = Plan({self.at: Fault.KILLED_BEFORE}, frozenset(), self.plan.skew_ms)
        while not self.done:
            self.go_on()

    def pause(self) -> None:
        """Let others run. Called in the actor's own thread."""
        self._gone.release()
        self._to_go.acquire()

    def _run(self) -> None:
        try:
            self.result = self._work()
        except BaseException as error:
            self.error = error
        self.done = True
        self._gone.release()


class Stage:
    """Passes the actors' calls on to AWS, with the faults and the pauses of their plans."""

    def __init__(self, faults: Counter[str]) -> None:
        self.actor: Actor | None = None
        self.late: list[Callable[[], None]] = []
        """Starts that take effect later."""
        self.refused = False
        """Whether a start was refused for good."""
        self.violation: Violation | None = None
        self._faults = faults

    def client(self, target: str, real: Any, watched: Callable[..., Any] | None = None) -> Any:
        """A client whose calls the plan of the actor of the moment hits."""
        return _Client(self, target, real, watched)

    def call(self, target: str, operation: str, effect: Callable[[], Any]) -> Any:
        """One call to AWS."""
        actor = self.actor
        if actor is None:
            return self._took(effect)
        actor.at = point = (target, actor.calls[target])
        actor.calls[target] += 1
        if point in actor.plan.pauses:
            actor.pause()
        fault = actor.plan.faults.get(point)
        if fault in (Fault.LATE, Fault.REFUSED) and operation != "start_execution":
            fault = None
        if fault is None:
            return self._took(effect)
        actor.hit.append(fault)
        self._faults[f"{target}: {fault.value}"] += 1
        return self._hit(fault, target, operation, effect)

    def _hit(self, fault: Fault, target: str, operation: str, effect: Callable[[], Any]) -> Any:
        match fault:
            case Fault.THROTTLED if operation == "transact_write_items":
                assert self.actor is not None
                conflict = len(self.actor.plan.faults) % 2
                raise _cancelled("TransactionConflict" if conflict else "ThrottlingError")
            case Fault.THROTTLED:
                raise _error(_THROTTLES[target], 400, operation)
            case Fault.FAILED_BEFORE:
                raise _error("InternalServerError", 500, operation)
            case Fault.UNREACHED:
                raise ConnectTimeoutError(endpoint_url=target)
            case Fault.REFUSED:
                self.refused = True
                raise _error("AccessDeniedException", 400, operation)
            case Fault.KILLED_BEFORE:
                raise Killed
            case Fault.LATE:
                self.late.append(effect)
                raise ReadTimeoutError(endpoint_url=target)
            case Fault.REPEATED:
                with suppress(ClientError):
                    self._took(effect)
                return self._took(effect)
        try:
            self._took(effect)
        except ClientError:
            if fault is not Fault.KILLED_AFTER:
                raise  # what is refused has no effect; who is told so is told at once
        match fault:
            case Fault.FAILED_AFTER:
                raise _error("InternalServerError", 500, operation)
            case Fault.UNANSWERED:
                raise ReadTimeoutError(endpoint_url=target)
        raise Killed

    def _took(self, effect: Callable[[], Any]) -> Any:
        try:
            return effect()
        except Violation as violation:
            self.violation = self.violation or violation
            raise


class _Client:
    def __init__(
        self, stage: Stage, target: str, real: Any, watched: Callable[..., Any] | None
    ) -> None:
        self._stage = stage
        self._target = target
        self._real = real
        self._watched = watched

    def __getattr__(self, operation: str) -> Any:
        real = getattr(self._real, operation)
        if operation == "exceptions":
            return real

        def call(**arguments: Any) -> Any:
            def effect() -> Any:
                if self._watched is None:
                    return real(**arguments)
                return self._watched(operation, arguments, real)

            return self._stage.call(self._target, operation, effect)

        return call


def _cancelled(reason: str) -> ClientError:
    """A transaction that was not written, for a reason of its first item (DynamoDB API reference,
    "TransactWriteItems")."""
    error = _error("TransactionCanceledException", 400, "TransactWriteItems")
    response: Any = error.response
    response["CancellationReasons"] = [{"Code": reason, "Message": "no"}, {"Code": "None"}]
    return error


def _error(code: str, status: int, operation: str) -> ClientError:
    response: Any = {
        "Error": {"Code": code, "Message": "no"},
        "ResponseMetadata": {"HTTPStatusCode": status},
    }
    return ClientError(response, operation)
