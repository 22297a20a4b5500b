"""Changes on their way onto the event bus (EventBridge API reference, "PutEvents")."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final

import pytest
from botocore.exceptions import ClientError
from hypothesis import given
from hypothesis import strategies as st

from mcp_tasks.notifications import event_bus
from mcp_tasks.notifications.changes import MAX_DETAIL_BYTES, Change, fit_to_event
from mcp_tasks.notifications.event_bus import EventBus, NotPublished
from mcp_tasks.tasks.task import Task
from tests.unit.support import event_bridge
from tests.unit.support.event_bridge import size, validation_error
from tests.unit.support.example_task import ID, NOW, a_task

SECRET: Final = "it has a secret"


@dataclass
class Client:
    """EventBridge's, which notes every call, and refuses some entries of one of them."""

    calls: list[list[dict[str, Any]]] = field(default_factory=list)
    refuses: dict[int, list[str]] = field(default_factory=dict)
    """The number of a call, and the codes with which its last entries are refused."""
    refuses_result: str | Exception = ""
    """The code with which all entries with a result are refused, or the whole call."""

    def put_events(self, Entries: list[dict[str, Any]]) -> dict[str, Any]:
        codes = self.refuses.get(len(self.calls), [])
        self.calls.append(Entries)
        answer = event_bridge.answer(Entries)
        results = answer["Entries"]
        if self.refuses_result:
            for index, entry in enumerate(Entries):
                if "result" in json.loads(entry["Detail"]):
                    if isinstance(self.refuses_result, Exception):
                        raise self.refuses_result
                    results[index] = {"ErrorCode": self.refuses_result, "ErrorMessage": SECRET}
        refused = [{"ErrorCode": code, "ErrorMessage": SECRET} for code in codes]
        results[len(results) - len(refused) :] = refused
        return {"FailedEntryCount": sum("ErrorCode" in r for r in results), "Entries": results}

    @property
    def entries(self) -> list[dict[str, Any]]:
        """All entries, in the order of their calls."""
        return [entry for call in self.calls for entry in call]


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
    assert max(map(size, client.entries)) < event_bridge.MAX_CALL_BYTES


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
        assert sum(map(size, call)) < event_bridge.MAX_CALL_BYTES
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


# what is refused for good: PutEventsResultEntry, "Non-retryable errors include"

NON_RETRYABLE: Final = (
    "InvalidArgument",
    "MalformedDetail",
    "RedactionFailure",
    "ValidationException",
    "a code that AWS has yet to invent",
)


def details(client: Client) -> list[dict[str, Any]]:
    """The details of all entries, in the order of their calls."""
    return [json.loads(entry["Detail"]) for entry in client.entries]


@pytest.mark.parametrize("code", NON_RETRYABLE)
def test_a_change_that_is_refused_for_good_is_published_without_its_content(code: str) -> None:
    """Its lane goes on: the stream would repeat it for an hour, and all changes behind it."""
    client = Client(refuses_result=code)
    bus = EventBus(client, "bus")  # type: ignore[arg-type]
    assert bus.publish([a_pair(1, 1), a_pair(2, 1)]) == 2
    assert [len(call) for call in client.calls] == [2, 2]
    for n, detail in zip((1, 2), details(client)[2:], strict=True):
        assert detail == {
            "taskId": task_id(n),
            "status": "working",
            "_meta": {"mcp-tasks/revision": 1, "mcp-tasks/leftOut": ["result"]},
        }
    (first, second) = (client.calls[0][0], client.calls[1][0])
    assert {**first, "Detail": ""} == {**second, "Detail": ""}


def test_only_what_was_refused_is_published_again(log: io.StringIO) -> None:
    client = Client(refuses={0: ["MalformedDetail"]})
    pairs = [a_pair(n, text="private") for n in range(3)]
    assert EventBus(client, "bus").publish(pairs) == 3  # type: ignore[arg-type]
    assert [len(call) for call in client.calls] == [3, 1]
    assert json.loads(client.calls[1][0]["Detail"])["taskId"] == task_id(2)
    (line,) = map(json.loads, log.getvalue().splitlines())
    assert (line["error"], line["task_id"]) == ("MalformedDetail", task_id(2))
    assert line["left_out"] == ["result"]
    assert "private" not in str(line)
    assert SECRET not in str(line)


def test_a_change_that_is_too_large_is_published_without_its_content() -> None:
    """`fit_to_event` has measured it: AWS may count otherwise."""
    client = Client()
    task, change = a_pair(2)
    large = replace(change, params={**change.params, "result": "x" * event_bridge.MAX_CALL_BYTES})
    bus = EventBus(client, "bus")  # type: ignore[arg-type]
    assert bus.publish([a_pair(1), (task, large), a_pair(3)]) == 3
    assert [detail["taskId"] for detail in details(client)] == [task_id(n) for n in (1, 2, 2, 3)]
    assert [len(detail.get("result", "absent")) for detail in details(client)] == [
        0,
        event_bridge.MAX_CALL_BYTES,
        len("absent"),
        0,
    ]


def test_an_entry_for_which_the_whole_call_is_refused_is_published_without_its_content() -> None:
    """The answer does not say which one it was: each is put alone, and those that are refused then
    are put without their content."""
    client = Client(refuses_result=validation_error())
    pairs = [a_pair(n) for n in range(3)]
    assert EventBus(client, "bus").publish(pairs) == 3  # type: ignore[arg-type]
    assert [len(call) for call in client.calls] == [3, 1, 1, 1, 3]
    assert all("result" not in json.loads(e["Detail"]) for e in client.calls[-1])


def test_a_change_that_is_refused_without_its_content_is_not_lost() -> None:
    """The bus or the function's rights are in disorder: the stream keeps the change for a day."""
    codes = ["NotAuthorizedForSourceException"]
    client = Client(refuses={0: codes, 1: codes})
    with pytest.raises(NotPublished, match=r"^NotAuthorizedForSourceException$"):
        EventBus(client, "bus").publish([a_pair(1)])  # type: ignore[arg-type]
    assert len(client.calls) == 2


@pytest.mark.parametrize("code", ["AccessDeniedException", "InternalException", "Throttling"])
def test_another_error_of_a_call_is_for_the_stream_to_repeat(code: str) -> None:
    error = ClientError({"Error": {"Code": code}}, "PutEvents")
    client = Client(refuses_result=error)
    with pytest.raises(ClientError) as caught:
        EventBus(client, "bus").publish([a_pair(1), a_pair(2)])  # type: ignore[arg-type]
    assert caught.value is error
    assert len(client.calls) == 1


@pytest.mark.parametrize("code", ["ThrottlingException", "InternalFailure", "InternalException"])
def test_beside_a_refusal_a_transient_error_is_repeated_first(code: str) -> None:
    client = Client(refuses={0: ["MalformedDetail", code]})
    with pytest.raises(NotPublished, match=f"^{code}$"):
        EventBus(client, "bus").publish([a_pair(1), a_pair(2)])  # type: ignore[arg-type]
    assert len(client.calls) == 1


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """What is logged."""
    text = io.StringIO()
    monkeypatch.setattr(event_bus.logger.registered_handler, "stream", text)
    return text
