"""How large and how deep a request may be, and of how many values: HTTP 413 and 400."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.support.limited import Limited, new_id
from tests.unit.support.stack import Answer, Stack, meta, mirrored
from tests.wire import LISTEN

PARSE, INVALID, PARAMS = -32700, -32600, -32602


def sent(stack: Stack, **arguments: Any) -> tuple[str, dict[str, Any]]:
    """A call of `anything`, which takes any argument: its body, and its headers."""
    params = {"name": "anything", "arguments": arguments, "_meta": meta()}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return json.dumps(message), mirrored("tools/call", params)


def values(value: Any) -> int:
    """How many values a value is, and holds."""
    if isinstance(value, dict):
        return 1 + sum(map(values, value.values()))
    return 1 + sum(map(values, value)) if isinstance(value, list) else 1


def nested(levels: int) -> Any:
    """An array of arrays."""
    value: Any = []
    for _ in range(levels - 1):
        value = [value]
    return value


def test_a_body_may_be_as_large_as_the_limit(limited: Limited) -> None:
    """In bytes, whatever the arguments are: HTTP 413."""
    stack = limited.serve()
    body, headers = sent(stack, filling="x" * 1000)
    stack = limited.serve(max_body_bytes=len(body))
    assert stack.send(body, headers, method="tools/call").status == 200
    answer = stack.send(body.replace("xx", "ä", 1) + " ", headers)
    assert (answer.status, answer.code) == (413, INVALID)
    assert f"{len(body)} bytes" in answer.error["message"]
    assert len(stack.rows) == 1


def test_arguments_may_be_as_large_as_the_limit(limited: Limited) -> None:
    """As the execution gets them."""
    stack = limited.serve()
    stack.call("anything", {"filling": "x" * 1000})
    (row,) = stack.rows
    size = len(row["input"]["S"])
    stack = limited.serve(max_argument_bytes=size)
    assert stack.call("anything", {"filling": "x" * 1000}).status == 200
    stack.calls.forget()
    for more in ({"filling": "x" * 1001}, {"filling": "x" * 995 + "ä"}):
        answer = stack.call("anything", more)
        assert (answer.status, answer.code) == (400, PARAMS)
        assert f"{size} bytes" in answer.error["message"]
    assert stack.calls.made == []
    assert stack.call("anything", {"filling": "x" * 1001}, capabilities={}).status == 200


@pytest.mark.parametrize("depth", [10, 100, 200])
def test_a_body_may_be_as_deep_as_the_limit(limited: Limited, depth: int) -> None:
    """The message, its params and their arguments are three levels."""
    stack = limited.serve(max_json_depth=depth)
    body, headers = sent(stack, deep=nested(depth - 3))
    assert stack.send(body, headers, method="tools/call").status == 200
    body, headers = sent(stack, deep=nested(depth - 2))
    answer = stack.send(body, headers)
    assert (answer.status, answer.code) == (400, PARSE)
    assert f"{depth} levels" in answer.error["message"]


@pytest.mark.parametrize(
    "value",
    [1, "a, [b] {c}", [], {}, [[]], {"a": [1, {}]}, '"\\', "[" * 9, [" ,", {"[,": "{,"}], "ä,"],
    ids=str,
)
@pytest.mark.parametrize("indent", [None, 1])
def test_a_body_may_have_as_many_values_as_the_limit(
    limited: Limited, value: Any, indent: int | None
) -> None:
    """Names are no values, and what is in a text is none."""
    stack = limited.serve()
    body, headers = sent(stack, many=[value] * 20)
    body = json.dumps(json.loads(body), indent=indent)
    count = values(json.loads(body))
    stack = limited.serve(max_json_values=count)
    assert stack.send(body, headers, method="tools/call").status == 200
    stack = limited.serve(max_json_values=count - 1)
    answer = stack.send(body, headers)
    assert (answer.status, answer.code) == (400, PARSE)
    assert f"more than {count - 1} JSON values" in answer.error["message"]


@pytest.mark.parametrize(
    "text",
    ['"', '\\"', '"\\', '"\\"', '["a', "[ ", "[],", '{"a":', "\\"],
)
def test_what_is_no_json_is_counted_in_a_moment(limited: Limited, text: str) -> None:
    """Strings that do not end are read once, and not once for each character."""
    stack = limited.serve(max_json_values=1000)
    _, headers = sent(stack)
    answer = stack.send("," * 1001 + text * (900_000 // len(text)), headers)
    assert (answer.status, answer.code) == (400, PARSE)


def test_the_limits_of_a_request_hold_for_each_method(limited: Limited) -> None:
    stack = limited.serve(max_body_bytes=1024)
    methods: dict[str, Callable[[], Answer]] = {
        "tools/list": lambda: stack.post("tools/list", {"filling": "x" * 1024}),
        "tasks/update": lambda: stack.update(new_id(), {"key": "x" * 1024}),
        LISTEN: lambda: stack.listen([new_id()] * 40),
    }
    assert {post().status for post in methods.values()} == {413}
    assert stack.calls.made == []
