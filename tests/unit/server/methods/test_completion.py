"""`completion/complete` as a client sees it (server/utilities/completion.mdx)."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from mcp_tasks.server.methods.completion import MAX_COUNTED_VALUES, MAX_VALUES
from tests.unit.support.aws import Calls
from tests.unit.support.stack import Answer, Stack
from tests.unit.support.whole import HANDSHAKE, whole_stack

INVALID_PARAMS: Final = -32602
LETTER: Final = {"type": "ref/prompt", "name": "letter"}
PAGE: Final = {"type": "ref/resource", "uri": "docs://{language}/{page}"}


@pytest.fixture
def server(aws: Calls) -> Stack:
    return whole_stack(aws)


def complete(
    server: Stack, ref: Any, name: Any, value: Any, context: Any = None, **options: Any
) -> Answer:
    params = {"ref": ref, "argument": {"name": name, "value": value}}
    if context is not None:
        params["context"] = context
    return server.post("completion/complete", params, **options)


def completion(answer: Answer) -> dict[str, Any]:
    found: dict[str, Any] = answer.result["completion"]
    return found


def test_a_prompts_argument_completes_to_the_choices_of_its_type(server: Stack) -> None:
    found = completion(complete(server, LETTER, "tone", "f"))
    assert found == {"values": ["firm", "furious"], "total": 2, "hasMore": False}


def test_a_templates_variable_completes_to_what_was_declared(server: Stack) -> None:
    assert completion(complete(server, PAGE, "language", "d"))["values"] == ["de"]


def test_a_function_gets_the_other_arguments_so_far(server: Stack) -> None:
    context = {"arguments": {"tone": "firm"}}
    assert completion(complete(server, LETTER, "subject", "rain", context))["values"] == [
        "firm rain"
    ]
    assert completion(complete(server, LETTER, "subject", "rain"))["values"] == ["any rain"]


def test_an_argument_without_values_has_none(server: Stack) -> None:
    found = completion(complete(server, LETTER, "day", "2026"))
    assert found == {"values": [], "total": 0, "hasMore": False}


@pytest.mark.parametrize(
    ("language", "total", "more"),
    [
        ("de", MAX_VALUES - 1, False),
        ("en", MAX_VALUES, False),
        ("fr", MAX_VALUES + 1, True),
        ("la", MAX_COUNTED_VALUES, True),
        ("without end", None, True),
    ],
)
def test_an_answer_holds_a_hundred_values_and_says_whether_there_are_more(
    server: Stack, language: str, total: int | None, more: bool
) -> None:
    """ "Completion Results": at most 100; the total is optional."""
    context = {"arguments": {"language": language}}
    found = completion(complete(server, PAGE, "page", "p", context))
    assert found["values"] == [f"p{number}" for number in range(min(total or 100, 100))]
    assert found.get("total") == total
    assert found["hasMore"] is more


@pytest.mark.parametrize(
    "ref",
    [
        {"type": "ref/prompt", "name": "missing"},
        {"type": "ref/prompt", "name": "totals"},
        {"type": "ref/resource", "uri": "docs://missing"},
        {"type": "ref/resource", "uri": "docs://de/1"},  # what the template describes
        {"type": "ref/resource", "uri": "letter"},
        {"type": "ref/tool", "name": "totals"},
        {"type": "ref/prompt", "uri": "letter"},
        {"type": "ref/resource", "name": PAGE["uri"]},
        {"type": "ref/prompt", "name": None},
        {"type": "ref/prompt", "name": ["letter"]},
        {"name": "letter"},
        {},
        [],
        "letter",
        None,
        5,
    ],
    ids=json.dumps,
)
def test_an_unknown_reference_is_refused(server: Stack, ref: Any) -> None:
    """ "Error Handling": -32602."""
    refused = complete(server, ref, "tone", "")
    assert (refused.status, refused.code) == (400, INVALID_PARAMS)
    assert "params.ref" in refused.error["message"]


@pytest.mark.parametrize(("ref", "name"), [(LETTER, "colour"), (LETTER, "task"), (PAGE, "task")])
def test_an_unknown_argument_is_refused(server: Stack, ref: Any, name: str) -> None:
    refused = complete(server, ref, name, "")
    assert (refused.status, refused.code) == (400, INVALID_PARAMS)
    assert name in refused.error["message"]


@pytest.mark.parametrize(
    "argument",
    [
        None,
        [],
        "tone",
        {},
        {"name": "tone"},
        {"value": "f"},
        {"name": "tone", "value": 5},
        {"name": "tone", "value": None},
        {"name": 5, "value": "f"},
        {"name": ["tone"], "value": "f"},
    ],
    ids=json.dumps,
)
def test_an_argument_has_a_name_and_a_value(server: Stack, argument: Any) -> None:
    refused = server.post("completion/complete", {"ref": LETTER, "argument": argument})
    assert (refused.status, refused.code) == (400, INVALID_PARAMS)
    assert "params.argument" in refused.error["message"]


@pytest.mark.parametrize(
    "context",
    [
        [1],
        "tone",
        5,
        [],
        0,
        False,
        "",
        {"arguments": []},
        {"arguments": {"tone": 5}},
        {"arguments": "x"},
    ],
    ids=json.dumps,
)
def test_the_other_arguments_are_an_object_of_strings(server: Stack, context: Any) -> None:
    refused = complete(server, LETTER, "subject", "", context)
    assert (refused.status, refused.code) == (400, INVALID_PARAMS)
    assert "params.context" in refused.error["message"]


@pytest.mark.parametrize("context", [{}, {"arguments": {}}, {"later": 1}])
def test_the_other_arguments_may_be_none(server: Stack, context: Any) -> None:
    assert completion(complete(server, LETTER, "subject", "a", context))["values"] == ["any a"]


def test_a_crash_says_nothing_of_why(server: Stack) -> None:
    crashed = complete(server, PAGE, "page", "", {"arguments": {"language": "xx"}})
    assert (crashed.status, crashed.code) == (500, -32603)
    reference = crashed.error["data"]["reference"]
    said = "The completion failed: KeyError"
    assert crashed.error["message"] == f"{said} (reference {reference})"
    assert "hunter2" not in json.dumps(crashed.message)


@pytest.mark.parametrize("revision", HANDSHAKE)
def test_earlier_revisions_complete_alike(server: Stack, revision: str) -> None:
    found = completion(complete(server, LETTER, "tone", "f", revision=revision))
    assert found == {"values": ["firm", "furious"], "total": 2, "hasMore": False}
