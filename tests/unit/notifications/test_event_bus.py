"""Changes on their way onto the event bus (EventBridge API reference, "PutEvents")."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_tasks.notifications.changes import MAX_DETAIL_BYTES, Change, fit_to_event
from mcp_tasks.notifications.event_bus import EventBus, NotPublished
from mcp_tasks.tasks.task import Task
from tests.unit.support.example_task import ID, NOW, a_task

LIMIT: Final = 256 * 1024
"""Bytes of one call, its entries together."""


@dataclass
class Client:
    """EventBridge's, which notes every call, and refuses some entries of one of them."""

    calls: list[list[dict[str, Any]]] = field(default_factory=list)
    refuses: dict[int, list[str]] = field(default_factory=dict)
    """The number of a call, and the codes with which its last entries are refused."""

    def put_events(self, Entries: list[dict[str, Any]]) -> dict[str, Any]:
        codes = self.refuses.get(len(self.calls), [])
        self.calls.append(Entries)
        taken: list[dict[str, Any]] = [{"EventId": "1"}] * (len(Entries) - len(codes))
        refused = [{"ErrorCode": code, "ErrorMessage": "it has a secret"} for code in codes]
        return {"FailedEntryCount": len(codes), "Entries": taken + refused}

    @property
    def entries(self) -> list[dict[str, Any]]:
        """All entries, in the order of their calls."""
        return [entry for call in self.calls for entry in call]


def size(entry: dict[str, Any]) -> int:
    """EventBridge user guide, "PutEvents event entry size": its example, in Python."""
    total = 14 if entry.get("Time") is not None else 0
    total += len(entry["Source"].encode()) + len(entry["DetailType"].encode())
    total += len(entry["Detail"].encode()) if entry.get("Detail") is not None else 0
    return total + sum(len(resource.encode()) for resource in entry.get("Resources", []))


def task_id(n: int) -> str:
    """The id of the task number `n`."""
    return f"c1-{n:032x}"


def a_pair(n: int, revision: int = 1, text: str = "") -> tuple[Task, Change]:
    """A task, and a change of it whose result is `text`."""
    task = a_task(task_id=task_id(n), revision=revision)
    params = {"taskId": task.task_id, "status": "working", "result": text}
    return task, Change(task.task_id, revision, params)


def revisions(entries: list[dict[str, Any]], n: int) -> list[int]:
    """The revisions of the task number `n` among them, in their order."""
    details = [json.loads(entry["Detail"]) for entry in entries]
    return [d["_meta"]["mcp-tasks/revision"] for d in details if d["taskId"] == task_id(n)]


def test_an_entry_says_what_changed_and_when_and_of_which_tool() -> None:
    client = Client()
    task = a_task(last_updated_at=NOW + 7, revision=3)
    change = Change(ID, 3, {"taskId": ID, "status": "working"})
    assert EventBus(client, "the-bus").publish([(task, change)]) == 1  # type: ignore[arg-type]
    assert client.calls == [
        [
            {
                "EventBusName": "the-bus",
                "Source": "mcp.tasks",
                "DetailType": "notifications/tasks",
                "Detail": change.detail(),
                "Resources": [f"arn:aws:states:us-east-1:123456789012:execution:count:{ID}"],
                "Time": datetime(2023, 11, 14, 22, 13, 20, 7000, tzinfo=UTC),
            }
        ]
    ]


def test_without_changes_there_is_no_call() -> None:
    client = Client()
    assert EventBus(client, "bus").publish([]) == 0  # type: ignore[arg-type]
    assert client.calls == []


@pytest.mark.parametrize(("changes", "calls"), [(10, [10]), (11, [10, 1]), (25, [10, 10, 5])])
def test_a_call_has_ten_entries(changes: int, calls: list[int]) -> None:
    client = Client()
    bus = EventBus(client, "bus")  # type: ignore[arg-type]
    assert bus.publish(map(a_pair, range(changes))) == changes
    assert [len(call) for call in client.calls] == calls


def test_two_changes_of_a_task_never_share_a_call() -> None:
    """Race: of one call, EventBridge may take the later entry and refuse the earlier one."""
    client = Client()
    pairs = [a_pair(1, 1), a_pair(2, 1), a_pair(1, 2), a_pair(1, 3), a_pair(2, 2)]
    EventBus(client, "bus").publish(pairs)  # type: ignore[arg-type]
    assert [len(call) for call in client.calls] == [2, 1, 2]


def test_the_largest_changes_are_published_alone() -> None:
    client = Client()
    bus = EventBus(client, "bus")  # type: ignore[arg-type]
    frame = len(json.dumps(a_pair(0)[1].params, separators=(",", ":")))
    pairs = [a_pair(n, text="x" * (MAX_DETAIL_BYTES - frame)) for n in range(3)]
    assert [fit_to_event(change) for _, change in pairs] == [change for _, change in pairs]
    assert bus.publish(pairs) == 3
    assert [len(call) for call in client.calls] == [1, 1, 1]
    assert max(map(size, client.entries)) < LIMIT


changes = st.lists(
    st.tuples(
        st.integers(0, 4),
        st.sampled_from([0, 10, 20_000, 60_000, 130_000]),
        st.sampled_from(["x", "é", "😀"]),
    ),
    max_size=30,
)


@given(changes)
def test_whatever_is_published_each_call_may_be_made_and_keeps_the_order(
    spec: list[tuple[int, int, str]],
) -> None:
    counts = [0] * 5
    pairs = []
    for n, length, character in spec:
        counts[n] += 1
        task, change = a_pair(n, counts[n], character * length)
        pairs.append((task, fit_to_event(change)))
    client = Client()
    assert EventBus(client, "bus").publish(pairs) == len(pairs)  # type: ignore[arg-type]
    for call in client.calls:
        assert 1 <= len(call) <= 10
        assert len({entry["Resources"][0] for entry in call}) == len(call)
        assert sum(map(size, call)) <= LIMIT
    for n in range(5):
        assert revisions(client.entries, n) == list(range(1, counts[n] + 1))


def test_a_refused_entry_is_an_error_and_nothing_is_sent_after_it() -> None:
    """User guide, "Handling failures with PutEvents": the call itself succeeds.

    Race: a later change of a task must not come to the bus before the refused one.
    """
    client = Client(refuses={1: ["ThrottlingException", "InternalFailure"]})
    read = 0

    def pairs() -> Iterator[tuple[Task, Change]]:
        nonlocal read
        for n in range(40):
            read += 1
            yield a_pair(n)

    with pytest.raises(NotPublished) as caught:
        EventBus(client, "bus").publish(pairs())  # type: ignore[arg-type]
    assert str(caught.value) == "InternalFailure, ThrottlingException"
    assert [len(call) for call in client.calls] == [10, 10]
    assert read <= 21


def test_a_failure_is_published_again_as_a_whole() -> None:
    """At least once: what was taken before the failure comes twice, and in the same order."""
    client = Client(refuses={1: ["InternalFailure"]})
    bus = EventBus(client, "bus")  # type: ignore[arg-type]
    pairs = [a_pair(1, revision) for revision in (1, 2, 3)]
    with pytest.raises(NotPublished):
        bus.publish(pairs)
    bus.publish(pairs)
    assert revisions(client.entries, 1) == [1, 2, 1, 2, 3]
