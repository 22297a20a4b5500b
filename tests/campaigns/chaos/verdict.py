"""What came of a run: nothing lost, nothing twice, or what was."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from local.console import say
from tests.campaigns.chaos.clients import OVER, Fate, Life
from tests.campaigns.chaos.durable_verdict import DurableVerdict, Told, judge_durable
from tests.campaigns.chaos.evidence import Evidence, Execution, Ledger, Noted, running
from tests.campaigns.chaos.tree_verdict import TreeVerdict, judge_trees, subtasks_of

UNDONE: Final = frozenset({"failed", "cancelled"})
"""The ends of tasks whose rows say when everything is undone."""
DISHONEST: Final = ("aborted by the server's operator", "could not be started")
"""Parts of what a failed task must not say: nobody aborted it, and it was acknowledged."""


@dataclass(slots=True)
class Verdict:
    """The figures of a run, and what each fault was."""

    fates: Counter[Fate] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    """Kind and error -> how many tasks failed so."""
    refusals: Counter[str] = field(default_factory=Counter)
    """What came last, instead of an answer that counts -> how many requests were given up so."""
    lost: dict[str, list[str]] = field(default_factory=dict)
    """Task -> what is wrong with it."""
    twice: dict[str, list[str]] = field(default_factory=dict)
    """Task, or call, -> what there is more than once, or still runs."""
    orphans: int = 0
    """Tasks that nobody was told of: a create that was repeated without a key."""
    open_orphans: int = 0
    ghosts: int = 0
    """Of these, those of calls that the server always said no to."""
    runs_again: int = 0
    """Steps that ran more than once."""
    effects: int = 0
    twice_effects: int = 0
    repairs: Counter[str] = field(default_factory=Counter)
    """What was mended, and by which function -> how often."""
    asks: int = 0
    """Asks that were answered, and whose answers arrived."""
    durable: DurableVerdict = field(default_factory=DurableVerdict)
    trees: TreeVerdict = field(default_factory=TreeVerdict)

    @property
    def acknowledged(self) -> int:
        """Calls that were told of their task."""
        return self.fates.total() - self.fates["refused"]


def judge(
    lives: Sequence[Life],
    evidence: Evidence,
    ledger: Ledger,
    ended: Mapping[tuple[str, str], float],
) -> Verdict:
    """Compare what the clients were told with what there is.

    `ended` has when each record of a journal was written that says that its operation has ended.
    """
    verdict = Verdict()
    rows, executions = evidence.rows(), evidence.executions()
    told = {task_id: life for life in lives for task_id in life.task_ids}
    for life in lives:
        verdict.fates[life.fate] += 1
        if life.task_id is not None:
            wrong = [*life.wrong, *_wrong(life, rows.get(life.task_id))]
            if wrong:
                verdict.lost[life.task_id] = wrong
        for given_up in life.given_up:
            verdict.refusals[given_up] += 1
        if life.fate == "refused":
            verdict.refusals[f"{life.call.name}: {life.refusal}"] += 1
        if life.fate == "failed" and life.last is not None:
            verdict.failures[f"{life.call.name}: {life.last['error']['message']}"] += 1
    _executions(verdict, told, rows, executions)
    _orphans(verdict, lives, told, rows, executions, evidence)
    _effects(verdict, told, ledger)
    _answers(verdict, told, executions, evidence)
    _durable(verdict, told, rows, executions, evidence, ledger, ended)
    verdict.trees = judge_trees(rows, told, ledger.durable())
    for task_id, wrong in verdict.trees.wrong.items():
        verdict.lost.setdefault(task_id, []).extend(wrong)
    verdict.repairs = evidence.repairs()
    return verdict


def unsettled(evidence: Evidence) -> set[str]:
    """The tasks that have expired and were not ended, those whose executions were not, and those
    of which something is still to be undone.
    """
    rows, now = evidence.rows(), time.time() * 1000
    expired = {
        task_id
        for task_id, row in rows.items()
        if row["status"]["S"] not in OVER and _over(row, now)
    }
    run_on = {
        execution.task_id
        for execution in running(evidence.executions())
        if _over(rows.get(execution.task_id), now)
    }
    undoing = {
        task_id
        for task_id, row in rows.items()
        if row["status"]["S"] in UNDONE and row.get("undo", {}).get("BOOL")
    }
    return expired | run_on | undoing


def _over(row: dict[str, Any] | None, now: float) -> bool:
    """Whether a task has ended, has expired, or is gone."""
    return row is None or row["status"]["S"] in OVER or int(row["expiresAtMs"]["N"]) <= now


def _wrong(life: Life, row: dict[str, Any] | None) -> list[str]:
    """What a client was told of its task that it must not have been, and what the row denies."""
    wrong = []
    if (
        len(life.task_ids) > 1 and life.call.kind.ttl_ms is None
    ):  # a key is free when its task expires
        wrong.append(f"told of {len(life.task_ids)} tasks")
    if life.expired:
        if row is not None and row["status"]["S"] not in OVER:
            wrong.append(f"has expired, and its row is {row['status']['S']}")
        return wrong
    if life.last is None:
        return [*wrong, f"has no end: {life.refusal}"]
    if row is None:
        return [*wrong, "has no row"]
    if row["status"]["S"] != life.last["status"]:
        wrong.append(f"was {life.last['status']}, and now is {row['status']['S']}")
    if life.last["status"] == "completed":
        mistake = life.call.wrong(life.last["result"], life.answers)
        wrong += [mistake] if mistake else []
    elif life.last["status"] == "cancelled":
        if life.call.cancelled_after is None:
            wrong.append("was cancelled by nobody")
    elif any(part in life.last["error"]["message"] for part in DISHONEST):
        wrong.append(life.last["error"]["message"])
    return wrong


def _executions(
    verdict: Verdict,
    told: dict[str, Life],
    rows: dict[str, dict[str, Any]],
    executions: dict[str, list[Execution]],
) -> None:
    now = time.time() * 1000
    for name, all_of in executions.items():
        names = Counter(execution.name for execution in all_of)
        for each in (each for each, count in names.items() if count > 1):
            verdict.twice.setdefault(name, []).append(f"{names[each]} executions {each}")
        if running({name: all_of}) and _over(rows.get(name), now):
            verdict.twice.setdefault(name, []).append("is over, and its execution runs")
    for task_id, life in told.items():
        if life.fate == "completed" and task_id not in executions:
            verdict.lost.setdefault(task_id, []).append("has a result and no execution")


def _orphans(
    verdict: Verdict,
    lives: Sequence[Life],
    told: dict[str, Life],
    rows: dict[str, dict[str, Any]],
    executions: dict[str, list[Execution]],
    evidence: Evidence,
) -> None:
    """Tasks that nobody was told of. They may be where a client repeated itself without a key."""
    by_mark = {life.call.mark: life for life in lives}
    untold = (rows.keys() | executions.keys()) - told.keys() - subtasks_of(rows)
    verdict.orphans = len(untold)
    verdict.open_orphans = sum(
        rows[task_id]["status"]["S"] not in OVER for task_id in untold & rows.keys()
    )
    for task_id in untold & executions.keys():
        mark = evidence.mark(executions[task_id][0])
        life = by_mark.get(mark or 0)
        if life is None:
            verdict.twice.setdefault(task_id, []).append(f"belongs to no call, but {mark}")
            continue
        if life.unknown_tries <= bool(life.task_ids):
            verdict.ghosts += 1
        if life.call.key is not None and life.task_ids and life.call.kind.ttl_ms is None:
            message = f"another task of call {mark} with its key, besides {life.task_id}"
            verdict.twice.setdefault(task_id, []).append(message)


def _effects(verdict: Verdict, told: dict[str, Life], ledger: Ledger) -> None:
    runs = Counter((run.task_id, run.step, run.item) for run in ledger.runs())
    verdict.runs_again = sum(count > 1 for count in runs.values())
    of_calls: dict[tuple[int, str, str], set[str]] = defaultdict(set)
    durable = [
        Noted(each.task_id, each.mark, each.key, "", each.value)
        for of_task in ledger.durable().values()
        for each in of_task
        if each.what == "did"
    ]
    for effect in (*ledger.effects(), *durable):
        if effect.task_id in told:
            verdict.effects += 1
        life = told.get(effect.task_id)
        if life is not None or _keyed(told, effect.mark):
            of_calls[effect.mark, effect.step, effect.item].add(effect.task_id)
    for (mark, step, item), tasks in of_calls.items():
        if len(tasks) > 1:
            verdict.twice_effects += 1
            verdict.twice.setdefault(f"call {mark}", []).append(f"{step} {item} in {tasks}")
    for task_id, life in told.items():
        if life.fate == "completed":
            due = life.call.kind.effects
            missing = {one for one in due if task_id not in of_calls[life.call.mark, *one]}
            if missing:
                verdict.lost.setdefault(task_id, []).append(f"did not do {sorted(missing)}")
    heard: dict[tuple[str, str], set[str]] = defaultdict(set)
    for run in ledger.runs():
        if run.step == "heard" and run.task_id in told:
            heard[run.task_id, run.item].add(run.value)
    for (task_id, name), values in heard.items():
        if len(values) > 1:
            verdict.twice.setdefault(task_id, []).append(f"heard for {name}: {sorted(values)}")
        if not values <= told[task_id].answers[name]:
            verdict.lost.setdefault(task_id, []).append(f"heard for {name}: {sorted(values)}")


def _keyed(told: dict[str, Life], mark: int) -> bool:
    return any(life.call.mark == mark and life.call.key for life in told.values())


def _answers(
    verdict: Verdict,
    told: dict[str, Life],
    executions: dict[str, list[Execution]],
    evidence: Evidence,
) -> None:
    """Of a completed task, each ask that was answered has reached its state."""
    for task_id, life in told.items():
        if life.call.kind.asks and life.fate == "completed" and task_id in executions:
            answered = evidence.answered(executions[task_id])
            verdict.asks += answered
            if answered != life.call.kind.asks:
                message = f"{answered} asks were answered, and not {life.call.kind.asks}"
                verdict.twice.setdefault(task_id, []).append(message)


def _durable(
    verdict: Verdict,
    told: Mapping[str, Life],
    rows: Mapping[str, dict[str, Any]],
    executions: Mapping[str, list[Execution]],
    evidence: Evidence,
    ledger: Ledger,
    ended: Mapping[tuple[str, str], float],
) -> None:
    """What the durable tools did, also those of tasks that nobody was told of."""
    noted, journals = ledger.durable(), evidence.journals()
    durable = {task_id for task_id, life in told.items() if life.call.kind.durable}
    tasks = []
    for task_id in sorted(durable | noted.keys() | journals.keys()):
        kept = journals.get(task_id, {})
        records = {place: record for place, (record, _) in kept.items()}
        ends = {place: ended[key] for place, (_, key) in kept.items() if key in ended}
        life, row = told.get(task_id), rows.get(task_id)
        given_up = evidence.killed(executions.get(task_id, ()))
        lines = noted.get(task_id, [])
        tasks.append(Told(task_id, row, life, records, ends, lines, given_up))
    verdict.durable = judge_durable(tasks)
    verdict.durable.successors = sum(
        execution.part.isdigit() for each in executions.values() for execution in each
    )
    for found, all_found in (
        (verdict.durable.lost, verdict.lost),
        (verdict.durable.twice, verdict.twice),
    ):
        for task_id, wrong in found.items():
            all_found.setdefault(task_id, []).extend(wrong)


def show(verdict: Verdict) -> None:
    """Print the figures."""
    durable = verdict.durable
    for name, value in {
        "calls": verdict.fates.total(),
        "tasks acknowledged": verdict.acknowledged,
        "  completed": verdict.fates["completed"],
        "  failed honestly": verdict.fates["failed"],
        "  cancelled": verdict.fates["cancelled"],
        "  expired": verdict.fates["expired"],
        "  lost": len(verdict.lost),
        "calls given up": verdict.fates["refused"],
        "orphans": verdict.orphans,
        "  of them not over": verdict.open_orphans,
        "  of calls that were always refused": verdict.ghosts,
        "answers delivered": verdict.asks,
        "side effects": verdict.effects,
        "  duplicated": verdict.twice_effects,
        "duplicated or running on": len(verdict.twice),
        "steps that ran more than once": verdict.runs_again,
        "tasks with durable operations": durable.tasks,
        "  steps done": durable.steps,
        "    of them items of maps": durable.items,
        "    repeated, as their run was killed": durable.repeated,
        "  attempts of steps that fail": durable.attempts,
        "  undone": durable.undone,
        "    undone again, as their run was killed": durable.undone_again,
        "  not undone, and named": durable.not_undone,
        "  sleeps": durable.sleeps,
        "  executions that tasks went on in": durable.successors,
        "tasks that have called tools": verdict.trees.parents,
        "  their subtasks": verdict.trees.subtasks,
        "  trees whose results are whole": verdict.trees.whole,
    }.items():
        say(f"{name:40}{value:8}")
    for title, reasons in {
        "failed": verdict.failures,
        "given up": verdict.refusals,
        "mended": verdict.repairs,
        "failed before the first operation": durable.failures,
        "not undone": durable.named,
    }.items():
        for reason, count in reasons.most_common():
            say(f"    {count:4} {title}, {reason[:160]}")
