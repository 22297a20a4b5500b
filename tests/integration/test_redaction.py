"""No argument, result, answer, message or token is in a log, or in a row that needs it no more.

The fixture sends requests of every kind, each with a canary of its own. The tests then read all
logs, and all rows of the stack.
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
from tests.integration.support.canaries import Canaries, Logs
from tests.integration.support.client import TASKS, Client, accept
from tests.integration.support.issuer import Issuer
from tests.integration.support.subscriptions import Received, Subscription
from tests.integration.support.traces import Traces

ASKABLE: Final[dict[str, Any]] = {"elicitation": {"form": {}, "url": {}}, "sampling": {}}
WITH_TASKS: Final[dict[str, Any]] = {**ASKABLE, "extensions": {TASKS: {}}}
ENDS: Final = ("result", "error", "crash")
OF_A_STEP: Final = ("a message that no client must see", "The step says no")
"""The messages that steps of tests/integration/tools/broken_flow raise."""
FUNCTIONS: Final = ("Api", "Ask", "Finish", "Publish", "Deliver", "Toolsquote")
"""Parts of the log groups' names, one for each function."""
WAIT_SECONDS: Final = 60


@dataclass
class Sent:
    """The canaries that were sent, and the tasks that had them."""

    canaries: Canaries
    logs: Logs
    done: dict[str, str] = field(default_factory=dict)
    """Task ids by how the task ended."""
    cancelled: str = ""
    asked: str = ""
    """A task that waits for its next answer."""


@pytest.fixture(scope="module")
def sent(
    stack: LocalStack, gateway: Gateway, guarded: LocalStack, issuer: Issuer, aws: Any
) -> Iterator[Sent]:
    """Send canaries through every function, in valid and in invalid requests."""
    sent = Sent(Canaries(), Logs(stack, aws))
    _send_tasks(sent, Client(stack.url, WITH_TASKS), Client(gateway.url, WITH_TASKS))
    _send_calls_within_requests(sent, Client(stack.url, ASKABLE))
    for url in (stack.url, gateway.url):
        _send_invalid_requests(sent, Client(url, WITH_TASKS))
    _send_tokens(sent, guarded, issuer)
    _wait_for_the_end(sent)
    yield sent
    Client(stack.url).cancel(sent.asked)


def _send_tasks(sent: Sent, client: Client, listener: Client) -> None:
    """With a subscription, so that `deliver` and the mailboxes have the changes, too."""
    new, answers = sent.canaries, {}
    for end in ENDS:
        arguments = {"text": new(f"argument, then {end}"), "end": end}
        sent.done[end] = client.start("quote", **arguments)
        answers[sent.done[end]] = accept(name=new(f"answer, then {end}"))
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
    for name in ("crash_in_group", "crash_in_step", "crash_in_map", "crash_in_undone"):
        client.end(client.start(name, text=new(f"argument of {name}")))
    for how in ("step_error", "step_crash", "fail_state", "fail_tool_error", "wrong_output"):
        client.end(client.start("broken_flow", how=how))
    sent.cancelled = client.start("quote", text=new("argument, then cancelled"), end="result")
    (key,) = client.until_asked(sent.cancelled, "name").values()
    client.update(sent.cancelled, {"unknown": accept(name=new("answer to nothing"))})
    client.update(sent.cancelled, {key: accept(name=[new("answer of the wrong type")])})
    client.update(sent.cancelled, {key: {"action": new("action")}})
    client.cancel(sent.cancelled)
    sent.asked = client.start("survey", secret=new("argument of a task that waits"))
    (key,) = client.until_asked(sent.asked, "who").values()
    client.update(sent.asked, {key: accept(name=new("answer that was used"))})
    client.until_asked(sent.asked, "sign")


def _send_calls_within_requests(sent: Sent, client: Client) -> None:
    new = sent.canaries
    client.call("crash_at_once", text=new("argument of a tool that crashes in a library"))
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
    for name, what in {"essay": "topic", "crashing_prompt": "text"}.items():
        ref = {"type": "ref/prompt", "name": name}
        argument = {"name": what, "value": new(f"what is to be completed of {name}")}
        client.request("completion/complete", {"ref": ref, "argument": argument})


def _send_invalid_requests(sent: Sent, client: Client) -> None:
    """A canary in each place where the server refuses a request."""
    new = sent.canaries
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


