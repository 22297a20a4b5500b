"""Headers that mirror the body (streamable-http.mdx, "Request Metadata"; SEP-2243)."""

from __future__ import annotations

import base64
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_tasks.protocol.errors import ErrorCode, ProtocolError
from mcp_tasks.protocol.headers import (
    Headers,
    MirroredParameter,
    check_mirrored_arguments,
    decode_header,
    mirrored_parameters,
)
from tests.unit.support.stack import Stack

MISMATCH: Final = -32020
UNKNOWN_ID: Final = f"c1-{'0' * 32}"


def encoded(text: str) -> str:
    """The Base64 sentinel of a value that a header cannot carry."""
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


# Mcp-Name


@pytest.mark.parametrize(
    "name",
    [
        None,
        "",
        "Echo",
        "ECHO",
        "echo2",
        "echo,echo",
        ["echo", "echo"],
        ["echo", "other"],
        encoded("other"),
        "=?base64?ZWNobw?=",
        "=?base64?!!!!?=",
        "=?base64?ZWNo!bw==?=",
        "=?base64?/w==?=",
        "ec\x00ho",
        "échо",
    ],
)
def test_a_call_whose_name_header_is_missing_or_differs_is_refused(
    stack: Stack, name: str | list[str] | None
) -> None:
    answer = stack.call("echo", {"text": "a"}, headers={"Mcp-Name": name})
    assert (answer.status, answer.code) == (400, MISMATCH)
    assert "mcp-name" in answer.error["message"].lower()


@pytest.mark.parametrize("name", ["echo", " echo\t", encoded("echo")])
def test_a_call_whose_name_header_agrees_is_answered(stack: Stack, name: str) -> None:
    answer = stack.call("echo", {"text": "a"}, headers={"Mcp-Name": name})
    assert answer.result["content"][0]["text"] == "a"


def test_names_of_headers_have_no_case_and_their_values_have(stack: Stack) -> None:
    assert (
        stack.call("echo", {"text": "a"}, headers={"Mcp-Name": None, "MCP-NAME": "echo"}).status
        == 200
    )
    twice = stack.call("echo", {"text": "a"}, headers={"mcp-name": "echo"})
    assert twice.code == MISMATCH, "the same header in two spellings came twice"
    assert stack.call("echo", {"text": "a"}, headers={"Mcp-Name": "eCHO"}).code == MISMATCH


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
def test_a_task_method_without_a_name_header_is_tolerated(stack: Stack, method: str) -> None:
    """tasks.md makes it the client's MUST; a widely used client omits it; nothing is misrouted."""
    task_id = stack.created("count", {"upto": 1})
    params = {"taskId": task_id, "inputResponses": {}}
    assert stack.post(method, params, headers={"Mcp-Name": None}).status == 200


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
@pytest.mark.parametrize("name", ["", UNKNOWN_ID, "c1", [UNKNOWN_ID, UNKNOWN_ID], encoded("c1")])
def test_a_task_method_whose_name_header_differs_is_refused(
    stack: Stack, method: str, name: str | list[str]
) -> None:
    task_id = stack.created("count", {"upto": 1})
    stack.calls.forget()
    params = {"taskId": task_id, "inputResponses": {}}
    answer = stack.post(method, params, headers={"Mcp-Name": name})
    assert (answer.status, answer.code) == (400, MISMATCH)
    assert stack.calls.made == []


def test_a_task_method_whose_name_header_is_encoded_is_answered(stack: Stack) -> None:
    task_id = stack.created("count", {"upto": 1})
    headers: dict[str, Any] = {"Mcp-Name": encoded(task_id)}
    assert stack.post("tasks/get", {"taskId": task_id}, headers=headers).status == 200


# Mcp-Param-*


