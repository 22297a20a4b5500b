"""The report can be pasted: it is Markdown, and names no account."""

from __future__ import annotations

from operations.verify import report
from operations.verify.check import Outcome

OUTCOME = Outcome("Alarms", "FAILED", "arn:aws:sns:eu-west-1:111122223333:x | y\nz", 1.25)


def test_a_row_holds_no_account_and_no_bar_too_many() -> None:
    assert report.line(OUTCOME) == (
        "| Alarms | FAILED | arn:aws:sns:eu-west-1:<account>:x \\| y z | 1.2 |"
    )


def test_a_number_that_is_no_account_stays() -> None:
    assert report.hidden("1234567890123 and 11112222333") == "1234567890123 and 11112222333"


def test_the_summary_counts_verdicts() -> None:
    passed = Outcome("x", "passed", "", 0)
    assert report.summary([passed, OUTCOME, passed]) == "2 passed, 1 FAILED"
