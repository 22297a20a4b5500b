"""No argument, result, answer, message or token in a log, whatever is sent and however it ends; and
none in a row that no longer needs it.

Everything is sent first, each with a string of its own; then all logs are read, and everything that
the stack keeps.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from local.deployment import LocalStack
from local.gateway import Gateway
from tests.integration.support.aws import listed
from tests.integration.support.client import TASKS, Client, accept
from tests.integration.support.issuer import Issuer
from tests.integration.support.leaks import Canaries, Logs
from tests.integration.support.subscriptions import Received, Subscription
from tests.integration.support.traces import Traces

ASKABLE: Final[dict[str, Any]] = {"elicitation": {"form": {}, "url": {}}, "sampling": {}}
WITH_TASKS: Final[dict[str, Any]] = {**ASKABLE, "extensions": {TASKS: {}}}
ENDS: Final = ("result", "error", "crash")
OF_A_STEP: Final = ("a message that no client must see", "The step says no")
"""What steps of tests/integration/tools/broken_flow raise."""
FUNCTIONS: Final = ("Api", "Ask", "Finish", "Publish", "Deliver", "Toolsquote")
"""What log groups of functions are named after."""
DEADLINE: Final = 60


@dataclass
class Pushed:
    """What was sent, and where it may have gone."""

    canaries: Canaries
    logs: Logs
    done: dict[str, str] = field(default_factory=dict)
    """How a task ended -> its id."""
    cancelled: str = ""
    asked: str = ""
    """A task that waits for its next answer."""


@pytest.fixture(scope="module")
def pushed(
    stack: LocalStack, gateway: Gateway, guarded: LocalStack, issuer: Issuer, aws: Any
) -> Iterator[Pushed]:
    """Send it all: through every function, and as much of it as can be wrong."""
    pushed = Pushed(Canaries(), Logs(stack, aws))
    _push_tasks(pushed, Client(stack.url, WITH_TASKS), Client(gateway.url, WITH_TASKS))
    _push_what_runs_within_requests(pushed, Client(stack.url, ASKABLE))
    for url in (stack.url, gateway.url):
        _push_what_is_wrong(pushed, Client(url, WITH_TASKS))
    _push_tokens(pushed, guarded, issuer)
    _wait_for_the_end(pushed)
    yield pushed
    Client(stack.url).cancel(pushed.asked)


def _push_tasks(pushed: Pushed, client: Client, listener: Client) -> None:
    """Followed by a subscription, so that `deliver` and the mailboxes have the changes, too."""
    new, answers = pushed.canaries, {}
    for end in ENDS:
        arguments = {"text": new(f"argument, then {end}"), "end": end}
        pushed.done[end] = client.start("quote", **arguments)
        answers[pushed.done[end]] = accept(name=new(f"answer, then {end}"))
    for task_id in answers:
        client.until_asked(task_id, "name")
    ended = set()

    def answer_and_wait(received: Received) -> bool:
        params = received.message.get("params", {})
        if received.message.get("method") == "notifications/subscriptions/acknowledged":
            for task_id, answer in answers.items():
                (key,) = client.get(task_id)["inputRequests"]
                client.update(task_id, {key: answer})
        elif params.get("status") in ("completed", "failed"):
            ended.add(params["taskId"])
        return len(ended) == len(answers)

    Subscription(listener, list(answers)).run(answer_and_wait)
    for how in ("step_error", "step_crash", "fail_state", "fail_tool_error", "wrong_output"):
        client.end(client.start("broken_flow", how=how))
    pushed.cancelled = client.start("quote", text=new("argument, then cancelled"), end="result")
    (key,) = client.until_asked(pushed.cancelled, "name").values()
    client.update(pushed.cancelled, {"unknown": accept(name=new("answer to nothing"))})
    client.update(pushed.cancelled, {key: accept(name=[new("answer of the wrong type")])})
    client.update(pushed.cancelled, {key: {"action": new("action")}})
    client.cancel(pushed.cancelled)
    pushed.asked = client.start("survey", secret=new("argument of a task that waits"))
    (key,) = client.until_asked(pushed.asked, "who").values()
    client.update(pushed.asked, {key: accept(name=new("answer that was used"))})
    client.until_asked(pushed.asked, "sign")


def _push_what_runs_within_requests(pushed: Pushed, client: Client) -> None:
    new = pushed.canaries
    for end in ENDS:
        client.call("quote_at_once", text=new(f"argument within a request, {end}"), end=end)
        prompt = {"text": new(f"argument of a prompt, {end}"), "end": end}
        client.request("prompts/get", {"name": "quoted_prompt", "arguments": prompt})
    client.request("resources/read", {"uri": f"note://quoted/{new('variable of a resource')}"})
    call = {"name": "survey", "arguments": {"secret": new("argument of a tool that asks")}}
    state = client.request("tools/call", call).result["requestState"]
    answer = {"who": accept(name=new("answer within a request"))}
    again = {**call, "inputResponses": answer, "requestState": state}
    state = client.request("tools/call", again).result["requestState"]
    client.request("tools/call", {**again, "requestState": state[:-4] + new("state")})
    ref = {"type": "ref/prompt", "name": "essay"}
    argument = {"name": "topic", "value": new("what is to be completed")}
    client.request("completion/complete", {"ref": ref, "argument": argument})


def _push_what_is_wrong(pushed: Pushed, client: Client) -> None:
    """What the server refuses, in each of the places where it does."""
    new = pushed.canaries
    for name, malformed in {
        "text": "CANARY",
        "end of a document": '{"jsonrpc": "2.0", "params": "CANARY',
        "string": '"CANARY"',
        "list": '["CANARY"]',
        "depth": "[" * 2000 + '"CANARY"' + "]" * 2000,
        "surrogate": r'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": "CANARY\ud800"}',
        "version": '{"jsonrpc": "CANARY", "id": 1, "method": "ping"}',
        "kind of params": '{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": "CANARY"}',
        "kind of id": '{"jsonrpc": "2.0", "id": ["CANARY"], "method": "ping"}',
        "kind of method": '{"jsonrpc": "2.0", "id": 1, "method": ["CANARY"]}',
    }.items():
        client.send(malformed.replace("CANARY", new(f"malformed body: {name}")).encode())
    client.send(b"\xff" + new("malformed body: not UTF-8").encode())
    call: dict[str, Any] = {"name": "quote_at_once", "arguments": {"text": "", "end": "result"}}
    wrong: dict[str, dict[str, Any]] = {
        "tool": {**call, "name": new("unknown tool")},
        "argument": {**call, "arguments": {new("name of an argument"): new("unknown argument")}},
        "type": {**call, "arguments": {"text": [new("argument of the wrong type")], "end": ""}},
        "arguments": {**call, "arguments": new("arguments of the wrong type")},
        "member": {**call, new("name of a member"): new("unknown member")},
    }
    for name, params in wrong.items():
        answer = client.request("tools/call", params)
        assert name == "member" or "error" in answer.message or answer.result["isError"]
    requests: dict[str, dict[str, Any]] = {
        "tasks/get": {"taskId": new("unknown task id")},
        "tasks/update": {"taskId": [new("task id of the wrong type")], "inputResponses": {}},
        "resources/read": {"uri": f"note://{new('unknown resource')}"},
        "prompts/get": {"name": new("unknown prompt")},
        new("unknown method"): {},
    }
    for method, params in requests.items():
        client.request(method, params)
    for header in (
        "MCP-Protocol-Version",
        "Mcp-Method",
        "Mcp-Name",
        "Authorization",
        "Cookie",
        "Idempotency-Key",
        "Origin",
        "Host",
        "Accept",
        "User-Agent",
        "traceparent",
        new("name of a header"),
    ):
        body, headers = client.compose("tools/call", call)
        client.send(body, {**headers, header: new(f"header {header}")})
    client.request("tools/list", meta={"traceparent": new("trace"), "tracestate": new("state")})
    capable = Client(client.url, {**WITH_TASKS, new("capability"): {new("setting"): new("value")}})
    capable.request("tools/list")


def _push_tokens(pushed: Pushed, guarded: LocalStack, issuer: Issuer) -> None:
    new = pushed.canaries
    tokens = {
        "good": issuer.mint(scope="mcp", email=new("claim of a good token")),
        "wrong audience": issuer.mint(aud=new("audience"), email=new("claim of a bad token")),
        "expired": issuer.mint(exp=1, email=new("claim of an expired token")),
        "no scope": issuer.mint(scope=new("scope")),
        "garbage": new("garbage as a token"),
    }
    for token in tokens.values():
        client = Client(guarded.url, WITH_TASKS, token)
        body, headers = client.compose("tools/call", {"name": "say", "arguments": {"text": "hi"}})
        client.send(body, headers)
    query = Client(f"{guarded.url}?access_token={new('token in the query')}", WITH_TASKS)
    query.send(*query.compose("tools/list"))
    told = Client(guarded.url, WITH_TASKS, tokens["good"]).call("say", text=new("said")).result
    assert told["content"][0]["text"].startswith("canary")


def _wait_for_the_end(pushed: Pushed) -> None:
    """Until `finish`, `publish` and `deliver` have said the last that they have to say."""
    ids = set(pushed.done.values())
    deadline = time.monotonic() + DEADLINE
    while True:
        groups = pushed.logs.groups()
        told = {
            name: {id for id in ids if any(id in line for line in lines)}
            for name, lines in groups.items()
            if "Finish" in name or "Deliver" in name
        }
        if sum(found == ids for found in told.values()) >= 2:
            return
        assert time.monotonic() < deadline, told
        time.sleep(0.2)


def test_every_function_was_heard(pushed: Pushed, stack: LocalStack) -> None:
    """What is not found was looked for in the right places: the tasks' ids are there."""
    groups = {
        name.rpartition("/")[2]: "\n".join(lines)
        for name, lines in pushed.logs.groups().items()
        if f"/{stack.name}/" in f"{name}/"
    }
    for function in FUNCTIONS:
        (lines,) = (lines for name, lines in groups.items() if name.startswith(function))
        assert function == "Publish" or any(id in lines for id in pushed.done.values()), function
        assert '"level":"INFO"' in lines, function
    assert any(pushed.done["result"] in text for text in pushed.logs.files())


