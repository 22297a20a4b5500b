"""profile_dataset: parts that merge, in any order, to what the whole would have given."""

from __future__ import annotations

import csv
import io
import json
import statistics
from collections import Counter
from functools import reduce
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_tasks import TaskContext, ToolError
from mcp_tasks.registry.schema import object_schema
from tools.profile_dataset import Arguments, profile_dataset
from tools.profile_dataset.profile import (
    MAX_COUNTED,
    TOP,
    ColumnPart,
    ColumnProfile,
    finished,
    merge_columns,
    profile_column,
)
from tools.profile_dataset.steps import MERGED_CHARACTERS, Chunk, merge, profile, publish, split

AIRPORTS: Final = Path(__file__).with_name("airports.csv")
EXECUTION_LIMIT: Final = 256 * 1024
"""What Step Functions passes between states."""
K: Final = 16

CELLS: Final = st.one_of(
    st.sampled_from(["", " ", "a", "b", "1", "2.5", "-3", "1e3", "nan", "inf", "ключ"]),
    st.integers(-1000, 1000).map(str),
    st.text(max_size=3),
)
COLUMN: Final = st.lists(CELLS, min_size=1, max_size=60)


def profiled(cells: list[str], k: int = K) -> ColumnPart:
    return profile_column("c", cells, k)


def same(one: ColumnProfile, other: ColumnProfile) -> bool:
    """Equal, but for the last digits of floating-point sums."""
    a, b = one.model_dump(), other.model_dump()
    for name in ("mean", "standard_deviation"):
        if a[name] is not None:
            assert a.pop(name) == pytest.approx(b.pop(name), rel=1e-6, abs=1e-5)
    return a == b


# parts


@given(cells=COLUMN, data=st.data())
def test_chunks_of_any_size_merged_in_any_order_are_the_whole(
    cells: list[str], data: st.DataObject
) -> None:
    cuts = data.draw(st.lists(st.integers(0, len(cells)), max_size=5).map(sorted))
    bounds = [0, *cuts, len(cells)]
    parts = [profiled(cells[a:b]) for a, b in pairwise(bounds)]
    shuffled = data.draw(st.permutations(parts))
    assert same(finished(reduce(merge_columns, shuffled)), finished(profiled(cells)))


@given(COLUMN, COLUMN, COLUMN)
def test_merging_groups_as_one_likes(a: list[str], b: list[str], c: list[str]) -> None:
    """So that a Map state may merge as its parts arrive."""
    x, y, z = profiled(a), profiled(b), profiled(c)
    left = merge_columns(merge_columns(x, y), z)
    right = merge_columns(x, merge_columns(y, z))
    assert same(finished(left), finished(right))


@given(COLUMN)
def test_a_part_survives_the_way_between_states(cells: list[str]) -> None:
    part = profiled(cells)
    assert ColumnPart.model_validate_json(part.model_dump_json()) == part


@given(COLUMN)
def test_every_cell_is_a_value_or_missing(cells: list[str]) -> None:
    part = profiled(cells)
    assert part.values + part.missing == len(cells)
    assert part.missing == sum(not cell.strip() for cell in cells)


@given(st.lists(st.integers(-(10**6), 10**6), min_size=2, max_size=60))
def test_numbers_are_what_statistics_says(numbers: list[int]) -> None:
    column = finished(profiled([str(number) for number in numbers]))
    assert column.type == "number"
    assert (column.minimum, column.maximum) == (min(numbers), max(numbers))
    assert column.mean == pytest.approx(statistics.fmean(numbers), abs=1e-5)
    assert column.standard_deviation == pytest.approx(statistics.pstdev(numbers), abs=1e-5)


@given(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=60))
def test_frequent_values_are_counted(values: list[str]) -> None:
    column = finished(profiled(values))
    expected = sorted(Counter(values).items(), key=lambda item: (-item[1], item[0]))[:TOP]
    assert column.most_frequent is not None
    assert [(v.value, v.count) for v in column.most_frequent] == expected


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["", " "], "empty"),
        (["1", "2.5", "-3e2"], "number"),
        (["1", ""], "number"),
        (["1", "a"], "text"),
        (["nan", "inf"], "text"),
        (["true"], "text"),
    ],
)
def test_a_column_has_a_type(cells: list[str], kind: str) -> None:
    assert finished(profiled(cells)).type == kind


def test_values_are_counted_up_to_a_limit() -> None:
    few = [f"v{n}" for n in range(MAX_COUNTED)]
    assert finished(profiled(few, 2 * MAX_COUNTED)).most_frequent is not None
    many = finished(profiled([*few, "one more"], 2 * MAX_COUNTED))
    assert many.most_frequent is None
    both = merge_columns(profiled(few, 2 * MAX_COUNTED), profiled(["other"], 2 * MAX_COUNTED))
    assert finished(both).most_frequent is None


