"""`resources/*` as a client sees them (server/resources.mdx)."""

from __future__ import annotations

import base64
import json
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp_tasks.server.methods.resources import MAX_URI_CHARACTERS
from tests.unit.support.aws import Calls
from tests.unit.support.stack import Answer, Stack
from tests.unit.support.whole import whole_stack

INVALID_PARAMS: Final = -32602
INTERNAL: Final = -32603
SECRET: Final = "hunter2"


@pytest.fixture
def server(aws: Calls) -> Stack:
    return whole_stack(aws)


def read(server: Stack, uri: Any) -> Answer:
    encoded = f"=?base64?{base64.b64encode(str(uri).encode()).decode()}?="
    return server.post("resources/read", {"uri": uri}, headers={"Mcp-Name": encoded})


def test_resources_and_templates_are_listed_apart_in_the_order_of_their_uris(
    server: Stack,
) -> None:
    resources = server.post("resources/list").result["resources"]
    templates = server.post("resources/templates/list").result["resourceTemplates"]
    assert [entry["uri"] for entry in resources] == ["docs://all", "docs://handbook", "docs://logo"]
    assert [entry["uriTemplate"] for entry in templates] == [
        "broken://{how}",
        "docs://{language}/{page}",
        "files://{disk}/{+path}",
        "trips://quiet/{name}",
        "trips://{name}",
    ]


def test_a_resource_is_listed_as_it_was_declared(server: Stack) -> None:
    listed = {entry["uri"]: entry for entry in server.post("resources/list").result["resources"]}
    assert listed["docs://handbook"] == {
        "uri": "docs://handbook",
        "name": "handbook",
        "title": "The handbook",
        "description": "All of it.",
        "mimeType": "text/plain",
        "annotations": {"audience": ["user"]},
        "icons": [{"src": "https://example.com/book.png"}],
        "_meta": {"example.com/group": "docs"},
    }


@pytest.mark.parametrize("method", ["resources/list", "resources/templates/list"])
def test_a_list_may_be_cached_by_everybody(server: Stack, method: str) -> None:
    result = server.post(method).result
    assert result["ttlMs"] > 0
    assert result["cacheScope"] == "public"
    assert "nextCursor" not in result


@pytest.mark.parametrize("method", ["resources/list", "resources/templates/list"])
@pytest.mark.parametrize("cursor", ["", "abc", 5, [], {}, False])
def test_an_invalid_cursor_is_refused(server: Stack, method: str, cursor: Any) -> None:
    refused = server.post(method, {"cursor": cursor})
    assert (refused.status, refused.code) == (400, INVALID_PARAMS)


@pytest.mark.parametrize(
    ("uri", "contents"),
    [
        ("docs://handbook", [{"mimeType": "text/plain", "text": "All of the handbook"}]),
        (
            "docs://logo",
            [{"mimeType": "image/png", "blob": base64.b64encode(b"\x89PNG\xff").decode()}],
        ),
        (
            "docs://de/7",
            [{"mimeType": "application/json", "text": '{"language": "de", "page": 7}'}],
        ),
        ("files://c/a/b.txt", [{"text": "c: a/b.txt"}]),
        ("files://c/a%20b?x#y", [{"text": "c: a b?x#y"}]),
        (
            "docs://all",
            [
                {"uri": "docs://a", "text": "a"},
                {"uri": "docs://b", "blob": base64.b64encode(b"b").decode()},
            ],
        ),
    ],
)
def test_a_resource_is_read_by_its_uri(
    server: Stack, uri: str, contents: list[dict[str, Any]]
) -> None:
    result = read(server, uri).result
    assert result["contents"] == [{"uri": uri, **content} for content in contents]
    assert result["resultType"] == "complete"


@pytest.mark.parametrize(
    ("uri", "fresh_ms", "scope"),
    [("docs://handbook", 60_000, "public"), ("docs://logo", 0, "private")],
)
def test_a_reading_may_be_kept_as_long_as_its_author_says(
    server: Stack, uri: str, fresh_ms: int, scope: str
) -> None:
    result = read(server, uri).result
    assert (result["ttlMs"], result["cacheScope"]) == (fresh_ms, scope)