@pytest.mark.parametrize(
    ("arguments", "headers"),
    [
        ({}, {}),
        ({"region": "eu"}, {"Mcp-Param-Region": "eu"}),
        ({"region": "eu"}, {"mcp-param-REGION": "eu"}),
        ({"region": ""}, {"Mcp-Param-Region": ""}),
        ({"region": "ключ"}, {"Mcp-Param-Region": encoded("ключ")}),
        ({"region": " eu "}, {"Mcp-Param-Region": encoded(" eu ")}),
        ({"region": encoded("eu")}, {"Mcp-Param-Region": encoded(encoded("eu"))}),
        ({"shard": 42}, {"Mcp-Param-Shard": "42"}),
        ({"shard": 42}, {"Mcp-Param-Shard": "42.0"}),
        ({"shard": -7}, {"Mcp-Param-Shard": "-7"}),
        ({"shard": 2**53 - 1}, {"Mcp-Param-Shard": str(2**53 - 1)}),
        ({"dry": True}, {"Mcp-Param-Dry-Run": "true"}),
        ({"dry": False}, {"Mcp-Param-Dry-Run": "false"}),
        ({"region": "eu"}, {"Mcp-Param-Region": "eu", "Mcp-Param-Other": "ignored"}),
    ],
)
def test_a_mirrored_parameter_that_agrees_is_accepted(
    stack: Stack, arguments: dict[str, Any], headers: dict[str, str]
) -> None:
    result = stack.call("routed", arguments, headers=dict(headers)).result
    assert result.get("isError") is None, result


@pytest.mark.parametrize(
    ("arguments", "headers"),
    [
        ({"region": "eu"}, {}),
        ({"region": "eu"}, {"Mcp-Param-Region": "EU"}),
        ({"region": "eu"}, {"Mcp-Param-Region": "us"}),
        ({"region": "eu"}, {"Mcp-Param-Region": ["eu", "us"]}),
        ({"region": "eu"}, {"Mcp-Param-Region": encoded("us")}),
        ({"region": "eu"}, {"Mcp-Param-Region": "=?base64?%%?="}),
        ({"region": "ключ"}, {"Mcp-Param-Region": "ключ"}),
        ({}, {"Mcp-Param-Region": "eu"}),
        ({"region": None}, {"Mcp-Param-Region": "eu"}),
        ({"region": None}, {"Mcp-Param-Region": "null"}),
        ({"shard": 42}, {}),
        ({"shard": 42}, {"Mcp-Param-Shard": "43"}),
        ({"shard": 42}, {"Mcp-Param-Shard": "42.5"}),
        ({"shard": 42}, {"Mcp-Param-Shard": "4_2"}),
        ({"shard": 42}, {"Mcp-Param-Shard": "4.2e1"}),
        ({"shard": 42}, {"Mcp-Param-Shard": "٤٢"}),
        ({"shard": 1}, {"Mcp-Param-Shard": "true"}),
        ({"shard": True}, {"Mcp-Param-Shard": "1"}),
        ({"dry": True}, {"Mcp-Param-Dry-Run": "True"}),
        ({"dry": True}, {"Mcp-Param-Dry-Run": "1"}),
        ({"region": ["eu"]}, {"Mcp-Param-Region": "eu"}),
    ],
)
def test_a_mirrored_parameter_that_is_missing_or_differs_is_refused(
    stack: Stack, arguments: dict[str, Any], headers: dict[str, str | list[str]]
) -> None:
    answer = stack.call("routed", arguments, headers=dict(headers))
    assert (answer.status, answer.code) == (400, MISMATCH)
    assert "Mcp-Param-" in answer.error["message"]


def test_a_null_argument_has_no_header(stack: Stack) -> None:
    """It goes on to the tool's schema, which may refuse it for its own reason."""
    answer = stack.call("routed", {"region": None})
    assert answer.result["isError"] is True
    assert "region" in answer.result["content"][0]["text"]


