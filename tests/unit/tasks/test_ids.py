"""Task ids (tasks.md, "Security Considerations": unguessable; also an execution's name)."""

from __future__ import annotations

import re
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_tasks.tasks.ids import cell_of, new_task_id

CELLS: Final = st.text("abcdefghijklmnopqrstuvwxyz0123456789", min_size=1, max_size=16)

EXECUTION_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,80}")
"""What StartExecution takes as a name and every log shows as it is (Step Functions API)."""


@given(CELLS)
def test_an_id_is_recognized(cell: str) -> None:
    assert cell_of(new_task_id(cell)) == cell


@given(CELLS)
def test_an_id_is_an_execution_name_and_a_header_value(cell: str) -> None:
    assert EXECUTION_NAME.fullmatch(new_task_id(cell))


@given(CELLS)
def test_an_id_says_its_cell(cell: str) -> None:
    """A router sends `Mcp-Name: <cell>-*` to the cell that holds the task."""
    assert new_task_id(cell).startswith(f"{cell}-")


def test_an_id_has_128_random_bits() -> None:
    ids = {new_task_id("c1").partition("-")[2] for _ in range(1000)}
    assert len(ids) == 1000
    assert all(re.fullmatch("[0-9a-f]{32}", own) for own in ids)
    for position in range(32):
        assert len({own[position] for own in ids}) > 8, f"digit {position} hardly changes"


@given(st.text() | st.integers() | st.none() | st.binary())
def test_anything_else_is_not_an_id(value: object) -> None:
    assert cell_of(value) is None


@pytest.mark.parametrize(
    "value",
    [
        "0" * 32,
        f"-{'0' * 32}",
        f"c1_{'0' * 32}",
        f"C1-{'0' * 32}",
        f"c1-{'0' * 31}",
        f"c1-{'0' * 33}",
        f"c1-{'A' * 32}",
        f"c1-{'g' * 32}",
        f"{'c' * 17}-{'0' * 32}",
        f"c1-{'0' * 32}\n",
        f" c1-{'0' * 32}",
        f"c1-{'٠' * 32}",
    ],
)
def test_what_only_looks_like_an_id_is_none(value: str) -> None:
    assert cell_of(value) is None
