"""Multi round-trip requests over HTTP: functions that ask within the request (mrtr.mdx)."""

from __future__ import annotations

from typing import Any

import pytest

from local.deployment import LocalStack
from tests.integration.support.aws import function_name
from tests.integration.support.client import TASKS, Client, accept
from tests.integration.support.traces import Traces

ASKABLE: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}
POEM = {
    "role": "assistant",
    "model": "a-model",
    "content": {"type": "text", "text": "Roses are red"},
}
ROOTS = {"roots": [{"uri": "file:///home/ada"}]}


@pytest.fixture
def asked(stack: LocalStack) -> Client:
    """A client that declares every kind of question, but not the tasks extension."""
    return Client(stack.url, ASKABLE)


@pytest.fixture
def tasked(stack: LocalStack) -> Client:
    """A client that declares every kind of question and the tasks extension."""
    return Client(stack.url, {**ASKABLE, "extensions": {TASKS: {}}})


def asks(result: dict[str, Any], *keys: str) -> str:
    """Check that a result asks these questions. Returns its `requestState`."""
    assert result["resultType"] == "input_required", result
    assert sorted(result["inputRequests"]) == sorted(keys)
    state: str = result["requestState"]
    return state


def test_a_request_repeated_three_times_ends_with_the_result(asked: Client, traces: Traces) -> None:
    rows, call = traces.rows(), {"name": "survey", "arguments": {"secret": "s3cret"}}
    first = asks(asked.request("tools/call", call).result, "who")
    second = asks(
        asked.request(
            "tools/call",
            {**call, "inputResponses": {"who": accept(name="Ada")}, "requestState": first},
        ).result,
        "sign",
    )
    third = asks(
        asked.request(
            "tools/call",
            {**call, "inputResponses": {"sign": {"action": "accept"}}, "requestState": second},
        ).result,
        "poem",
        "roots",
    )
    assert len({first, second, third}) == 3
    last = asked.request(
        "tools/call",
        {**call, "inputResponses": {"poem": POEM, "roots": ROOTS}, "requestState": third},
    )
    assert last.result["structuredContent"] == ["Ada", "Roses are red", "file:///home/ada"]
    assert traces.rows() == rows


def test_each_repetition_may_reach_another_instance(
    asked: Client, stack: LocalStack, aws: Any
) -> None:
    """No instance keeps state: the key that seals `requestState` is the deployment's."""
    call = {"name": "survey", "arguments": {}}
    state = asks(asked.request("tools/call", call).result, "who")
    functions = aws("lambda")
    api = function_name(stack, functions, "Api")
    environment = functions.get_function_configuration(FunctionName=api)["Environment"]
    variables = {**environment["Variables"], "RESTARTED": state[:8]}
    # Lambda starts new instances after a change of the configuration.
    functions.update_function_configuration(FunctionName=api, Environment={"Variables": variables})
    given = {"inputResponses": {"who": accept(name="Ada")}, "requestState": state}
    asks(asked.request("tools/call", {**call, **given}).result, "sign")


def test_a_coroutine_asks_within_its_request(asked: Client) -> None:
    call = {"name": "await_choice", "arguments": {}}
    state = asks(asked.request("tools/call", call).result, "answer")
    answer = accept(name="Ada", colour="red")
    given = {"inputResponses": {"answer": answer}, "requestState": state}
    result = asked.request("tools/call", {**call, **given}).result
    assert result["structuredContent"]["name"] == "Ada"


def test_a_request_state_is_valid_for_its_own_request_only(asked: Client) -> None:
    state = asks(asked.call("survey").result, "who")
    given = {"inputResponses": {"who": accept(name="Ada")}}
    others = [
        {"name": "survey", "arguments": {"secret": "x"}, "requestState": state},
        {"name": "narrate", "arguments": {"steps": 1}, "requestState": state},
        {"name": "survey", "arguments": {}, "requestState": state[:-4] + "AAAA"},
        {"name": "survey", "arguments": {}, "requestState": ""},
    ]
    # `narrate` asks nothing and reads no answer. A `requestState` for it is refused, too.
    errors = [asked.request("tools/call", {**other, **given}).error for other in others]
    assert {error["code"] for error in errors} == {-32602}
    assert len({error["message"] for error in errors}) == 1