def test_a_canary_would_be_found() -> None:
    canaries = Canaries()
    first, second, third = canaries("first"), canaries("second"), canaries("third")
    encoded = [json.dumps({"a": first}), f"x={second}&"]
    assert set(canaries.found_in(iter(encoded))) == {"first", "second"}
    for before in ("", "a", "ab", "abc"):
        text = base64.b64encode(f"{before}{third} and more".encode()).decode()
        assert set(canaries.found_in(iter([text]))) == {"third"}, before


def test_no_log_group_has_anything_of_what_was_sent(pushed: Pushed) -> None:
    lines = [line for lines in pushed.logs.groups().values() for line in lines]
    assert pushed.canaries.found_in(iter(lines)) == {}


@pytest.mark.parametrize("message", OF_A_STEP)
def test_no_log_group_has_what_a_step_raised(pushed: Pushed, message: str) -> None:
    """Lambda's runtime logs whatever leaves a handler, with its message."""
    lines = [line for lines in pushed.logs.groups().values() for line in lines]
    assert not [line for line in lines if message in line]


def test_what_processes_write_elsewhere_has_nothing_of_it_either(pushed: Pushed) -> None:
    """A crash of the runtime itself, or what it says of requests that no handler gets."""
    assert pushed.canaries.found_in(iter(pushed.logs.files())) == {}


