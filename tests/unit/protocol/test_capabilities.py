"""What a client says it can be asked for (client/elicitation.mdx, sampling.mdx, roots.mdx)."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_tasks.protocol.capabilities import askable, required_capabilities


@pytest.mark.parametrize(
    ("capabilities", "can"),
    [
        ({}, set()),
        # "An empty capabilities object is equivalent to declaring support for form mode only".
        ({"elicitation": {}}, {"form"}),
        ({"elicitation": {"form": {}}}, {"form"}),
        ({"elicitation": {"url": {}}}, {"url"}),
        ({"elicitation": {"form": {}, "url": {}}}, {"form", "url"}),
        ({"elicitation": {"form": {"later": True}}}, {"form"}),
        ({"sampling": {}}, {"sampling"}),
        ({"sampling": {"tools": {}}}, {"sampling"}),
        ({"roots": {}}, {"roots"}),
        ({"roots": {"listChanged": True}}, {"roots"}),
        (
            {"elicitation": {"url": {}}, "sampling": {}, "roots": {}, "extensions": {}},
            {"url", "sampling", "roots"},
        ),
    ],
)
def test_a_client_can_be_asked_for_what_it_declares(
    capabilities: dict[str, Any], can: set[str]
) -> None:
    assert askable(capabilities) == can


@pytest.mark.parametrize(
    "capabilities",
    [
        {"elicitation": True},
        {"elicitation": None},
        {"elicitation": []},
        {"elicitation": {"form": True}},
        {"elicitation": {"url": None}},
        {"elicitation": {"voice": {}}},
        {"sampling": True},
        {"sampling": None},
        {"roots": "yes"},
        {"roots": []},
        {"Sampling": {}},
        {"form": {}, "url": {}},
    ],
)
def test_what_is_not_declared_as_an_object_is_not_declared(capabilities: dict[str, Any]) -> None:
    assert askable(capabilities) == set()


@pytest.mark.parametrize(
    ("kinds", "capabilities"),
    [
        ([], {}),
        (["form"], {"elicitation": {"form": {}}}),
        (["url"], {"elicitation": {"url": {}}}),
        (["url", "form"], {"elicitation": {"form": {}, "url": {}}}),
        (["sampling"], {"sampling": {}}),
        (["roots"], {"roots": {}}),
        (
            ["sampling", "url", "roots"],
            {"elicitation": {"url": {}}, "roots": {}, "sampling": {}},
        ),
    ],
)
def test_what_a_client_must_declare_is_what_makes_it_askable(
    kinds: list[str], capabilities: dict[str, Any]
) -> None:
    assert required_capabilities(kinds) == capabilities
    assert askable(required_capabilities(kinds)) == set(kinds)
