"""Trees of subtasks over HTTP: the rules of SEP-2268, one by one, for clients old and new."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest

from local.deployment import LocalStack
from local.gateway import Gateway
from tests.integration.support.client import Client, accept
from tests.integration.support.session_client import SessionClient
from tests.integration.support.subscriptions import Received, Subscription

BOOK: Final = [["Aa", "Ab", "Ac"], ["Ba", "B!"], ["Ca"]]
TERMINAL: Final = ("completed", "failed", "cancelled")
RELATED: Final = "io.modelcontextprotocol/related-task"

Tree = dict[str, dict[str, Any]]
"""Tasks as they were read, by id: a parent before its subtasks."""


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """The file that steps write to."""
    return tmp_path / "ledger"


def lines(ledger: Path) -> list[str]:
    """What was written."""
    return ledger.read_text().splitlines() if ledger.exists() else []


def read_tree(client: Client, task_id: str) -> Tree:
    """A task and all that is below it, as SEP-2268 has requestors process it."""
    task = client.get(task_id)
    tree = {task_id: task}
    for child in task.get("childTaskIds", ()):
        tree |= read_tree(client, child)
    return tree


def until(reached: Callable[[], bool], seconds: float = 60) -> None:
    """Wait for a condition."""
    end = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < end
        time.sleep(0.1)


def check_links(tree: Tree, root: str) -> None:
    """What holds of a tree at any time ("Subtasks", "Getting Subtasks")."""
    assert "parentTaskId" not in tree[root]
    for task_id, task in tree.items():
        children = task.get("childTaskIds", [])
        assert len(set(children)) == len(children)
        assert task_id not in children
        for child in children:
            assert tree[child]["parentTaskId"] == task_id
            # "MUST NOT cause a task to be deleted after its parent", which names it.
            assert expires_at(tree[child]) == pytest.approx(expires_at(task), abs=1)
        if task["status"] in TERMINAL:
            assert all(tree[child]["status"] in TERMINAL for child in children)


def expires_at(task: dict[str, Any]) -> float:
    """Milliseconds since the epoch."""
    return datetime.fromisoformat(task["createdAt"]).timestamp() * 1000 + float(task["ttlMs"])


def test_a_tree_of_three_levels_has_results_of_its_own_in_order(
    client: Client, ledger: Path
) -> None:
    task_id = client.start("write_book", ledger=str(ledger), chapters=BOOK)
    task = client.end(task_id)
    assert task["result"]["structuredContent"] == [6, "B! is too loud", 2]
    tree = read_tree(client, task_id)
    check_links(tree, task_id)
    assert len(tree) == 1 + 3 + 6
    chapters = [tree[child] for child in task["childTaskIds"]]
    assert [chapter["result"]["content"][0]["text"] for chapter in chapters] == [
        *("6", "B! is too loud", "2"),
    ]
    pages = [tree[page] for page in chapters[0]["childTaskIds"]]
    assert [page["result"]["structuredContent"] for page in pages] == [2, 2, 2]
    assert pages[0]["statusMessage" if "statusMessage" in pages[0] else "status"]
    assert set(Counter(lines(ledger)).values()) == {1}


def test_subtasks_and_their_results_are_seen_while_the_parent_works(
    client: Client, ledger: Path
) -> None:
    """Partial results: each as soon as it is there. The lists only grow."""
    task_id = client.start("write_book", ledger=str(ledger), chapters=BOOK, seconds=1)
    seen: list[list[str]] = []
    results: set[str] = set()
    while (task := client.get(task_id))["status"] == "working":
        tree = read_tree(client, task_id)
        seen.append(tree[task_id].get("childTaskIds", []))
        done = [each for each, found in tree.items() if found["status"] == "completed"]
        if tree[task_id]["status"] == "working":
            results |= set(done)
        time.sleep(0.2)
    assert task["status"] == "completed", task
    assert len(results) > 3
    for earlier, later in pairwise(seen):
        assert later[: len(earlier)] == earlier


def test_a_tree_that_is_cancelled_in_the_middle_ends_from_below(
    client: Client, ledger: Path
) -> None:
    """And what its tasks did is undone, each its own."""
    chapters = [["Aa", "Ab"], ["Ba", "Bb"], ["Ca"]]
    task_id = client.start("write_book", ledger=str(ledger), chapters=chapters, seconds=30)
    until(lambda: len([line for line in lines(ledger) if len(line) == len("begin Aa")]) >= 5)
    client.cancel(task_id)
    tree = read_tree(client, task_id)
    assert len(tree) == 1 + 3 + 5
    assert {task["status"] for task in tree.values()} == {"cancelled"}
    check_links(tree, task_id)
    changed = {each: task["lastUpdatedAt"] for each, task in tree.items()}
    for each, task in tree.items():
        assert all(changed[child] <= changed[each] for child in task.get("childTaskIds", ()))
    begun = {line.removeprefix("begin ") for line in lines(ledger) if line.startswith("begin")}
    until(lambda: begun <= {line.removeprefix("undo ") for line in lines(ledger)})
    assert set(Counter(lines(ledger)).values()) == {1}


def test_a_subtask_is_cancelled_alone_and_its_parent_decides(client: Client, ledger: Path) -> None:
    task_id = client.start("write_letter", ledger=str(ledger), title="hello", seconds=30)
    (page,) = client.until(task_id, lambda task: "childTaskIds" in task)["childTaskIds"]
    until(lambda: lines(ledger) == ["begin hello"])
    client.cancel(page)
    assert client.get(page)["status"] == "cancelled"
    task = client.end(task_id)
    assert task["result"]["content"][0]["text"] == "cancelled: "
    until(lambda: lines(ledger) == ["begin hello", "undo hello"])


def test_subtasks_ask_while_their_parents_work(client: Client, ledger: Path) -> None:
    task_id = client.start("write_book", ledger=str(ledger), chapters=[["A"], ["B"]], ask=True)

    def asking() -> list[str]:
        children = client.get(task_id).get("childTaskIds", [])
        return [each for each in children if client.get(each)["status"] == "input_required"]

    until(lambda: len(asking()) == 2)
    assert client.get(task_id)["status"] == "working"
    for child, yes in zip(asking(), (True, False), strict=True):
        key = client.until_asked(child, "answer")["answer"]
        client.update(child, {key: accept(yes=yes)})
    task = client.end(task_id)
    assert task["result"]["structuredContent"] == [1, "not this chapter"]


def test_changes_of_subtasks_are_pushed_and_name_their_parents(
    gateway: Gateway, ledger: Path
) -> None:
    streaming = Client(gateway.url)
    task_id = streaming.start("write_letter", ledger=str(ledger), title="hello", seconds=3)
    (page,) = streaming.until(task_id, lambda task: "childTaskIds" in task)["childTaskIds"]
    subscription = Subscription(streaming, [task_id, page]).run(_never)
    ended = {each: subscription.changes(each)[-1] for each in (task_id, page)}
    assert {change["status"] for change in ended.values()} == {"completed"}
    assert ended[page]["parentTaskId"] == task_id
    assert ended[task_id]["childTaskIds"] == [page]
    assert all(change["parentTaskId"] == task_id for change in subscription.changes(page))


def _never(_: Received) -> bool:
    return False


def test_many_subtasks_run_a_few_at_a_time(client: Client, ledger: Path) -> None:
    """More than one Map state starts."""
    chapters = [[f"{n:03}"] for n in range(12)]
    task_id = client.start("write_book", ledger=str(ledger), chapters=chapters)
    task = client.end(task_id)
    assert task["result"]["structuredContent"] == [3] * 12
    assert len(task["childTaskIds"]) == 12


# clients that know nothing of subtasks


def answer(_: dict[str, Any]) -> dict[str, Any]:
    """Approve of whatever is asked."""
    return accept(yes=True)


def test_a_call_that_waits_is_asked_for_its_subtasks(stack: LocalStack, ledger: Path) -> None:
    """By a client of 2025-11-25 that knows no tasks."""
    client = SessionClient(stack.url)
    given = {"ledger": str(ledger), "chapters": [["A"]], "ask": True}
    called = client.call("write_book", given, answer)
    assert called.result["content"][0]["text"] == "[1]"
    assert [request["method"] for request in called.requests] == ["elicitation/create"]
    assert RELATED not in called.requests[0]["params"].get("_meta", {})


def test_a_client_that_does_not_resume_is_told_which_subtask_to_answer(
    stack: LocalStack, ledger: Path
) -> None:
    client = SessionClient(stack.url, "2025-06-18")
    given = {"ledger": str(ledger), "chapters": [["A"]], "ask": True}
    told = client.call("write_book", given).result["structuredContent"]
    assert told["status"] == "input_required"
    (question,) = told["questions"]
    chosen = {"task_id": told["taskId"], "key": question["key"], "content": {"yes": True}}
    assert client.call("task_answer", chosen).result["content"][0]["text"] == "[1]"


def test_tasks_result_of_2025_11_25_asks_for_subtasks_and_says_whose(
    stack: LocalStack, ledger: Path
) -> None:
    client = SessionClient(stack.url)
    arguments = {"ledger": str(ledger), "chapters": [["A"]], "ask": True}
    params = {"name": "write_book", "arguments": arguments, "task": {}}
    task_id = client.request("tools/call", params).message["result"]["task"]["taskId"]
    result = client.follow(client.compose("tasks/result", {"taskId": task_id}), answer)
    (question,) = result.requests
    about = question["params"]["_meta"][RELATED]
    assert about["parentTaskId"] == task_id
    assert about["taskId"] != task_id
    task = client.request("tasks/get", {"taskId": task_id}).message["result"]
    assert task["childTaskIds"] == [about["taskId"]]
