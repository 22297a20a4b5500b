"""publish_dataset: a durable function in this process, its catalogue in moto's Parameter Store."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from mcp_tasks import NotFound, TaskContext, ToolError
from mcp_tasks.testing import LocalTask, crash_everywhere, start_task
from tools.datasets import PREFIX, Dataset, add, dataset, publish, remove
from tools.profile_dataset import profile_dataset
from tools.profile_dataset.profile import DatasetProfile
from tools.profile_dataset.steps import merge, profile, split
from tools.publish_dataset import count_rows, publish_dataset

AIRPORTS: Final = Path(__file__).with_name("airports.csv").read_text(encoding="utf-8")
COLOURS: Final = "colour,n\nred,1\n,2\nblue,3\n"
ARGUMENTS: Final = {"name": "things", "files": {"colours": COLOURS, "airports": AIRPORTS}}
YES: Final = {"answer": {"action": "accept", "content": {"publish": True}}}
NO: Final = {"answer": {"action": "accept", "content": {"publish": False}}}
ROWS: Final = {"airports": 3376, "colours": 3}
DRAFT: Final = Dataset(name="things", version=UUID(int=1), rows=ROWS)


def profiled(csv: str) -> DatasetProfile:
    """What the workflow comes to when nobody lets it show values."""
    task = TaskContext()
    parts = [profile(task, chunk) for chunk in split(task, csv)]
    return merge(task, parts).profile


def started(answers: Any = None, **arguments: Any) -> LocalTask:
    return start_task(
        publish_dataset,
        {**ARGUMENTS, **arguments},
        answers=answers,
        steps={profile_dataset: profiled},
    )


def catalogue() -> dict[str, str]:
    """The status of each entry, by its name."""
    found = boto3.client("ssm").get_parameters_by_path(Path=PREFIX)["Parameters"]
    return {
        parameter["Name"].removeprefix(PREFIX): json.loads(parameter["Value"])["status"]
        for parameter in found
    }


@pytest.fixture(autouse=True)
def parameter_store(no_account: None) -> Iterator[None]:
    """An empty Parameter Store."""
    with mock_aws():
        yield


# ---- The tool ------------------------------------------------------------------------------------


def test_a_dataset_is_a_draft_until_it_is_approved_and_its_day_has_come() -> None:
    task = started(publish_after_seconds=7 * 24 * 3600)
    assert (task.status, catalogue()) == ("input_required", {"things": "draft"})
    task.answer(YES)
    assert (task.status, catalogue()) == ("completed", {"things": "published"})
    assert task.waited >= timedelta(days=7)
    assert task.result is not None
    assert task.result["structuredContent"]["rows"] == ROWS
    assert dataset("things").model_dump(mode="json") == task.result["structuredContent"]


def test_the_question_says_what_the_subtasks_have_found() -> None:
    (question,) = started().questions.values()
    assert "3,379 rows; 1 cells are empty" in json.dumps(question.as_json())


def test_what_it_does_is_reported_once() -> None:
    assert started(YES).reports == [
        "checks 2 files",
        "profiles 2 files",
        "waits until things may be published",
    ]


def test_a_draft_that_is_not_approved_is_removed() -> None:
    task = started(NO)
    assert task.result is not None
    assert task.result["content"][0]["text"] == "things was not approved"
    assert (task.result["isError"], catalogue()) == (True, {})


def test_a_question_that_is_declined_removes_the_draft() -> None:
    assert started({"answer": {"action": "decline"}}).status == "completed"
    assert catalogue() == {}


def test_a_task_that_is_cancelled_removes_the_draft() -> None:
    task = started()
    assert catalogue() == {"things": "draft"}
    task.cancel()
    assert (task.status, task.not_undone, catalogue()) == ("cancelled", [], {})


def test_a_file_that_cannot_be_profiled_removes_the_draft() -> None:
    task = started(YES, files={"twice": "a,a\n1,2\n"})
    assert task.executed == ["count_rows", "add", "remove"]
    assert task.result is not None
    assert "alike" in task.result["content"][0]["text"]
    assert catalogue() == {}


def test_a_name_that_is_taken_is_told_before_anybody_is_asked() -> None:
    add(DRAFT)
    task = started()
    assert task.result is not None
    assert task.result["content"][0]["text"] == "There is a dataset things already"
    assert dataset("things") == DRAFT


def test_parameter_store_is_called_again_when_it_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def throttled_once(entry: Dataset) -> Dataset:
        calls.append(entry.name)
        if len(calls) == 1:
            raise ClientError({"Error": {"Code": "ThrottlingException"}}, "PutParameter")
        return add(entry)

    steps: dict[Any, Callable[..., Any]] = {profile_dataset: profiled, add: throttled_once}
    assert start_task(publish_dataset, ARGUMENTS, answers=YES, steps=steps).status == "completed"
    assert len(calls) == 2


def test_no_crash_leaves_a_draft_or_publishes_twice() -> None:
    def effects() -> dict[str, str]:
        found = catalogue()
        for name in found:
            boto3.client("ssm").delete_parameter(Name=PREFIX + name)
        return found

    steps = {profile_dataset: lambda csv: profiled(COLOURS)}
    arguments = {"name": "things", "files": {"colours": COLOURS, "others": COLOURS}}
    for answers in (YES, NO):
        crashes = crash_everywhere(
            publish_dataset, arguments, answers=answers, steps=steps, effects=effects
        )
        assert crashes > 20


# ---- Its steps -----------------------------------------------------------------------------------


def test_rows_are_counted_by_cells_and_not_by_lines() -> None:
    assert count_rows(("quoted", 'a,b\n1,"x\ny"\n2,z\n')) == 2


def test_a_file_with_an_address_is_refused() -> None:
    with pytest.raises(ToolError, match="people: row 3 has an e-mail address"):
        count_rows(("people", "name,contact\nAda,\nGrace,grace.h@example.org\n"))


def test_an_entry_is_added_once_by_its_own_task_and_by_no_other() -> None:
    assert add(DRAFT) == add(DRAFT) == DRAFT
    with pytest.raises(ToolError, match="already"):
        add(DRAFT.model_copy(update={"version": UUID(int=2)}))


def test_an_entry_of_another_task_is_not_removed() -> None:
    """Race: the task's own entry is gone, and its undo runs again after another task's `add`."""
    add(DRAFT)
    remove(DRAFT.model_copy(update={"version": UUID(int=2)}))
    assert catalogue() == {"things": "draft"}
    remove(DRAFT)
    remove(DRAFT)
    assert catalogue() == {}


def test_the_entry_of_the_largest_dataset_fits_into_a_parameter() -> None:
    """Parameter Store: 4 KB for a standard parameter."""
    name = "a" * 40
    rows = {f"{name[:-1]}{n}": 10**6 for n in range(8)}
    assert len(Dataset(name=name, version=UUID(int=1), rows=rows).model_dump_json()) < 4096
    assert publish(add(DRAFT.model_copy(update={"rows": rows}))).status == "published"


def test_a_dataset_that_is_not_there_is_not_found() -> None:
    with pytest.raises(NotFound):
        dataset("nothing")
