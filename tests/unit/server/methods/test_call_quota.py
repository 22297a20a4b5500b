"""How many calls of one caller run within their requests at a time, as a client meets it."""

from __future__ import annotations

from typing import Any, Final

import pytest

from mcp_tasks.registry.function_tool import FunctionTool
from mcp_tasks.server.methods.call_quota import GRACE_MS, MAX_CALL_MS
from mcp_tasks.tasks.caller_key import caller_key
from mcp_tasks.tasks.quotas import RECHECK_AFTER_MS
from mcp_tasks.tasks.task import ANYONE
from tests.unit.support.aws import CALLERS, real, refusing
from tests.unit.support.limited import Limited, refused
from tests.unit.support.listening import Streamed
from tests.unit.support.stack import WITHIN_THE_REQUEST

BOB: Final = "arn:aws:iam::1:user/bob"


def hold_call(limited: Limited, call_id: str, until: int, principal: str = ANYONE) -> None:
    """A call that another instance of the function answers at the moment."""
    now = limited.time.now
    limited.stack.deployment.quotas.acquire_call(principal, call_id, until, 9, now)


def open_calls() -> dict[str, int]:
    """What stands in a caller's quota of calls, and until when."""
    key = caller_key("calls", ANYONE)
    item = real("dynamodb").get_item(TableName=CALLERS, Key=key).get("Item")
    return {name: int(value["N"]) for name, value in item["open"]["M"].items()} if item else {}


@pytest.mark.parametrize("method", WITHIN_THE_REQUEST)
def test_a_caller_has_so_many_calls_running(limited: Limited, method: str) -> None:
    stack, params = limited.serve(max_open_calls=2), WITHIN_THE_REQUEST[method]
    hold_call(limited, "one", limited.time.now + 30_000)
    assert stack.post(method, params).status == 200
    hold_call(limited, "two", limited.time.now + 30_000)
    assert "2 of your calls" in refused(stack.post(method, params), 1)
    assert stack.post(method, params, user_arn=BOB).status == 200
    assert set(open_calls()) == {"one", "two"}


def test_a_call_is_counted_while_it_runs(limited: Limited, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until its function would be stopped, in case that it dies."""
    seen: list[dict[str, int]] = []
    run = FunctionTool.run

    def watched(*arguments: Any) -> dict[str, Any]:
        seen.append(open_calls())
        return run(*arguments)

    monkeypatch.setattr(FunctionTool, "run", watched)
    stack = limited.serve(max_open_calls=1)
    for _ in range(3):
        stack.call("echo", {"text": "a"})
    assert [list(each.values()) for each in seen] == [
        [limited.time.now + MAX_CALL_MS + GRACE_MS]
    ] * 3
    assert open_calls() == {}


@pytest.mark.parametrize(
    ("tool", "arguments"), [("crash", {"secret": "a"}), ("refuse", {"reason": "a"}), ("nosy", {})]
)
def test_a_call_that_raises_or_asks_frees_its_quota(
    limited: Limited, tool: str, arguments: dict[str, Any]
) -> None:
    stack = limited.serve(max_open_calls=1)
    for _ in range(3):
        assert stack.call(tool, arguments).status != 429
    assert open_calls() == {}


def test_a_call_whose_function_died_is_free_after_its_time(limited: Limited) -> None:
    stack = limited.serve(max_open_calls=1)
    until = limited.time.now + 30_000
    hold_call(limited, "dead", until)
    limited.time.now = until - 1
    refused(stack.call("echo", {"text": "a"}), 1)
    limited.time.now += RECHECK_AFTER_MS
    assert stack.call("echo", {"text": "a"}).status == 200
    assert open_calls() == {}


def test_a_call_is_answered_whose_quota_is_not_released(limited: Limited) -> None:
    def update(**arguments: Any) -> Any:
        if arguments["UpdateExpression"].startswith("REMOVE"):
            return refusing("dynamodb", "InternalServerError")()
        return real("dynamodb").update_item(**arguments)

    stack = limited.serve(max_open_calls=1)
    stack.calls.instead["update_item"] = update
    assert stack.call("echo", {"text": "a"}).status == 200
    assert len(open_calls()) == 1


def test_a_call_whose_quota_cannot_be_acquired_does_not_run(limited: Limited) -> None:
    """Or whoever overloads the item of its quota would have none."""
    stack = limited.serve(max_open_calls=1)
    stack.calls.instead["update_item"] = refusing("dynamodb", "ThrottlingException")
    assert stack.call("echo", {"text": "a"}).status == 503


def test_a_streamed_call_is_counted_until_its_functions_deadline(
    limited: Limited, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    run = FunctionTool.run

    def watched(*arguments: Any) -> dict[str, Any]:
        seen.extend(open_calls().values())
        return run(*arguments)

    monkeypatch.setattr(FunctionTool, "run", watched)
    stack = limited.serve(max_open_calls=1)
    stack.way = way = Streamed(limited.time)
    stack.call("echo", {"text": "a"})
    assert seen == [limited.time.now + way.remaining_ms + GRACE_MS]


def test_when_other_calls_are_always_faster_the_caller_comes_back(
    limited: Limited, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp_tasks.tasks.quotas.MAX_ATTEMPTS", 1)
    refused(limited.serve(max_open_calls=9).call("echo", {"text": "a"}), 1)