def test_the_error_names_the_capability_that_a_client_lacks(plain_client: Client) -> None:
    error = plain_client.call("survey").error
    assert error["code"] == -32021
    assert error["data"] == {"requiredCapabilities": {"elicitation": {"form": {}}}}


def test_prompts_and_resources_ask_too(asked: Client) -> None:
    given = {"inputResponses": {"who": accept(name="Ada")}}
    prompt = {"name": "personal"}
    state = asks(asked.request("prompts/get", prompt).result, "who")
    result = asked.request("prompts/get", {**prompt, **given, "requestState": state}).result
    assert result["messages"][0]["content"]["text"] == "Write a poem about Ada"
    resource = {"uri": "note://guarded"}
    state = asks(asked.request("resources/read", resource).result, "who")
    result = asked.request("resources/read", {**resource, **given, "requestState": state}).result
    assert result["contents"][0]["text"] == "a note for Ada"
    # caching.mdx: results that depend on answers must not be cached.
    assert (result["ttlMs"], result["cacheScope"]) == (0, "private")


def test_the_same_function_asks_as_a_task(tasked: Client) -> None:
    task_id = tasked.start("survey")
    (key,) = tasked.until_asked(task_id, "who").values()
    tasked.update(task_id, {key: accept(name="Ada")})
    page = tasked.until(task_id, lambda t: any("sign" in k for k in t.get("inputRequests", {})))
    ((key, request),) = page["inputRequests"].items()
    assert request["params"]["mode"] == "url"
    tasked.update(task_id, {key: {"action": "accept"}})
    keys = tasked.until_asked(task_id, "poem", "roots")
    # A malformed answer is refused, and the question stays open.
    assert tasked.update(task_id, {keys["poem"]: {"role": "assistant"}}).error["code"] == -32602
    tasked.update(task_id, {keys["poem"]: POEM, keys["roots"]: ROOTS})
    result = tasked.end(task_id)["result"]
    assert result["structuredContent"] == ["Ada", "Roses are red", "file:///home/ada"]


def test_a_task_knows_its_clients_capabilities(tasked: Client) -> None:
    result = tasked.end(tasked.start("whoami"))["result"]
    assert result["structuredContent"] == {"can": ["form", "roots", "sampling", "url"]}


def test_a_question_that_the_client_did_not_declare_fails_the_task(client: Client) -> None:
    """The client declares forms only: the second question is a URL."""
    task_id = client.start("survey")
    (key,) = client.until_asked(task_id, "who").values()
    client.update(task_id, {key: accept(name="Ada")})
    error = client.end(task_id)["error"]
    assert error["code"] == -32021
    assert error["data"] == {"requiredCapabilities": {"elicitation": {"url": {}}}}


def test_questions_before_the_task_are_answered_within_the_request(
    tasked: Client, traces: Traces
) -> None:
    rows, call = traces.rows(), {"name": "book", "arguments": {"greeting": "Welcome"}}
    state = asks(tasked.request("tools/call", call).result, "who")
    assert traces.rows() == rows
    given = {"inputResponses": {"who": accept(name="Ada")}, "requestState": state}
    created = tasked.request("tools/call", {**call, **given}).result
    assert created["resultType"] == "task"
    assert "requestState" not in created
    task_id = created["taskId"]
    (key,) = tasked.until_asked(task_id, "size").values()
    tasked.update(task_id, {key: accept(size="large")})
    assert tasked.end(task_id)["result"]["content"][0]["text"] == "Ada gets a large one"


def test_a_decline_before_the_task_creates_no_task(tasked: Client, traces: Traces) -> None:
    rows, call = traces.rows(), {"name": "book", "arguments": {"greeting": "Welcome"}}
    state = asks(tasked.request("tools/call", call).result, "who")
    given = {"inputResponses": {"who": {"action": "decline"}}, "requestState": state}
    assert tasked.request("tools/call", {**call, **given}).result["isError"] is True
    assert traces.rows() == rows
