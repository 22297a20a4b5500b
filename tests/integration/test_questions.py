"""A task's questions and their answers (tasks.md, "Task Update Requests")."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from local.deployment import LocalStack
from tests.integration.support.client import TASKS, Client, accept
from tests.integration.support.traces import Traces


def test_questions_are_answered_one_by_one_and_in_any_order(client: Client) -> None:
    task_id = client.start("ask_three")
    keys = client.until_asked(task_id, "a", "b")
    client.update(task_id, {keys["b"]: accept(yes=False)})
    task = client.get(task_id)
    assert task["status"] == "input_required"
    assert set(task["inputRequests"]) == {keys["a"]}
    client.update(task_id, {keys["a"]: accept(yes=True)})
    third = client.until_asked(task_id, "c")["c"]
    assert third not in keys.values()
    client.update(task_id, {third: accept(yes=True)})
    assert client.end(task_id)["result"]["content"][0]["text"] == "True False True"


def test_a_coroutine_asks(client: Client) -> None:
    task_id = client.start("await_choice")
    key = client.until_asked(task_id, "answer")["answer"]
    client.update(task_id, {key: accept(name="Ada", colour="red")})
    assert client.end(task_id)["result"]["structuredContent"]["name"] == "Ada"


def test_a_declined_question_reaches_the_tool(client: Client) -> None:
    task_id = client.start("ask_three")
    keys = client.until_asked(task_id, "a", "b")
    client.update(task_id, {key: accept(yes=True) for key in keys.values()})
    third = client.until_asked(task_id, "c")["c"]
    client.update(task_id, {third: {"action": "decline"}})
    assert client.end(task_id)["result"]["content"][0]["text"] == "True True decline"


def test_a_decline_that_the_tool_does_not_handle_is_a_tool_error(client: Client) -> None:
    task_id = client.start("ask_choice")
    key = client.until_asked(task_id, "answer")["answer"]
    client.update(task_id, {key: {"action": "cancel"}})
    task = client.end(task_id)
    assert (task["status"], task["result"]["isError"]) == ("completed", True)


def test_unknown_and_answered_keys_are_ignored(client: Client) -> None:
    task_id = client.start("ask_three")
    keys = client.until_asked(task_id, "a", "b")
    client.update(task_id, {"never-issued": accept(yes=True), keys["a"]: accept(yes=True)})
    assert client.update(task_id, {keys["a"]: accept(yes=False)}).status == 200
    client.update(task_id, {keys["b"]: accept(yes=True)})
    third = client.until_asked(task_id, "c")["c"]
    client.update(task_id, {third: accept(yes=True), keys["b"]: accept(yes=False)})
    assert client.end(task_id)["result"]["content"][0]["text"] == "True True True"


@pytest.mark.parametrize(
    ("answer", "names"),
    [
        (accept(name="A", colour="red"), "name"),
        (accept(name="Ada", colour="green"), "colour"),
        (accept(name="Ada", colour="red", count=10), "count"),
        (accept(name="Ada", colour="red", count="2"), "count"),
        (accept(colour="red"), "name"),
        ({"action": "accept"}, "content"),
        ({"action": "perhaps"}, "action"),
        ("yes", "action"),
        (None, "action"),
    ],
)
def test_an_answer_that_breaks_its_schema_is_refused_and_not_stored(
    client: Client, answer: object, names: str
) -> None:
    task_id = client.start("ask_choice")
    key = client.until_asked(task_id, "answer")["answer"]
    refused = client.update(task_id, {key: answer})
    assert (refused.status, refused.error["code"]) == (400, -32602)
    assert names in refused.error["message"]
    assert set(client.get(task_id)["inputRequests"]) == {key}
    client.cancel(task_id)


def test_a_tool_gets_a_form_as_it_was_filled_in(client: Client) -> None:
    task_id = client.start("ask_choice")
    key = client.until_asked(task_id, "answer")["answer"]
    client.update(task_id, {key: accept(name="Ada", colour="blue", count=3)})
    assert client.end(task_id)["result"]["structuredContent"] == {
        "name": "Ada",
        "colour": "blue",
        "count": 3,
        "sure": False,
    }


def test_of_many_answers_to_a_question_one_counts(client: Client) -> None:
    task_id = client.start("ask_three")
    keys = client.until_asked(task_id, "a", "b")
    with ThreadPoolExecutor(8) as pool:
        answers = list(
            pool.map(
                lambda n: client.update(task_id, {keys["ab"[n % 2]]: accept(yes=n < 8)}), range(16)
            )
        )
    assert {answer.status for answer in answers} == {200}
    third = client.until_asked(task_id, "c")["c"]
    client.update(task_id, {third: {"action": "decline"}})
    assert client.end(task_id)["result"]["content"][0]["text"].endswith(" decline")


def test_a_question_that_the_client_cannot_answer_fails_the_task(
    stack: LocalStack, traces: Traces
) -> None:
    """basic/index.mdx: a server must not rely on a capability that was not declared."""
    client = Client(stack.url, {"extensions": {TASKS: {}}})
    task_id = client.start("ask_choice")
    task = client.end(task_id)
    assert task["status"] == "failed"
    assert task["error"]["code"] == -32021
    assert task["error"]["data"]["requiredCapabilities"] == {"elicitation": {"form": {}}}
    traces.until_execution(task_id, "ABORTED")


def test_no_task_token_reaches_the_client(client: Client, traces: Traces) -> None:
    task_id = client.start("ask_choice")
    client.until_asked(task_id, "answer")
    asks = traces.row(task_id)["asks"]["M"]
    token = next(iter(asks.values()))["M"]["token"]["S"]
    assert token not in str(client.get(task_id))
    client.cancel(task_id)
    assert token not in str(traces.row(task_id)), "an ended task needs no token"