def test_a_nested_parameter_is_found_through_properties() -> None:
    inner = {"type": "string", "x-mcp-header": "Tenant"}
    schema = {"properties": {"who": {"type": "object", "properties": {"tenant": inner}}}}
    mirrored = mirrored_parameters(schema)
    assert mirrored == [MirroredParameter("Tenant", ("who", "tenant"), "string")]
    check_mirrored_arguments(
        mirrored, {"who": {"tenant": "a"}}, Headers({"Mcp-Param-Tenant": ["a"]})
    )
    absents: list[dict[str, Any]] = [{}, {"who": None}, {"who": "a"}, {"who": {}}]
    for absent in absents:
        check_mirrored_arguments(mirrored, absent, Headers({}))
    with pytest.raises(ProtocolError) as caught:
        check_mirrored_arguments(mirrored, {"who": {"tenant": "a"}}, Headers({}))
    assert caught.value.code is ErrorCode.HEADER_MISMATCH


@pytest.mark.parametrize(
    ("properties", "says"),
    [
        ({"a": {"type": "string", "x-mcp-header": ""}}, "HTTP token"),
        ({"a": {"type": "string", "x-mcp-header": "two words"}}, "HTTP token"),
        ({"a": {"type": "string", "x-mcp-header": "a\r\nb"}}, "HTTP token"),
        ({"a": {"type": "string", "x-mcp-header": "a\n"}}, "HTTP token"),
        ({"a": {"type": "string", "x-mcp-header": "ключ"}}, "HTTP token"),
        ({"a": {"type": "string", "x-mcp-header": 1}}, "HTTP token"),
        ({"a": {"type": "number", "x-mcp-header": "A"}}, "string, integer or boolean"),
        ({"a": {"type": "object", "x-mcp-header": "A"}}, "string, integer or boolean"),
        ({"a": {"type": ["string", "null"], "x-mcp-header": "A"}}, "string, integer or boolean"),
        ({"a": {"anyOf": [{"type": "string"}], "x-mcp-header": "A"}}, "string, integer or boolean"),
        (
            {
                "a": {"type": "string", "x-mcp-header": "Same"},
                "b": {"type": "string", "x-mcp-header": "SAME"},
            },
            "twice",
        ),
    ],
)
def test_an_annotation_that_clients_must_refuse_is_refused_first(
    properties: dict[str, Any], says: str
) -> None:
    """tools.mdx, "x-mcp-header": clients drop a tool that has one of these."""
    with pytest.raises(ValueError, match=says):
        mirrored_parameters({"type": "object", "properties": properties})


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"items": {"type": "string", "x-mcp-header": "A"}}}},
        {"properties": {"a": {"anyOf": [{"type": "string", "x-mcp-header": "A"}]}}},
        {"$defs": {"Who": {"properties": {"a": {"type": "string", "x-mcp-header": "A"}}}}},
    ],
    ids=["items", "anyOf", "$defs"],
)
def test_an_annotation_that_is_not_statically_reachable_is_refused(schema: dict[str, Any]) -> None:
    """streamable-http.mdx: through `properties` alone; clients drop a tool that has others."""
    with pytest.raises(ValueError, match="x-mcp-header"):
        mirrored_parameters(schema)


def test_a_parameter_that_is_called_like_the_annotation_is_no_annotation() -> None:
    schema = {"properties": {"x-mcp-header": {"type": "string"}, "a": {"const": {"properties": 1}}}}
    assert mirrored_parameters(schema) == []


# decoding


@given(st.text())
def test_every_text_survives_the_sentinel(text: str) -> None:
    assert decode_header(encoded(text), "Mcp-Name") == text


@given(st.text(alphabet=st.characters(min_codepoint=0x20, max_codepoint=0x7E)))
def test_plain_text_is_what_it_is(text: str) -> None:
    if not text.startswith("=?base64?"):
        assert decode_header(text, "Mcp-Name") == text


@given(
    st.characters(exclude_characters="\t", max_codepoint=0x1F) | st.characters(min_codepoint=127)
)
def test_characters_that_no_header_can_carry_are_refused(character: str) -> None:
    with pytest.raises(ProtocolError, match="characters"):
        decode_header(f"a{character}b", "Mcp-Name")