@given(st.sets(st.text(min_size=1).filter(str.strip), max_size=K - 1))
def test_distinct_values_below_the_limit_are_exact(values: set[str]) -> None:
    stripped = {value.strip() for value in values}
    column = finished(profiled([*values, *values] or [""]))
    assert column.distinct_is_exact is True
    assert column.distinct == len(stripped)


def test_what_is_called_exact_is_exact() -> None:
    """Many values below the limit, where short hashes begin to collide."""
    k = 2048
    for series in range(12):
        values = [f"{series}-{n}" for n in range(k - 1)]
        column = finished(profiled(values, k))
        if column.distinct_is_exact:
            assert column.distinct == len(values), f"series {series}"


@pytest.mark.parametrize("count", [500, 2_000, 20_000])
def test_distinct_values_beyond_the_limit_are_estimated(count: int) -> None:
    k = 256
    column = finished(profiled([f"value {n}" for n in range(count)], k))
    assert column.distinct_is_exact is False
    assert column.distinct == pytest.approx(count, rel=4 / k**0.5)


# steps


def chunked(text: str, chunk_rows: int) -> Any:
    """All steps up to the question, as the state machine runs them: JSON in between."""
    task = TaskContext()
    chunks = [Chunk.model_validate_json(c.model_dump_json()) for c in split(task, text, chunk_rows)]
    parts = [profile(task, chunk) for chunk in chunks]
    return merge(task, parts)


def test_the_real_file_is_profiled_as_csv_and_statistics_say() -> None:
    text = AIRPORTS.read_text(encoding="utf-8")
    merged = chunked(text, 1000)
    rows = list(csv.DictReader(io.StringIO(text)))
    assert merged.profile.rows == len(rows) > 3000

    columns = {column.name: column for column in merged.profile.columns}
    assert list(columns) == list(rows[0])
    for name, column in columns.items():
        values = [row[name].strip() for row in rows]
        given_values = [value for value in values if value]
        assert column.missing == len(values) - len(given_values), name
        distinct = len(set(given_values))
        if column.distinct_is_exact:
            assert column.distinct == distinct, name
        else:
            assert column.distinct == pytest.approx(distinct, rel=0.1), name

    for name in ("latitude", "longitude"):
        numbers = [float(row[name]) for row in rows]
        column = columns[name]
        assert column.type == "number"
        assert (column.minimum, column.maximum) == (min(numbers), max(numbers))
        assert column.mean == pytest.approx(statistics.fmean(numbers), abs=1e-5)
        assert column.standard_deviation == pytest.approx(statistics.pstdev(numbers), abs=1e-5)

    states = Counter(row["state"].strip() for row in rows if row["state"].strip())
    state = columns["state"]
    assert state.most_frequent is not None
    top = sorted(states.items(), key=lambda item: (-item[1], item[0]))[:TOP]
    assert [(v.value, v.count) for v in state.most_frequent] == top


@pytest.mark.parametrize("chunk_rows", [500, 1000, 100_000])
def test_the_real_file_is_profiled_alike_in_any_chunks(chunk_rows: int) -> None:
    text = AIRPORTS.read_text(encoding="utf-8")
    merged, whole = chunked(text, chunk_rows), chunked(text, 10_000)
    for one, other in zip(merged.profile.columns, whole.profile.columns, strict=True):
        # Fewer hashes are kept of more chunks, which estimates of distinct values show.
        other.distinct, other.distinct_is_exact = one.distinct, one.distinct_is_exact
        assert same(one, other)


def test_no_state_of_the_real_file_exceeds_what_step_functions_passes() -> None:
    task, text = TaskContext(), AIRPORTS.read_text(encoding="utf-8")
    arguments = profile_dataset.check_arguments({"csv": text})
    assert len(json.dumps({"csv": text}).encode()) <= EXECUTION_LIMIT
    chunks = split(task, **arguments)
    assert _size([chunk.model_dump() for chunk in chunks]) <= EXECUTION_LIMIT
    parts = [profile(task, chunk) for chunk in chunks]
    size = _size([[part.model_dump() for part in chunk] for chunk in parts])
    assert size <= EXECUTION_LIMIT
    assert size > MERGED_CHARACTERS // 4, "more hashes would fit"


def test_chunks_are_whole_rows_in_order() -> None:
    chunks = split(TaskContext(), "a,b\n" + "".join(f'{n},"x\ny"\n' for n in range(120)), 50)
    assert [(chunk.first, chunk.last) for chunk in chunks] == [(1, 50), (51, 100), (101, 120)]
    rows = [row for chunk in chunks for row in csv.reader(io.StringIO(chunk.rows))]
    assert rows == [[str(n), "x\ny"] for n in range(120)]


