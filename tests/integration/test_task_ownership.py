"""Every method on every state of a task, by its principal and by another one, over HTTP.

For another principal the task does not exist: the response is the same as for an unknown id, the
row does not change, and no change is delivered (tasks.md, "Security Considerations").
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pytest

from local.deployment import LocalStack
from tests.integration.support.client import Client, HttpResponse, accept
from tests.integration.support.issuer import Issuer
from tests.integration.support.session_client import SessionClient
from tests.integration.support.stacks import SCOPE
from tests.integration.support.traces import Traces

STATES: Final = ("working", "input_required", "completed", "failed", "cancelled", "expired")
ENDPOINTS: Final = ("emulator", "gateway")


@dataclass(frozen=True, slots=True)
class Owned:
    """A task of Alice's in some state, and the params that answer its question."""

    task_id: str
    params: Mapping[str, Any]
    """The params of a `tasks/update` that would answer it."""


def unknown_id(task_id: str) -> str:
    """An id of the same cell that belongs to no task."""
    return f"{task_id.partition('-')[0]}-{'f' * 32}"


METHODS: Final[dict[str, Callable[[Client, str, Mapping[str, Any]], HttpResponse]]] = {
    "tasks/get": lambda client, task_id, _: client.request("tasks/get", {"taskId": task_id}),
    "tasks/update": lambda client, task_id, params: client.request(
        "tasks/update", {"taskId": task_id, **params}
    ),
    "tasks/cancel": lambda client, task_id, _: client.cancel(task_id),
    "subscriptions/listen": lambda client, task_id, _: listen(client, task_id),
}


def listen(client: Client, task_id: str) -> HttpResponse:
    """Subscribe to one task. The subscription ends at once when the task is not accepted."""
    body, headers = client.compose(
        "subscriptions/listen", {"notifications": {"taskIds": [task_id]}}
    )
    return client.send(body, headers)


@pytest.fixture(scope="module", params=ENDPOINTS)
def url(request: pytest.FixtureRequest, guarded: LocalStack) -> str:
    """The endpoint of the emulator, and that of the gateway, which streams."""
    if request.param == "emulator":
        return guarded.url
    found: str = request.getfixturevalue("guarded_gateway").url
    return found


@pytest.fixture(scope="module")
def people(url: str, issuer: Issuer) -> Callable[[str], Client]:
    """Makes a client for a principal's name."""
    return lambda name: Client(url, token=issuer.mint(scope=SCOPE, sub=name))


@pytest.fixture(scope="module")
def tasks(people: Callable[[str], Client]) -> dict[str, Owned]:
    """Tasks of Alice's, one in each state."""
    alice = people("alice")
    asking = alice.start("interview", text="a")
    found = {
        "expired": alice.start("short_lived"),
        "working": alice.start("walk", out=3600, back=0),
        "input_required": asking,
        "completed": alice.start("note", text="private"),
        "failed": alice.start("crash", text="private"),
        "cancelled": alice.start("walk", out=3600, back=0),
    }
    expires = time.monotonic() + 2
    alice.cancel(found["cancelled"])
    for state in ("completed", "failed"):
        assert alice.end(found[state])["status"] == state
    (key,) = alice.until_asked(asking, "answer").values()
    responses = {"inputResponses": {key: accept(name="Mallory")}}
    while time.monotonic() < expires:
        time.sleep(0.1)
    return {state: Owned(found[state], responses) for state in STATES}


@pytest.fixture(scope="module", autouse=True)
def _tidy(people: Callable[[str], Client], tasks: dict[str, Owned]) -> Iterator[None]:
    yield
    for state in ("working", "input_required"):
        people("alice").cancel(tasks[state].task_id)


def shown(answer: HttpResponse, task_id: str) -> tuple[int, dict[str, str], list[Any]]:
    """All that a caller sees of a response, without the task's id and the ids of requests."""
    messages = json.loads(json.dumps(answer.events).replace(task_id, "<task>"))
    for message in messages:
        message.pop("id", None)
        message.get("result", {}).get("_meta", {}).pop(
            "io.modelcontextprotocol/subscriptionId", None
        )
        message.get("params", {}).pop("_meta", None)
    varying = ("date", "content-length", "server")
    headers = {
        name.lower(): value
        for name, value in answer.headers.items()
        if name.lower() not in varying and "request" not in name.lower()
    }
    return answer.status, headers, messages


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("state", STATES)
def test_another_principals_task_looks_like_an_unknown_one(
    people: Callable[[str], Client],
    tasks: dict[str, Owned],
    guarded: LocalStack,
    aws: Any,
    state: str,
    method: str,
) -> None:
    call, task, traces = METHODS[method], tasks[state], Traces(guarded, aws)
    before = traces.row(task.task_id)
    bob = people("bob")
    theirs = shown(call(bob, task.task_id, task.params), task.task_id)
    nobodys = shown(call(bob, unknown_id(task.task_id), task.params), unknown_id(task.task_id))
    assert theirs == nobodys
    assert traces.row(task.task_id) == before, "nothing is written, by whomever it was asked for"
    if method == "subscriptions/listen":
        assert theirs[2][0]["params"]["notifications"] == {"taskIds": []}
        assert len(theirs[2]) == 2, "the acknowledgement, and the end"
    else:
        assert theirs[0] == 400
        assert theirs[2][0]["error"]["code"] == -32602


