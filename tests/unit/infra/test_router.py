"""The router that stands in for API Gateway's, by the developer guide's own examples.

Source: "Routing rules to connect API stages to a custom domain name for REST APIs", and "Examples
of how API Gateway evaluates routing rules", example 1.
"""

from __future__ import annotations

import http.client
from collections.abc import Mapping
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.integration.support.router import RULE, Domain, Router, rules_of

APIS = {name: f"http://{name.lower()}.example" for name in ("One", "Two", "Three")}


def header(name: str, glob: str) -> dict[str, Any]:
    """A condition on a header."""
    return {"MatchHeaders": {"AnyOf": [{"Header": name, "ValueGlob": glob}]}}


def rule(priority: int, api: str, *conditions: dict[str, Any]) -> dict[str, Any]:
    """A rule as a template has it."""
    action = {"InvokeApi": {"ApiId": {"Ref": api}, "Stage": {"Ref": f"{api}Stage"}}}
    properties = {"Priority": priority, "Actions": [action], "Conditions": list(conditions)}
    return {"Type": RULE, "Properties": properties}


def domain(*rules: dict[str, Any]) -> Domain:
    """A domain with the rules of one template, which has other resources, too."""
    resources = {f"Rule{number}": rule for number, rule in enumerate(rules)}
    other = {"Type": "AWS::ApiGateway::RestApi", "Properties": {}}
    return Domain(rules_of({"Resources": {**resources, "One": other}}, APIS))


PETS = domain(
    rule(100, "Three"),
    rule(50, "Two", header("Accept", "image/webp"), header("Pet", "Dog-*")),
    rule(10, "One", header("Hello", "World")),
)


@pytest.mark.parametrize(
    ("headers", "api"),
    [
        ({"Hello": "World"}, "One"),
        ({"hello": "World"}, "One"),
        ({"HELLO": "World"}, "One"),
        ({"Hello": "world"}, "Three"),
        ({"Hello": "World!"}, "Three"),
        ({"Hello": "World", "Pet": "Dog-Bella", "Accept": "image/webp"}, "One"),
        ({"Pet": "Dog-Bella", "Accept": "image/webp"}, "Two"),
        ({"pet": "Dog-", "accept": "image/webp"}, "Two"),
        ({"Pet": "dog-Bella", "Accept": "image/webp"}, "Three"),
        ({"Pet": "Dog-Bella"}, "Three"),
        ({"Accept": "image/webp"}, "Three"),
        ({}, "Three"),
    ],
    ids=str,
)
def test_the_first_rule_whose_conditions_all_match_is_taken(
    headers: Mapping[str, str], api: str
) -> None:
    assert PETS.api(headers) == APIS[api]


@pytest.mark.parametrize(
    ("glob", "matching", "others"),
    [
        ("a*", ["a", "alpha"], ["A", "beta", ""]),
        ("*a", ["a", "alpha"], ["account", "A"]),
        ("*v*", ["v", "development", "dev"], ["V", "test"]),
        ("*", ["", "anything"], []),
        ("a?", ["a?"], ["ab", "a"]),
        ("a.c", ["a.c"], ["abc"]),
        ("[ab]", ["[ab]"], ["a"]),
    ],
)
def test_only_the_star_is_a_wildcard(glob: str, matching: list[str], others: list[str]) -> None:
    version = domain(rule(1, "One", header("x-version", glob)))
    assert [version.api({"X-Version": value}) for value in matching] == [APIS["One"]] * len(
        matching
    )
    assert [version.api({"X-Version": value}) for value in others] == [None] * len(others)
    assert version.api({}) is None


def test_any_of_a_condition_s_headers_is_enough() -> None:
    first, second = header("A", "1"), header("B", "2")
    first["MatchHeaders"]["AnyOf"] += second["MatchHeaders"]["AnyOf"]
    either = domain(rule(1, "One", first))
    assert either.api({"A": "1"}) == either.api({"B": "2"}) == APIS["One"]
    assert either.api({"A": "2", "B": "1"}) is None


@pytest.mark.parametrize(
    "rules",
    [
        [rule(7, "One"), rule(7, "Two", header("A", "1"))],
        [rule(0, "One")],
        [rule(1_000_001, "One")],
        [rule(1, "One", {"MatchBasePaths": {"AnyOf": ["pets"]}})],
        [rule(1, "One", header("A", "a*c"))],
    ],
    ids=["the same priority", "no priority", "too late", "a path", "a star within"],
)
def test_what_api_gateway_or_this_router_does_not_take_is_refused(
    rules: list[dict[str, Any]],
) -> None:
    with pytest.raises(ValueError, match=r"priorit|headers only|wildcards"):
        domain(*rules)


def test_a_request_that_no_rule_matches_is_forbidden() -> None:
    with Router(domain()) as router:
        parts = urlsplit(router.url)
        with closing(http.client.HTTPConnection(parts.netloc, timeout=10)) as connection:
            connection.request("POST", parts.path, b"{}")
            with connection.getresponse() as response:
                assert (response.status, response.read()) == (403, b'{"message":"Forbidden"}')