@pytest.mark.parametrize(
    "uri",
    [
        "docs://missing",
        "docs://handbook/",
        "DOCS://handbook",
        "docs://xx/1",  # the function says that there is none
        "docs://de/one",  # no page number
        "files://e/a",  # not one of the choices
        "broken://",
        "",
        "not a uri",
        "docs://{language}/{page}",  # a template is not what it describes
        "trips://" + "a" * MAX_URI_CHARACTERS,
    ],
)
def test_what_there_is_not_is_refused_with_its_uri(server: Stack, uri: str) -> None:
    """resources.mdx, "Error Handling": never empty contents."""
    refused = read(server, uri)
    assert (refused.status, refused.code) == (400, INVALID_PARAMS)
    assert refused.error["message"] == "Resource not found"
    assert refused.error["data"] == {"uri": uri[:MAX_URI_CHARACTERS]}


def test_a_long_uri_is_not_repeated_as_a_whole(server: Stack) -> None:
    """JSON writes an emoji with twelve characters."""
    uri = "missing://" + "\N{EARTH GLOBE EUROPE-AFRICA}" * 2000
    refused = read(server, uri)
    assert uri.startswith(refused.error["data"]["uri"])
    assert len(json.dumps(refused.message)) < 8 * 1024


def test_a_uri_is_read_up_to_its_longest(server: Stack) -> None:
    longest = "trips://quiet/" + "a" * (MAX_URI_CHARACTERS - len("trips://quiet/"))
    assert "contents" in read(server, longest).result
    assert read(server, longest + "a").code == INVALID_PARAMS


@pytest.mark.parametrize("uri", [None, 5, ["docs://handbook"], {}, True])
def test_a_uri_that_is_no_string_is_refused(server: Stack, uri: Any) -> None:
    refused = server.post("resources/read", {"uri": uri}, headers={"Mcp-Name": "docs://handbook"})
    assert (refused.status, refused.code) == (400, INVALID_PARAMS)


def test_a_uri_is_required(server: Stack) -> None:
    refused = server.post("resources/read", {}, headers={"Mcp-Name": "docs://handbook"})
    assert (refused.status, refused.code) == (400, INVALID_PARAMS)


@pytest.mark.parametrize("header", [None, "docs://logo", "DOCS://handbook"])
def test_the_header_repeats_the_uri(server: Stack, header: str | None) -> None:
    """streamable-http.mdx, "Request Metadata"."""
    headers: dict[str, Any] = {"Mcp-Name": header}
    refused = server.post("resources/read", {"uri": "docs://handbook"}, headers=headers)
    assert (refused.status, refused.code) == (400, -32020)


@pytest.mark.parametrize(("how", "error"), [(SECRET, "KeyError"), ("nan", "ValueError")])
def test_a_crash_says_nothing_of_why(server: Stack, how: str, error: str) -> None:
    crashed = read(server, f"broken://{how}")
    assert (crashed.status, crashed.code) == (500, INTERNAL)
    reference = crashed.error["data"]["reference"]
    said = f"The resource failed: {error}"
    assert crashed.error["message"] == f"{said} (reference {reference})"
    assert SECRET not in json.dumps(crashed.message)


def test_a_resource_may_say_itself_why_it_cannot_be_read(server: Stack) -> None:
    refused = read(server, "broken://tool")
    assert (refused.status, refused.code) == (400, INVALID_PARAMS)
    assert refused.error["message"] == "This one is being written"


def test_a_reading_may_report_progress(server: Stack) -> None:
    params = {"uri": "docs://de/1", "_meta": {"progressToken": "token"}}
    (progress,) = server.post("resources/read", params).notifications
    assert progress["params"]["progressToken"] == "token"


@pytest.mark.parametrize("method", ["resources/subscribe", "resources/unsubscribe"])
def test_there_are_no_subscriptions(server: Stack, method: str) -> None:
    refused = server.post(method, {"uri": "docs://handbook"})
    assert (refused.status, refused.code) == (404, -32601)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(st.text())
def test_any_uri_is_read_or_refused(server: Stack, uri: str) -> None:
    for each in (uri, f"docs://{uri}", f"files://c/{uri}", f"trips://quiet/{uri}"):
        answer = read(server, each)
        assert answer.status == 200 or answer.code == INVALID_PARAMS