@pytest.mark.parametrize("state", STATES)
def test_the_principal_sees_the_task(
    people: Callable[[str], Client], tasks: dict[str, Owned], state: str
) -> None:
    """Without this test, a server that shows nothing to anybody would pass."""
    answer = people("alice").request("tasks/get", {"taskId": tasks[state].task_id})
    if state == "expired":
        assert answer.error["code"] == -32602
    else:
        assert answer.result["status"] == state


def test_another_principals_requests_change_nothing(
    people: Callable[[str], Client], tasks: dict[str, Owned], guarded: LocalStack, aws: Any
) -> None:
    """After all of them, the task's principal can still answer its question."""
    task = tasks["input_required"]
    mallory = people("mallory")
    for call in METHODS.values():
        call(mallory, task.task_id, task.params)
    alice = people("alice")
    assert alice.get(task.task_id)["status"] == "input_required"
    assert Traces(guarded, aws).row(task.task_id)["status"] == {"S": "input_required"}


def test_a_task_needs_the_scopes_of_its_tool_for_its_whole_life(
    url: str, issuer: Issuer, guarded: LocalStack, aws: Any
) -> None:
    """Two tokens of one user: a weak one can neither read the task, nor answer, nor cancel it."""
    strong = Client(url, token=issuer.mint(scope=f"{SCOPE} admin reports:write", sub="carol"))
    weak = Client(url, token=issuer.mint(scope=f"{SCOPE} admin", sub="carol"))
    task_id, traces = strong.start("publish_report"), Traces(guarded, aws)
    (key,) = strong.until_asked(task_id, "answer").values()
    params = {"inputResponses": {key: accept(name="Carol")}}

    def refused() -> None:
        before = traces.row(task_id)
        for call in METHODS.values():
            answer = call(weak, task_id, params)
            assert (answer.status, answer.error["code"]) == (403, -32600)
            needed = {"requiredScopes": [SCOPE, "admin", "reports:write"]}
            assert answer.error["data"] == needed
        assert traces.row(task_id) == before

    refused()
    strong.request("tasks/update", {"taskId": task_id, **params})
    assert strong.end(task_id)["status"] == "completed"
    refused()


def test_a_client_id_is_not_a_user_of_the_same_name(url: str, issuer: Issuer) -> None:
    """A client id that equals a user's name is another principal."""
    user = Client(url, token=issuer.mint(scope=SCOPE, sub="robot"))
    machine = Client(url, token=issuer.mint(scope=SCOPE, sub=None, client_id="robot"))
    theirs = user.start("note", text="a")
    assert machine.request("tasks/get", {"taskId": theirs}).error["code"] == -32602
    own = machine.start("note", text="b")
    assert machine.get(own)["taskId"] == own
    assert user.request("tasks/get", {"taskId": own}).error["code"] == -32602


def test_a_request_state_is_valid_for_its_caller_only(url: str, issuer: Issuer) -> None:
    """Another caller's `requestState` is refused (mrtr.mdx, "Security")."""
    alice, bob = (
        Client(url, token=issuer.mint(scope=SCOPE, sub=name)) for name in ("alice", "bob")
    )
    params: dict[str, Any] = {"name": "whoever", "arguments": {}}
    asked = alice.request("tools/call", params).result
    (key,) = asked["inputRequests"]
    again = {
        **params,
        "requestState": asked["requestState"],
        "inputResponses": {key: accept(name="Bob")},
    }
    assert bob.request("tools/call", again).error["code"] == -32602
    assert alice.request("tools/call", again).result["resultType"] == "complete"


def test_a_caller_lists_its_own_tasks(url: str, issuer: Issuer, tasks: dict[str, Owned]) -> None:
    """2025-11-25 tasks.mdx, "Listing Tasks": everything that `tasks/get` would return."""

    def listed(name: str) -> list[str]:
        token = issuer.mint(scope=SCOPE, sub=name)
        client = SessionClient(url, headers={"Authorization": f"Bearer {token}"})
        found: list[str] = []
        cursor: dict[str, Any] = {}
        while True:
            page = client.request("tasks/list", cursor).message["result"]
            found += [task["taskId"] for task in page["tasks"]]
            if "nextCursor" not in page:
                return found
            cursor = {"cursor": page["nextCursor"]}

    known = {owned.task_id for state, owned in tasks.items() if state != "expired"}
    assert known <= set(listed("alice"))
    assert tasks["expired"].task_id not in listed("alice")
    assert listed("nobody") == []
