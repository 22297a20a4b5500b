"""What came of trees of subtasks: the rules of SEP-2268 by the rows, the results by the ledger."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tests.campaigns.chaos.clients import OVER, Life
from tests.campaigns.chaos.evidence import DurablyNoted
from tests.campaigns.chaos.tools.trees import DEPTH, WIDTH

TASKS_OF_A_TREE: Final = sum(WIDTH**level for level in range(DEPTH + 1))

Row = Mapping[str, Any]
"""In DynamoDB's notation."""


@dataclass(slots=True)
class TreeVerdict:
    """The figures of the trees."""

    parents: int = 0
    subtasks: int = 0
    whole: int = 0
    """Trees whose client was told of a result that has all that is below."""
    wrong: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """Task -> what is inconsistent."""


def subtasks_of(rows: Mapping[str, Row]) -> set[str]:
    """The ids of all subtasks. No client asked for them."""
    return {task_id for task_id, row in rows.items() if "parent" in row}


def judge_trees(
    rows: Mapping[str, Row],
    told: Mapping[str, Life],
    noted: Mapping[str, Sequence[DurablyNoted]],
) -> TreeVerdict:
    """Look at every parent and every subtask that there is."""
    verdict = TreeVerdict()
    for task_id, row in rows.items():
        verdict.wrong[task_id] += [
            *_of_parent(task_id, row, rows),
            *_of_subtask(task_id, row, rows),
        ]
        verdict.parents += "childTaskIds" in row
        verdict.subtasks += "parent" in row
    for task_id, life in told.items():
        if life.call.kind.tool == "grow" and life.fate == "completed" and life.last is not None:
            result = life.last["result"]
            if not result.get("isError"):
                wrong = list(_result(task_id, result["structuredContent"]["below"], rows, noted))
                verdict.whole += not wrong
                verdict.wrong[task_id] += wrong
    verdict.wrong = {task_id: wrong for task_id, wrong in verdict.wrong.items() if wrong}
    return verdict


def _children(row: Row) -> list[str]:
    return [each["S"] for each in row.get("childTaskIds", {}).get("L", [])]


def _of_parent(task_id: str, row: Row, rows: Mapping[str, Row]) -> Iterator[str]:
    children = _children(row)
    if len(set(children)) < len(children) or task_id in children:
        yield f"names a subtask twice, or itself: {children}"
    for child in children:
        below = rows.get(child)
        if below is None:
            yield f"names {child}, which is not there"
            continue
        if row["status"]["S"] in OVER and below["status"]["S"] not in OVER:
            yield f"is {row['status']['S']}, and {child} is {below['status']['S']}"
        if below["expiresAtMs"] != row["expiresAtMs"]:
            yield f"does not live as long as {child}"


def _of_subtask(task_id: str, row: Row, rows: Mapping[str, Row]) -> Iterator[str]:
    if "parent" not in row:
        return
    parent = row["parent"]["M"]["taskId"]["S"]
    if parent not in rows:
        yield f"has the parent {parent}, which is not there"
    elif task_id not in _children(rows[parent]):
        yield f"has the parent {parent}, which does not name it"
    if row["status"]["S"] in OVER and row["parent"]["M"]["tokens"]["M"]:
        yield "is over, and its parent was not told"


def _result(
    task_id: str,
    below: Mapping[str, str],
    rows: Mapping[str, Row],
    noted: Mapping[str, Sequence[DurablyNoted]],
) -> Iterator[str]:
    """What a tree has returned that its tasks did not do, and the other way round."""
    tree, new = {task_id}, {task_id}
    while new:
        new = {child for each in new for child in _children(rows.get(each, {}))}
        tree |= new
    if len(tree) != TASKS_OF_A_TREE or len(below) != TASKS_OF_A_TREE - 1:
        yield f"has {len(tree)} tasks, and {len(below)} results below it"
    did = defaultdict(set)
    for each in tree:
        for line in noted.get(each, ()):
            if line.what == "did":
                did[line.key].add(line.value)
    for key, value in below.items():
        if value not in did[key]:
            yield f"returned {value} for {key}, which nobody did"
