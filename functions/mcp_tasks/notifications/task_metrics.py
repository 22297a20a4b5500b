"""How many tasks begin, wait and end, counted from the records of the tables stream.

`publish` sees each change of each row, so nothing else has to count, and no request waits for it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from .. import metrics
from ..aws.dynamodb_values import from_attribute
from ..tasks.state import Status

ENDS: Final = {
    Status.COMPLETED: metrics.TASKS_COMPLETED,
    Status.FAILED: metrics.TASKS_FAILED,
    Status.CANCELLED: metrics.TASKS_CANCELLED,
}

Values = dict[str, list[float]]
"""A metric's name -> its values."""


def count_tasks(records: Iterable[Mapping[str, Any]], by_tool: bool) -> None:
    """Write the metrics of a batch of records, a line for each tool.

    Call it when the batch has been published: a batch that fails is repeated as a whole, or in
    halves, and its tasks would be counted again. Lambda repeats a batch that succeeded when it
    could not note that; only then is a task counted twice.
    """
    for tool, values in measure(records).items():
        metrics.write(values, tool, by_tool)


def measure(records: Iterable[Mapping[str, Any]]) -> dict[str, Values]:
    """The values of a batch by tool: what has become of each row. Subtasks are tasks, too."""
    found: dict[str, Values] = defaultdict(lambda: defaultdict(list))
    for record in records:
        images = record["dynamodb"]
        try:
            new, old = _row(images.get("NewImage")), _row(images.get("OldImage"))
            for name, value in _values(old, new) if new else ():
                found[new["tool"]][name].append(value)
        except (KeyError, TypeError, ValueError):
            continue  # no task: `changes_to_publish` logs it
    return {tool: dict(values) for tool, values in found.items()}


def _values(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """What a row's change counts for. Times are in seconds, by the rows' own times."""
    if not old:
        yield metrics.TASKS_CREATED, 1
    before, after = old.get("status"), Status(new["status"])
    if before == after:
        return
    if after is Status.INPUT_REQUIRED:
        yield metrics.INPUT_REQUIRED, 1
    if before == Status.INPUT_REQUIRED:
        yield metrics.INPUT_WAIT, (new["lastUpdatedAt"] - old["lastUpdatedAt"]) / 1000
    if after in ENDS:
        yield ENDS[after], 1
        yield metrics.TASK_DURATION, (new["lastUpdatedAt"] - new["createdAt"]) / 1000


def _row(image: Mapping[str, Any] | None) -> dict[str, Any]:
    """The members that count, of a row in DynamoDB's notation."""
    names = ("tool", "status", "createdAt", "lastUpdatedAt")
    return {name: from_attribute(image[name]) for name in names} if image else {}
