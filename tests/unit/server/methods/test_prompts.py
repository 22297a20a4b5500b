"""`prompts/*` as a client sees them (server/prompts.mdx)."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from tests.unit.support.aws import Calls
from tests.unit.support.stack import Answer, Stack
from tests.unit.support.whole import whole_stack

INVALID_PARAMS: Final = -32602
INTERNAL: Final = -32603
SECRET: Final = "hunter2"


@pytest.fixture
def server(aws: Calls) -> Stack:
    return whole_stack(aws)


def get(server: Stack, name: str, **arguments: Any) -> Answer:
    return server.post("prompts/get", {"name": name, "arguments": arguments})


def test_prompts_are_listed_in_the_order_of_their_names(server: Stack) -> None:
    result = server.post("prompts/list").result
    assert [entry["name"] for entry in result["prompts"]] == ["failing", "letter", "plan", "talk"]
    assert result["ttlMs"] > 0
    assert result["cacheScope"] == "public"


def test_a_prompt_is_listed_as_it_was_declared(server: Stack) -> None:
    listed = {entry["name"]: entry for entry in server.post("prompts/list").result["prompts"]}
    assert listed["letter"] == {
        "name": "letter",
        "title": "A letter",
        "description": "Write a letter.",
        "arguments": [
            {"name": "subject", "title": "Subject", "description": "What about.", "required": True},
            {"name": "day", "required": False},
            {"name": "tone", "required": False},
        ],
        "icons": [{"src": "https://example.com/letter.png"}],
        "_meta": {"example.com/group": "words"},
    }
    assert "arguments" not in listed["talk"]


@pytest.mark.parametrize("cursor", ["", "abc", 5, [], {}, False])
def test_an_invalid_cursor_is_refused(server: Stack, cursor: Any) -> None:
    refused = server.post("prompts/list", {"cursor": cursor})
    assert (refused.status, refused.code) == (400, INVALID_PARAMS)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"subject": "rain"}, "A kind letter about rain, 2026-01-01"),
        (
            {"subject": "", "day": "2026-12-24", "tone": "firm"},
            "A firm letter about , 2026-12-24",
        ),
    ],
)
def test_a_prompt_is_written_with_its_arguments(
    server: Stack, arguments: dict[str, str], text: str
) -> None:
    result = get(server, "letter", **arguments).result
    assert result["description"] == "Write a letter."
    assert result["messages"] == [{"role": "user", "content": {"type": "text", "text": text}}]
    # Only lists, readings and discovery may be cached (caching.mdx).
    assert not {"ttlMs", "cacheScope"} & set(result)


def test_messages_hold_contents_of_all_types(server: Stack) -> None:
    messages = get(server, "talk").result["messages"]
    assert [message["content"]["type"] for message in messages] == [
        "text",
        "image",
        "audio",
        "resource",
        "resource_link",
    ]
    assert [message["role"] for message in messages] == ["user"] * 4 + ["assistant"]


def test_no_arguments_are_an_empty_object(server: Stack) -> None:
    assert "messages" in server.post("prompts/get", {"name": "talk"}).result


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"subject": "rain", "day": "tomorrow"},
        {"subject": "rain", "tone": "sad"},
        {"subject": "rain", "task": "x"},
        {"subject": "rain", "colour": "red"},
    ],
    ids=json.dumps,
)
def test_wrong_arguments_are_refused(server: Stack, arguments: dict[str, str]) -> None:
    """prompts.mdx, "Error Handling": -32602."""
    refused = get(server, "letter", **arguments)
    assert (refused.status, refused.code) == (400, INVALID_PARAMS)


def test_a_refusal_names_the_argument_and_not_its_value(server: Stack) -> None:
    message = get(server, "letter", subject="rain", day=SECRET).error["message"]
    assert "day" in message
    assert SECRET not in message


@pytest.mark.parametrize(
    "arguments",
    [[], "rain", 5, False, {"subject": 5}, {"subject": None}, {"subject": ["a"]}],
    ids=json.dumps,
)
def test_arguments_are_an_object_of_strings(server: Stack, arguments: Any) -> None:
    refused = server.post("prompts/get", {"name": "letter", "arguments": arguments})
    assert (refused.status, refused.code) == (400, INVALID_PARAMS)


@pytest.mark.parametrize("name", ["missing", "", "Letter", "totals", "docs://handbook"])
def test_an_unknown_prompt_is_refused(server: Stack, name: str) -> None:
    refused = get(server, name)
    assert (refused.status, refused.code) == (400, INVALID_PARAMS)
    assert "Unknown prompt" in refused.error["message"]


@pytest.mark.parametrize("name", [None, 5, ["letter"], {}])
def test_a_name_that_is_no_string_is_refused(server: Stack, name: Any) -> None:
    refused = server.post("prompts/get", {"name": name}, headers={"Mcp-Name": "letter"})
    assert (refused.status, refused.code) == (400, INVALID_PARAMS)


@pytest.mark.parametrize("header", [None, "talk", "LETTER"])
def test_the_header_repeats_the_name(server: Stack, header: str | None) -> None:
    """streamable-http.mdx, "Request Metadata"."""
    headers: dict[str, Any] = {"Mcp-Name": header}
    params = {"name": "letter", "arguments": {"subject": "rain"}}
    refused = server.post("prompts/get", params, headers=headers)
    assert (refused.status, refused.code) == (400, -32020)


def test_a_crash_says_nothing_of_why(server: Stack) -> None:
    crashed = get(server, "failing", how=SECRET)
    assert (crashed.status, crashed.code) == (500, INTERNAL)
    reference = crashed.error["data"]["reference"]
    said = "The prompt failed: KeyError"
    assert crashed.error["message"] == f"{said} (reference {reference})"
    assert SECRET not in json.dumps(crashed.message)


def test_a_prompt_may_say_itself_why_there_is_none(server: Stack) -> None:
    refused = get(server, "failing", how="tool")
    assert (refused.status, refused.code) == (400, INVALID_PARAMS)
    assert refused.error["message"] == "There are no words for this"


def test_a_prompt_may_report_progress(server: Stack) -> None:
    params = {"name": "letter", "arguments": {"subject": "x"}, "_meta": {"progressToken": 7}}
    (progress,) = server.post("prompts/get", params).notifications
    assert progress["params"] == {
        "progressToken": 7,
        "progress": 50,
        "total": 100,
        "message": "writing",
    }