def _everything_in(table: str, aws: Any) -> Iterator[str]:
    for item in listed(aws("dynamodb"), "scan", "Items", TableName=table):
        yield json.dumps(item)


def test_a_task_that_is_over_keeps_its_result_and_nothing_else(
    pushed: Pushed, traces: Traces
) -> None:
    """No argument, no question, no answer, no status message and no task token."""
    rows = {end: traces.row(task_id) for end, task_id in pushed.done.items()}
    for end, row in rows.items():
        kept = {name: value for name, value in row.items() if name not in ("result", "error")}
        assert pushed.canaries.found_in(iter([json.dumps(kept)])) == {}, end
        assert "token" not in json.dumps(row), end
    assert pushed.canaries.found_in(iter([json.dumps(rows["crash"])])) == {}
    assert pushed.canaries.found_in(iter([json.dumps(traces.row(pushed.cancelled))])) == {}


def test_an_answer_that_was_used_is_not_kept(pushed: Pushed, traces: Traces) -> None:
    """The task goes on, and asks again: the next question is there, and of the first one nothing
    but that its answer was delivered. The arguments stay until the end.
    """
    row = traces.row(pushed.asked)
    found = pushed.canaries.found_in(iter([json.dumps(row)]))
    assert set(found) == {"argument of a task that waits"}
    asks = [ask["M"] for ask in row["asks"]["M"].values()]
    assert [ask for ask in asks if "token" not in ask] == [{"delivered": {"BOOL": True}}]
    assert len(asks) == 2


def test_callers_and_their_keys_are_kept_without_what_they_sent(
    pushed: Pushed, stack: LocalStack, aws: Any
) -> None:
    names = listed(aws("dynamodb"), "list_tables", "TableNames")
    (callers,) = (name for name in names if name.startswith(f"{stack.name}-Callers"))
    found = pushed.canaries.found_in(_everything_in(callers, aws))
    assert set(found) <= {"header Idempotency-Key"}
