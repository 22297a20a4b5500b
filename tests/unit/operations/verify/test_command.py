"""The command's words, `make verify`, and the page that describes the checks are in step."""

from __future__ import annotations

import re
from typing import Final

from operations.verify.__main__ import CHECKS, parser
from operations.verify.check import Check, outcome_of
from operations.verify.deployed import Deployed
from operations.verify.endpoint import Endpoint
from tests.paths import ROOT

PAGE: Final = ROOT / "docs" / "verify.md"
FORWARDED: Final = {"stack", "profile"}
"""The words that `make verify` hands on in a way of its own."""


def test_make_verify_takes_the_words_of_the_command() -> None:
    makefile = (ROOT / "Makefile").read_text()
    (recipe,) = re.findall(r"python -m operations\.verify (.*)", makefile)
    (words,) = re.findall(r"\$\(call arguments,([^)]*)\)", recipe)
    taken = {action.dest for action in parser()._actions} - {"help"}
    assert set(words.split()) | FORWARDED == taken
    assert "$(STACK)" in recipe
    assert "--profile $(profile)" in recipe


def test_the_page_describes_each_check_and_where_it_runs() -> None:
    """In the table, checks with one description share a row."""
    section = PAGE.read_text(encoding="utf-8").split("## What is checked")[1].split("\n## ")[0]
    described = {
        title.strip(): where.strip() == "only AWS can tell"
        for titles, _, where in re.findall(r"^\| (.*) \| (.*) \| (.*) \|$", section, re.MULTILINE)
        for title in titles.split(";")
        if titles != "check"
    }
    assert described == {check.title: check.only_aws for check in CHECKS}


def test_what_takes_minutes_runs_only_when_it_is_asked_for() -> None:
    check = Check("Wait", lambda _: "waited", slow=True)
    deployed = Deployed(Endpoint("https://mcp.example.com/mcp"), False, None)
    outcome = outcome_of(check, deployed)
    assert (outcome.verdict, outcome.seen) == ("not tried", "slow=yes runs it")
    deployed.slow = True
    assert outcome_of(check, deployed).verdict == "passed"
