"""Every deployed definition, read by three linters of the Amazon States Language."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from tests.infra.second_opinions import programs
from tests.paths import FUNCTIONS

LINTERS: Final = ("asl-validator", "amazon-states-language-service", "statelint")
Findings = dict[str, list[str]]
"""Where a linter found what."""

MISTAKEN: Final = {
    # Developer guide, "Wait workflow state": Seconds and Timestamp take "a JSONata expression".
    r"Seconds is \"\{%.*%\}\" but should be an Integer": "statelint",
    r"Timestamp is \"\{%.*%\}\" but should be an RFC3339 timestamp": "statelint",
    # Developer guide, "Map workflow state": MaxConcurrency may be "a JSONata expression that
    # evaluates to an integer".
    r"MaxConcurrency is \"\{%.*%\}\" but should be numeric": "statelint",
}
"""Findings that AWS's documentation contradicts, and the linter that has them."""


def _linted(definitions: dict[str, str]) -> dict[str, Findings]:
    findings: dict[str, Findings]
    (findings,) = programs.node("lint.cjs", definitions)
    findings |= programs.python("lint.py", definitions)
    assert set(findings) == set(LINTERS)
    return findings


@pytest.fixture(scope="module")
def findings(definitions: dict[str, str]) -> dict[str, Findings]:
    """What each linter found, in all definitions."""
    return _linted(definitions)


def _mistaken(linter: str, finding: str) -> list[str]:
    return [text for text, by in MISTAKEN.items() if by == linter and re.search(text, finding)]


def test_all_tools_with_a_state_machine_are_looked_at(definitions: dict[str, str]) -> None:
    # A fork may have deleted it.
    sample = (FUNCTIONS / "tools" / "profile_dataset").exists()
    assert {
        "mcp-tasks-estimate_savings",
        "mcp-tasks-tally_columns",
        "fork-report",
        *(["functions/tools: profile_dataset"] if sample else []),
        "tests/integration/tools: walk",
        "tests/campaigns/chaos/tools: gather",
    } <= set(definitions)


@pytest.mark.parametrize("linter", LINTERS)
def test_a_linter_finds_nothing(linter: str, findings: dict[str, Findings]) -> None:
    found = {
        f"{name}: {finding}"
        for name, all_of_it in findings[linter].items()
        for finding in all_of_it
        if not _mistaken(linter, finding)
    }
    assert found == set()


def test_every_known_mistake_of_a_linter_is_still_made(findings: dict[str, Findings]) -> None:
    made = {
        mistake
        for linter, found in findings.items()
        for all_of_it in found.values()
        for finding in all_of_it
        for mistake in _mistaken(linter, finding)
    }
    assert made == set(MISTAKEN)


def _misspelled_field(definition: dict[str, Any]) -> None:
    definition["States"]["Run"]["TimeoutSecond"] = definition["States"]["Run"].pop("TimeoutSeconds")


def _unknown_next(definition: dict[str, Any]) -> None:
    definition["States"]["Run"]["Next"] = "Nowhere"


def _json_path_in_jsonata(definition: dict[str, Any]) -> None:
    definition["States"]["Run"]["ResultPath"] = "$.result"


def _spoiled_expression(definition: dict[str, Any]) -> None:
    definition["States"]["Run"]["Arguments"]["input"] = "{% $states.input.( %}"


SPOILED: Final[dict[Callable[[dict[str, Any]], None], set[str]]] = {
    _misspelled_field: {*LINTERS},
    _unknown_next: {*LINTERS},
    _json_path_in_jsonata: {"asl-validator", "statelint"},
    _spoiled_expression: {"asl-validator"},
}
"""What is done to the definition of function tools, and who sees it."""


@pytest.fixture(scope="module")
def seen(definitions: dict[str, str]) -> dict[str, set[str]]:
    """By which linters each spoiled definition was seen."""
    texts = dict(_spoiled(definitions["mcp-tasks-estimate_savings"]))
    seen: dict[str, set[str]] = {name: set() for name in texts}
    for linter, findings in _linted(texts).items():
        for name, found in findings.items():
            if any(not _mistaken(linter, finding) for finding in found):
                seen[name].add(linter)
    return seen


def _spoiled(text: str) -> Iterator[tuple[str, str]]:
    for spoil in SPOILED:
        definition = json.loads(text)
        spoil(definition)
        yield spoil.__name__, json.dumps(definition)


@pytest.mark.parametrize("spoil", SPOILED, ids=lambda spoil: spoil.__name__.strip("_"))
def test_the_linters_see_a_mistake(
    spoil: Callable[[dict[str, Any]], None], seen: dict[str, set[str]]
) -> None:
    """A linter that finds nothing has looked."""
    assert seen[spoil.__name__] == SPOILED[spoil]
