"""What the demo writes to standard output: lines, paragraphs, headings, tables, the summary.

A terminal gets colours. A pipe gets plain lines.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
import textwrap
from dataclasses import dataclass
from typing import Final

STYLES: Final = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


@dataclass
class Outcome:
    """How a check ended: `problem` is None when it passed, and when it was skipped."""

    title: str
    problem: str | None
    seconds: float
    skipped: str | None = None
    """Why it did not run; None when it did."""


class Screen:
    """Standard output."""

    def __init__(self) -> None:
        if isinstance(sys.stdout, io.TextIOWrapper):
            # The values of a profiled file may be characters that the terminal cannot show.
            sys.stdout.reconfigure(errors="replace")
        self.is_terminal = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
        self.colours = self.is_terminal and not os.environ.get("NO_COLOR")  # no-color.org
        self.width = max(60, min(shutil.get_terminal_size((100, 24)).columns, 110))
        unicode = sys.stdout.encoding.lower().startswith("utf")
        self.spinner = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏" if unicode else "|/-\\"
        self.ok, self.bad, self.done, self.rule = "✓✗•─" if unicode else "+!*-"

    def paint(self, text: str, *styles: str) -> str:
        """Give text a style, if the terminal may have colours."""
        if not self.colours or not styles:
            return text
        return f"\x1b[{';'.join(STYLES[style] for style in styles)}m{text}\x1b[0m"

    def write(self, text: str) -> None:
        """Write a part of a line, and flush it."""
        sys.stdout.write(text)
        sys.stdout.flush()

    def line(self, text: str = "", *styles: str) -> None:
        """Write one line without wrapping it."""
        self.write(f"{self.paint(text, *styles)}\n")

    def say(self, text: str, *styles: str, indent: int = 3) -> None:
        """Write a paragraph, wrapped to the screen's width."""
        margin = " " * indent
        for row in textwrap.wrap(text, self.width, initial_indent=margin, subsequent_indent=margin):
            self.line(row, *styles)

    def heading(self, text: str) -> None:
        """Write a section's title."""
        self.line()
        self.line(f"{text} {self.rule * (self.width - len(text) - 1)}", "bold")

    def table(self, header: list[str], rows: list[list[str]], right: set[int]) -> None:
        """Write a table. Cells of the last column are cut at the screen's width.

        `right` holds the indexes of the columns that are aligned on the right.
        """
        widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
        widths[-1] = min(widths[-1], self.width - 3 - sum(widths[:-1]) - 2 * len(widths[:-1]))
        for number, row in enumerate([header, *rows]):
            cells = [
                cell.rjust(width) if n in right else cut(cell, width).ljust(width)
                for n, (cell, width) in enumerate(zip(row, widths, strict=True))
            ]
            self.line(f"   {'  '.join(cells)}".rstrip(), *(["dim"] if number == 0 else []))

    def summary(self, outcomes: list[Outcome], seconds: float) -> None:
        """Write how each check ended, and how many passed."""
        self.heading("Summary")
        for outcome in outcomes:
            if outcome.skipped is not None:
                word = self.paint("skipped", "yellow")
                self.line(f"   - {outcome.title:<40} {word} {outcome.skipped}")
                continue
            passed = outcome.problem is None
            mark = self.paint(self.ok, "green") if passed else self.paint(self.bad, "red")
            result = self.paint("ok    ", "green") if passed else self.paint("failed", "red")
            self.line(f"   {mark} {outcome.title:<40} {result} {outcome.seconds:6.1f} s")
            if outcome.problem is not None:
                self.say(outcome.problem, "red", indent=7)
        run = [outcome for outcome in outcomes if outcome.skipped is None]
        number, skipped = sum(outcome.problem is None for outcome in run), len(outcomes) - len(run)
        self.line()
        text = f"{number} of {len(run)} checks passed, in {seconds:.1f} s"
        if skipped:
            text += f"; {skipped} skipped, whose sample tools the server does not have"
        self.say(text, "bold", "green" if number == len(run) else "red")


def cut(text: str, width: int) -> str:
    """The text, cut to `width` characters."""
    return text if len(text) <= width else f"{text[: max(0, width - 3)]}..."
