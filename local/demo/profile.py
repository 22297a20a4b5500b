"""The profile that `profile_dataset` returns: compare it with the file, and print it."""

from __future__ import annotations

import csv
import io
from collections import Counter
from typing import Any

from mcp_types import ElicitResult

from .expectations import expect
from .screen import Screen


def check_profile(text: str, profile: dict[str, Any], answers: list[ElicitResult]) -> None:
    """Compare a profile with the file's `text` and with the answers that the tool was given.

    Raises CheckFailed at the first difference.
    """
    expect("questions asked", len(answers), 1)
    answer = answers[0].content or {}
    header, *rows = csv.reader(io.StringIO(text))
    columns = profile["columns"]
    expect("rows", profile["rows"], len(rows))
    expect("columns", [column["name"] for column in columns], header)
    for column, cells in zip(columns, zip(*rows, strict=True), strict=True):
        _check_column(column, cells)
    expect("the title", profile["title"], answer.get("title", "Profile"))
    shown = any(column["most_frequent"] for column in columns)
    expect("values are shown", shown, answer.get("show_values", False))


def _check_column(column: dict[str, Any], cells: tuple[str, ...]) -> None:
    name = column["name"]
    values = Counter(cell.strip() for cell in cells if cell.strip())
    expect(f"missing in {name}", column["missing"], len(cells) - values.total())
    if column["distinct_is_exact"]:
        expect(f"distinct in {name}", column["distinct"], len(values))
    if column["type"] == "number":
        received, numbers = [column["minimum"], column["maximum"]], [float(v) for v in values]
        expect(f"range of {name}", received, [min(numbers), max(numbers)])
    for item in column["most_frequent"] or []:
        expect(f"{item['value']} in {name}", item["count"], values[item["value"]])


def show_profile(screen: Screen, profile: dict[str, Any]) -> None:
    """Print a profile as a table with one row for each column of the file."""
    columns, rows = profile["columns"], []
    for column in columns:
        number = column["type"] == "number"
        frequent = [f"{item['value']} {item['count']:,}" for item in column["most_frequent"] or []]
        rows.append(
            [
                column["name"],
                column["type"],
                f"{column['missing']:,}",
                f"{'' if column['distinct_is_exact'] else '~'}{column['distinct']:,}",
                f"{column['minimum']:.5g} to {column['maximum']:.5g}" if number else "",
                f"{column['mean']:.5g}" if number else "",
                ", ".join(frequent),
            ]
        )
    screen.line()
    screen.say(f"{profile['title']}: {profile['rows']:,} rows, {len(columns)} columns", "bold")
    header = ["column", "type", "missing", "distinct", "range", "mean", "most frequent values"]
    screen.table(header, rows, right={2, 3, 5})
