"""`server/discover` and the lists of a deployment (server/discover.mdx; server/tools.mdx;
server/resources.mdx; server/prompts.mdx).

How lists are cut into pages is in test_lists.
"""

from __future__ import annotations

from typing import Any, Final

import pytest
from jsonschema import Draft202012Validator

from mcp_tasks.registry.catalogue import Catalogue
from tests.unit.support.listening import Streamed, Time
from tests.unit.support.stack import REVISION, TASKS, Stack

LISTS: Final = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}


def test_discover_names_the_revision_and_the_extension(stack: Stack) -> None:
    result = stack.post("server/discover").result
    assert result["supportedVersions"] == [REVISION, "2025-11-25", "2025-06-18", "2025-03-26"]
    assert "tools" in result["capabilities"]
    assert "tasks" not in result["capabilities"]
    assert result["instructions"]


def test_the_extension_has_no_settings(stack: Stack) -> None:
    """One client reads any settings but {} as "no tasks"."""
    capabilities = stack.post("server/discover").result["capabilities"]
    assert capabilities["extensions"] == {TASKS: {}}


def test_what_a_server_has_is_a_capability(stack: Stack) -> None:
    capabilities = stack.post("server/discover").result["capabilities"]
    assert capabilities["tools"] == capabilities["prompts"] == {}
    assert capabilities["resources"] == {"subscribe": True}
    assert capabilities["completions"] == capabilities["logging"] == {}


def test_a_streamed_subscription_follows_lists(stack: Stack) -> None:
    stack.way = Streamed(Time())
    capabilities = stack.post("server/discover").result["capabilities"]
    for name in ("tools", "prompts", "resources"):
        assert capabilities[name]["listChanged"] is True


def test_what_it_does_not_have_is_none(stack: Stack) -> None:
    stack.catalogue = Catalogue(stack.catalogue.tools.values())
    stack.serve()
    assert set(stack.post("server/discover").result["capabilities"]) == {
        "tools",
        "logging",
        "extensions",
    }


def test_lists_may_be_cached_by_anyone(stack: Stack) -> None:
    """server/utilities/caching.mdx: they depend on no user."""
    for method in ("server/discover", *LISTS):
        result = stack.post(method).result
        assert result["cacheScope"] == "public"
        assert result["ttlMs"] > 0


def test_tools_are_listed_by_name_on_one_page(stack: Stack) -> None:
    result = stack.post("tools/list").result
    names = [tool["name"] for tool in result["tools"]]
    assert names == sorted(names)
    assert set(names) >= {"echo", "count", "wait", "review", "orders"}
    assert "nextCursor" not in result


@pytest.mark.parametrize(
    ("method", "identifier", "found"),
    [
        ("resources/list", "uri", ["docs://handbook"]),
        (
            "resources/templates/list",
            "uriTemplate",
            ["docs://chapters/{number}", "docs://letters/{kind}"],
        ),
        ("prompts/list", "name", ["review"]),
    ],
)
def test_a_template_is_no_resource_and_a_prompt_no_tool(
    stack: Stack, method: str, identifier: str, found: list[str]
) -> None:
    result = stack.post(method).result
    assert [item[identifier] for item in result[LISTS[method]]] == found
    assert "nextCursor" not in result


@pytest.mark.parametrize("method", LISTS)
def test_a_list_is_the_same_for_every_client(stack: Stack, method: str) -> None:
    """tools.mdx: the list must not vary by connection, and so not by capability either."""
    assert (
        stack.post(method, capabilities={}).result
        == stack.post(method, user_arn="arn:aws:iam::1:user/bob").result
    )


@pytest.mark.parametrize("method", LISTS)
@pytest.mark.parametrize("cursor", ["", "2", 1, {}])
def test_a_cursor_is_unknown(stack: Stack, method: str, cursor: Any) -> None:
    """server/utilities/pagination.mdx: an invalid cursor is -32602."""
    answer = stack.post(method, {"cursor": cursor})
    assert (answer.status, answer.code) == (400, -32602)


@pytest.mark.parametrize("method", LISTS)
def test_a_null_cursor_is_the_first_page(stack: Stack, method: str) -> None:
    assert stack.post(method, {"cursor": None}).result == stack.post(method).result


def test_every_schema_is_a_json_schema(stack: Stack) -> None:
    """tools.mdx: valid under 2020-12, and an object at the root of what is passed."""
    for tool in stack.post("tools/list").result["tools"]:
        Draft202012Validator.check_schema(tool["inputSchema"])
        assert tool["inputSchema"]["type"] == "object"
        if tool["name"] != "anything":  # whose schema is its author's own
            assert tool["inputSchema"]["additionalProperties"] is False
        if "outputSchema" in tool:
            Draft202012Validator.check_schema(tool["outputSchema"])


def test_an_answer_is_not_changed_by_the_one_before(stack: Stack) -> None:
    for method in ("server/discover", *LISTS):
        assert stack.post(method).result == stack.post(method).result
