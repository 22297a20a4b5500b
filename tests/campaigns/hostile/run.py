"""A run: all requests, the checks of their answers, and of what the stack holds in the end."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final

from local.console import say
from local.deployment import LocalStack
from tests.campaigns.hostile.attempts import Attempt
from tests.campaigns.hostile.checks import THROTTLED, faults, task_made, unknown_coding
from tests.campaigns.hostile.generate import FAMILIES, attempt
from tests.campaigns.hostile.http1 import Hanging, NoHttp, Reply, exchange
from tests.campaigns.hostile.scene import Caller, Scene, prepare
from tests.integration.support.aws import executions, rows
from tests.integration.support.issuer import Issuer

WORKERS: Final = 6
"""Requests at a time: the emulator has ten instances of each function."""
MOST_THROTTLED: Final = 0.05
SHOWN: Final = 10
"""Faults of a kind that are printed."""
OUTCOMES: Final = ("2xx", "401", "403", "4xx", "429", "coding", "5xx", "closed", "wrong")
"""`coding` is 501 for a transfer coding that HTTP's own library does not know."""


@dataclass(frozen=True, slots=True)
class Inventory:
    """What a stack holds, read behind the server's back."""

    rows: dict[str, Any]
    executions: set[str]

    @classmethod
    def of(cls, stack: LocalStack, aws: Any) -> Inventory:
        """All rows, and the names of all executions, which are ids of tasks."""
        names = {each["name"] for each in executions(stack, aws("stepfunctions"))}
        return cls(rows(stack, aws("dynamodb")), names)


@dataclass(slots=True)
class Report:
    """What came of a run."""

    sent: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Family and outcome -> how often."""
    acknowledged: dict[str, Caller] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    seconds: float = 0.0
    controls: int = 0
    """Correct requests that were answered with success."""

    def count(self, number: int, sent: Attempt, reply: Reply | None, wrong: Sequence[str]) -> None:
        """Add a request and its answer."""
        self.sent[sent.family] += 1
        self.outcomes[sent.family, _outcome(sent, reply)] += 1
        self.outcomes[sent.family, "wrong"] += bool(wrong)
        if sent.family == "control" and reply is not None and reply.status < 300:
            self.controls += 1
        task_id = task_made(reply) if reply is not None else None
        if task_id is not None:
            self.acknowledged[task_id] = sent.caller
        if wrong:
            shown = "" if reply is None else f"\n  {reply.status} {sent.redacted(reply.body)!r}"
            self.faults.append(f"{number}: {'; '.join(wrong)}\n  {sent}{shown}")

    @property
    def throttled(self) -> int:
        """How many were answered with 429."""
        return sum(count for (_, outcome), count in self.outcomes.items() if outcome == "429")


def hostile(
    stack: LocalStack,
    aws: Any,
    issuer: Issuer,
    urls: Iterable[tuple[str, str]],
    *,
    seed: int,
    numbers: Sequence[int],
    seconds: float,
) -> Report:
    """Send the requests of these numbers, through all doors, in a limited time."""
    scene, report = prepare(issuer, urls, WORKERS), Report()
    before, started = Inventory.of(stack, aws), time.monotonic()

    def one(number: int) -> tuple[int, Attempt, Reply | None, list[str]] | None:
        if time.monotonic() - started > seconds:
            return None
        made = attempt(scene, seed, number)
        try:
            reply = exchange(made.door.address, made.sent)
        except Hanging as hanging:
            return number, made, None, [str(hanging)]
        except NoHttp as answer:
            # Whoever claims to speak HTTP/0.9 is answered without a status.
            return number, made, None, [] if made.expected == "broken" else [str(answer)]
        return number, made, reply, faults(made, reply, scene)

    with ThreadPoolExecutor(WORKERS) as pool:
        for done in pool.map(one, numbers):
            if done is not None:
                report.count(*done)
    report.seconds = time.monotonic() - started
    _check_end(scene, report, before, Inventory.of(stack, aws), len(numbers))
    scene.close(report.acknowledged)
    return report


def show(report: Report) -> None:
    """Print the table, and what was wrong."""
    say(f"\n{'':12}{'sent':>8}" + "".join(f"{name:>8}" for name in OUTCOMES))
    for family in FAMILIES:
        counts = [report.outcomes[family, name] for name in OUTCOMES]
        say(f"{family:12}{report.sent[family]:8}" + "".join(f"{count:8}" for count in counts))
    totals = [sum(report.outcomes[family, name] for family in FAMILIES) for name in OUTCOMES]
    say(f"{'all':12}{report.sent.total():8}" + "".join(f"{count:8}" for count in totals))
    say(f"\n{report.sent.total()} requests in {report.seconds:.0f} s")
    say(f"{len(report.acknowledged)} tasks acknowledged, {len(report.faults)} faults")
    for fault in report.faults[:SHOWN]:
        say(f"\n{fault}")


def _check_end(
    scene: Scene, report: Report, before: Inventory, after: Inventory, wanted: int
) -> None:
    wrong = report.faults
    made = after.rows.keys() - before.rows.keys()
    started = after.executions - before.executions
    told = report.acknowledged.keys() - before.rows.keys()
    for what, ids in {
        "rows that nobody was told of": made - told,
        "rows that are gone": told - made,
        "executions that nobody was told of": started - told,
        "tasks without an execution": told - started,
    }.items():
        if ids:
            wrong.append(f"{what}: {sorted(ids)[:SHOWN]} of {len(ids)}")
    for task_id in made & told:
        whose = after.rows[task_id]["principal"]["S"]
        if whose != report.acknowledged[task_id].principal:
            wrong.append(f"{task_id} is {whose}'s, and {report.acknowledged[task_id].name} has it")
    for state, task_id in scene.victims.items():
        if _told(before.rows[task_id]) != _told(after.rows.get(task_id, {})):
            wrong.append(f"the task that was {state} has changed")
    if report.throttled > MOST_THROTTLED * wanted:
        wrong.append(f"{report.throttled} requests were throttled, and prove nothing")
    if report.sent.total() < wanted:
        wrong.append(f"only {report.sent.total()} of {wanted} requests were sent in time")
    if report.sent["control"] and not (report.controls and report.acknowledged):
        wrong.append("no correct request was answered, or none made a task")


def _outcome(sent: Attempt, reply: Reply | None) -> str:
    if reply is None:
        return "closed"
    if unknown_coding(sent, reply):
        return "coding"
    if reply.status in (401, 403, THROTTLED):
        return str(reply.status)
    return f"{reply.status // 100}xx"


def _told(row: dict[str, Any]) -> dict[str, Any]:
    """A row without what the sweeper moves on meanwhile, which nobody is told."""
    return {name: value for name, value in row.items() if name != "reconcileAt"}
