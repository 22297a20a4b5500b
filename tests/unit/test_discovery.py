"""`server/discover` and `tools/list` (server/discover.mdx; server/tools.mdx)."""

from __future__ import annotations

import pytest
from jsonschema import Draft202012Validator

from tests.unit.stack import REVISION, TASKS, Stack


def test_discover_names_the_revision_and_the_extension(stack: Stack) -> None:
    result = stack.post("server/discover").result
    assert result["supportedVersions"] == [REVISION]
    assert "tools" in result["capabilities"]
    assert "tasks" not in result["capabilities"]
    assert result["instructions"]


def test_the_extension_has_no_settings(stack: Stack) -> None:
    """One client reads any settings but {} as "no tasks"."""
    capabilities = stack.post("server/discover").result["capabilities"]
    assert capabilities["extensions"] == {TASKS: {}}


def test_lists_may_be_cached_by_anyone(stack: Stack) -> None:
    """server/utilities/caching.mdx: they depend on no user."""
    for method in ("server/discover", "tools/list"):
        result = stack.post(method).result
        assert result["cacheScope"] == "public"
        assert result["ttlMs"] > 0


def test_tools_are_listed_by_name_on_one_page(stack: Stack) -> None:
    result = stack.post("tools/list").result
    names = [tool["name"] for tool in result["tools"]]
    assert names == sorted(names)
    assert set(names) >= {"echo", "count", "wait", "review", "orders"}
    assert "nextCursor" not in result


def test_a_list_is_the_same_for_every_client(stack: Stack) -> None:
    """tools.mdx: the list must not vary by connection, and so not by capability either."""
    assert (
        stack.post("tools/list", capabilities={}).result
        == stack.post("tools/list", user_arn="arn:aws:iam::1:user/bob").result
    )


@pytest.mark.parametrize("cursor", ["", "2", 1, {}])
def test_a_cursor_is_unknown(stack: Stack, cursor: object) -> None:
    """server/utilities/pagination.mdx: an invalid cursor is -32602."""
    answer = stack.post("tools/list", {"cursor": cursor})
    assert (answer.status, answer.code) == (400, -32602)


def test_a_null_cursor_is_the_first_page(stack: Stack) -> None:
    assert stack.post("tools/list", {"cursor": None}).status == 200


def test_every_schema_is_a_json_schema(stack: Stack) -> None:
    """tools.mdx: valid under 2020-12, and an object at the root of what is passed."""
    for tool in stack.post("tools/list").result["tools"]:
        Draft202012Validator.check_schema(tool["inputSchema"])
        assert tool["inputSchema"]["type"] == "object"
        assert tool["inputSchema"]["additionalProperties"] is False
        if "outputSchema" in tool:
            Draft202012Validator.check_schema(tool["outputSchema"])


def test_an_answer_is_not_changed_by_the_one_before(stack: Stack) -> None:
    assert stack.post("tools/list").result == stack.post("tools/list").result
    assert stack.post("server/discover").result == stack.post("server/discover").result
