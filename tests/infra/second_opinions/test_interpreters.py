"""The deployed state machines, executed by two interpreters that have no code in common: that of
MiniStack, with which all other tests of deployed stacks run, and that of LocalStack.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

import pytest

from tests.infra.second_opinions import programs
from tests.infra.second_opinions.life import Life
from tests.infra.second_opinions.lives import LIVES

INTERPRETERS: Final = ("LocalStack", "MiniStack")
Seen = dict[str, Any]
"""What was seen of an execution (`python/scripted_functions.py`)."""


@pytest.fixture(scope="session")
def seen(ministack: dict[str, Any], lives: list[dict[str, Any]]) -> dict[str, dict[str, Seen]]:
    """What each interpreter made of each life."""
    executed = {
        "LocalStack": programs.python("interpret_localstack.py", lives),
        "MiniStack": ministack["lives"],
    }
    return {name: dict(zip(LIVES, seen, strict=True)) for name, seen in executed.items()}


def _in_order(calls: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The calls, with those that ran side by side sorted: lanes, subtasks and chunks."""
    ordered: list[dict[str, Any]] = []
    side_by_side: list[dict[str, Any]] = []
    for call in calls:
        payload = call["payload"]
        if "lane" in payload or "number" in payload or payload.get("step") == "tally":
            side_by_side.append(call)
            continue
        ordered += sorted(side_by_side, key=json.dumps)
        side_by_side = []
        ordered.append(call)
    return ordered + sorted(side_by_side, key=json.dumps)


def _cause(seen: Seen) -> str | None:
    """What the function said, of a cause that is a function's error; otherwise the cause."""
    cause: str | None = seen["cause"]
    try:
        message: str = json.loads(cause or "")["errorMessage"]
    except ValueError:
        return cause
    return message


@pytest.mark.parametrize("interpreter", INTERPRETERS)
@pytest.mark.parametrize("name", LIVES)
def test_the_outcome_is_what_aws_documents(
    name: str, interpreter: str, seen: dict[str, dict[str, Seen]]
) -> None:
    life, found = LIVES[name], seen[interpreter][name]
    assert found["left"] == []
    _assert_called(life, _in_order(found["calls"]))
    if life.failed:
        assert found["status"] == "FAILED"
        assert (found["error"], _cause(found)) == life.failed
    else:
        assert found["status"] == "SUCCEEDED", found
        assert found["output"] == life.output


def _assert_called(life: Life, calls: list[dict[str, Any]]) -> None:
    assert [call["function"] for call in calls] == [function for function, _ in life.calls]
    for call, (_, expected) in zip(calls, life.calls, strict=True):
        payload = dict(call["payload"])
        if payload.get("crash"):  # a function's error is JSON
            payload["crash"] = payload["crash"] | {"cause": _cause(payload["crash"])}
        assert expected == {key: payload.get(key, "missing") for key in expected}


@pytest.mark.parametrize("name", LIVES)
def test_both_call_the_functions_with_the_same(name: str, seen: dict[str, dict[str, Seen]]) -> None:
    localstack, ministack = (_in_order(seen[one][name]["calls"]) for one in INTERPRETERS)
    assert localstack == ministack
    # Not only equal, as 1 and 1.0 are: the same JSON.
    assert json.dumps(localstack, sort_keys=True) == json.dumps(ministack, sort_keys=True)