def test_progress_is_reported_from_every_step() -> None:
    reports: list[str] = []
    task = TaskContext(on_report=lambda message, _: reports.append(message))
    chunks = split(task, "a\n1\n2\n", 50)
    parts = [profile(task, chunk) for chunk in chunks]
    merge(task, parts)
    assert reports == ["read 2 rows, 1 columns", "profiled rows 1 to 2", "merged 1 chunks"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty"),
        ("\n\n", "empty"),
        ("a,b\n", "no rows"),
        ("a,a\n1,2\n", "alike"),
        ("a,b\n1\n", "Row 2 has 1 cells, the header has 2"),
        ("a,b\n1,2\n1,2,3\n", "Row 3 has 3 cells, the header has 2"),
        ('a,b\n"1,2\n', "not CSV"),
        ('a,b\n"1"x,2\n', "not CSV"),
    ],
)
def test_a_file_that_cannot_be_profiled_is_a_tool_error(text: str, says: str) -> None:
    with pytest.raises(ToolError, match=says):
        split(TaskContext(), text)


def test_more_chunks_than_can_be_merged_are_a_tool_error() -> None:
    rows = "".join(f"{n},1,2,3\n" for n in range(5000))
    with pytest.raises(ToolError, match="larger chunk_rows"):
        split(TaskContext(), f"a,b,c,d\n{rows}", 50)


def test_a_file_of_as_many_values_as_fit_is_split() -> None:
    """The largest that the arguments allow, full of the quotes that JSON doubles."""
    row = '"a ""b""",c\n'
    text = "x,y\n" + row * ((200_000 - 4) // len(row))
    Arguments(csv=text)
    chunks = split(TaskContext(), text, 100_000)
    assert sum(chunk.last - chunk.first + 1 for chunk in chunks) == text.count("\n") - 1


# the question


def merged_of_two() -> Any:
    return chunked("colour,n\nred,1\nblue,2\nred,3\n", 50)


def test_the_question_says_what_would_be_shown() -> None:
    merged = merged_of_two()
    question = merged.requests["publish"]
    assert "3 rows and 2 columns" in question["message"]
    assert "colour" in question["message"]
    assert question["schema"]["required"] == ["show_values"]


@pytest.mark.parametrize(
    ("answer", "title", "shown"),
    [
        ({"action": "accept", "content": {"show_values": True}}, "Profile", True),
        ({"action": "accept", "content": {"show_values": True, "title": "Mine"}}, "Mine", True),
        ({"action": "accept", "content": {"show_values": True, "title": ""}}, "Profile", True),
        ({"action": "accept", "content": {"show_values": False, "title": "Mine"}}, "Mine", False),
        ({"action": "decline"}, "Profile", False),
        ({"action": "cancel"}, "Profile", False),
    ],
)
def test_values_are_shown_with_consent_only(
    answer: dict[str, Any], title: str, shown: bool
) -> None:
    published = publish(merged_of_two().profile, {"publish": answer})
    assert published.title == title
    assert (published.columns[0].most_frequent is not None) is shown
    assert ("red" in published.model_dump_json()) is shown
    assert published.columns[1].mean == 2


# the state machine


def test_every_step_that_a_state_names_exists() -> None:
    definition = _definition()
    named = [
        state["Arguments"]["step"]
        for state in _states(definition)
        if state.get("Resource") == "${worker}"
    ]
    assert sorted(named) == sorted(profile_dataset.steps)


def test_a_state_calls_the_worker_or_asks() -> None:
    for state in _states(_definition()):
        if state["Type"] != "Task":
            continue
        if state["Resource"] != "${worker}":
            assert state["Resource"] == "arn:${partition}:states:::lambda:invoke.waitForTaskToken"
            assert state["Arguments"]["FunctionName"] == "${ask}"
            assert set(state["Arguments"]["Payload"]) == {"task", "token", "requests"}
        else:
            assert set(state["Arguments"]) == {"task", "step", "input"}


def test_a_state_passes_what_its_step_takes() -> None:
    for state in _states(_definition()):
        if state.get("Resource") == "${worker}" and isinstance(state["Arguments"]["input"], dict):
            step = profile_dataset.steps[state["Arguments"]["step"]]
            assert set(state["Arguments"]["input"]) == set(
                object_schema(step.arguments)["properties"]
            )


def test_a_step_that_a_worker_runs_is_bounded_in_time() -> None:
    for state in _states(_definition()):
        if state.get("Resource") == "${worker}":
            assert state["TimeoutSeconds"] <= 60


def _definition() -> dict[str, Any]:
    assert profile_dataset.definition_file is not None
    definition: dict[str, Any] = json.loads(profile_dataset.definition_file.read_text())
    return definition


def _states(definition: dict[str, Any]) -> list[dict[str, Any]]:
    """All states, those of a Map included."""
    states: list[dict[str, Any]] = []
    for state in definition["States"].values():
        states.append(state)
        if "ItemProcessor" in state:
            states += _states(state["ItemProcessor"])
    return states


def _size(value: Any) -> int:
    return len(json.dumps(value).encode())