def _send_tokens(sent: Sent, guarded: LocalStack, issuer: Issuer) -> None:
    new = sent.canaries
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
    result = Client(guarded.url, WITH_TASKS, tokens["good"]).call("say", text=new("said")).result
    assert result["content"][0]["text"].startswith("canary")


def _wait_for_the_end(sent: Sent) -> None:
    """Wait until `finish`, `publish` and `deliver` have written their last log lines."""
    ids = set(sent.done.values())
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        groups = sent.logs.groups()
        logged = {
            name: {id for id in ids if any(id in line for line in lines)}
            for name, lines in groups.items()
            if "Finish" in name or "Deliver" in name
        }
        if sum(found == ids for found in logged.values()) >= 2:
            return
        assert time.monotonic() < deadline, logged
        time.sleep(0.2)


def test_every_functions_log_is_read(sent: Sent, stack: LocalStack) -> None:
    """The logs that are searched have the tasks' ids in them."""
    groups = {
        name.rpartition("/")[2]: "\n".join(lines)
        for name, lines in sent.logs.groups().items()
        if f"/{stack.name}/" in f"{name}/"
    }
    for function in FUNCTIONS:
        (lines,) = (lines for name, lines in groups.items() if name.startswith(function))
        assert function == "Publish" or any(id in lines for id in sent.done.values()), function
        assert '"level":"INFO"' in lines, function
    assert any(sent.done["result"] in text for text in sent.logs.files())


def test_a_canary_would_be_found() -> None:
    canaries = Canaries()
    first, second, third = canaries("first"), canaries("second"), canaries("third")
    encoded = [json.dumps({"a": first}), f"x={second}&"]
    assert set(canaries.found_in(iter(encoded))) == {"first", "second"}
    for before in ("", "a", "ab", "abc"):
        text = base64.b64encode(f"{before}{third} and more".encode()).decode()
        assert set(canaries.found_in(iter([text]))) == {"third"}, before


def test_no_log_group_has_a_canary(sent: Sent) -> None:
    lines = [line for lines in sent.logs.groups().values() for line in lines]
    assert sent.canaries.found_in(iter(lines)) == {}


@pytest.mark.parametrize("message", OF_A_STEP)
def test_no_log_group_has_a_steps_exception_message(sent: Sent, message: str) -> None:
    """Lambda's runtime would log an exception that leaves a handler, with its message."""
    lines = [line for lines in sent.logs.groups().values() for line in lines]
    assert not [line for line in lines if message in line]


def test_no_log_of_the_emulator_or_the_gateway_has_a_canary(sent: Sent) -> None:
    """They would have a crash of the runtime, and requests that reach no handler."""
    assert sent.canaries.found_in(iter(sent.logs.files())) == {}


def _everything_in(table: str, aws: Any) -> Iterator[str]:
    for item in listed(aws("dynamodb"), "scan", "Items", TableName=table):
        yield json.dumps(item)


def test_the_row_of_an_ended_task_keeps_only_its_result(sent: Sent, traces: Traces) -> None:
    """The row has no argument, question, answer, status message or task token."""
    rows = {end: traces.row(task_id) for end, task_id in sent.done.items()}
    for end, row in rows.items():
        kept = {name: value for name, value in row.items() if name not in ("result", "error")}
        assert sent.canaries.found_in(iter([json.dumps(kept)])) == {}, end
        assert "token" not in json.dumps(row), end
    assert sent.canaries.found_in(iter([json.dumps(rows["crash"])])) == {}
    assert sent.canaries.found_in(iter([json.dumps(traces.row(sent.cancelled))])) == {}


def test_a_used_answer_is_removed_from_the_row(sent: Sent, traces: Traces) -> None:
    """The task has asked again: the row has the next question, and of the first one nothing
    but that its answer was delivered. The arguments stay until the end.
    """
    row = traces.row(sent.asked)
    found = sent.canaries.found_in(iter([json.dumps(row)]))
    assert set(found) == {"argument of a task that waits"}
    asks = [ask["M"] for ask in row["asks"]["M"].values()]
    assert [ask for ask in asks if "token" not in ask] == [{"delivered": {"BOOL": True}}]
    assert len(asks) == 2


def test_the_callers_table_has_no_canary(sent: Sent, stack: LocalStack, aws: Any) -> None:
    names = listed(aws("dynamodb"), "list_tables", "TableNames")
    (callers,) = (name for name in names if name.startswith(f"{stack.name}-Callers"))
    found = sent.canaries.found_in(_everything_in(callers, aws))
    assert set(found) <= {"header Idempotency-Key"}
