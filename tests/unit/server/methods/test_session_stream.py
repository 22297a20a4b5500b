"""A session's own stream, and what its client subscribes to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

from mcp_tasks.limits import Limits
from mcp_tasks.notifications.changes import change_to
from mcp_tasks.notifications.server_changes import RESOURCE_UPDATED, ServerChange
from mcp_tasks.server.methods.session_stream import IDLE_RETRY_MS, LISTENED_AGAIN_MS
from mcp_tasks.server.methods.stream_connection import BUFFERED_MS, RETRY_MS
from mcp_tasks.server.methods.task_wire_format import detailed_task
from mcp_tasks.sessions.session_table import MAX_URIS
from mcp_tasks.tasks.questions import FormQuestion, open_ask
from tests import wire
from tests.unit.support.aws import MAILBOXES, SESSIONS, real
from tests.unit.support.in_session import Reply, SessionClient, time_of
from tests.unit.support.listening import Streamed, Time
from tests.unit.support.push import deliver
from tests.unit.support.stack import Stack, buffered
from tests.unit.support.whole import HANDSHAKE, accept

HANDBOOK: Final = "docs://handbook"
INVALID_REQUEST: Final = -32600
NOT_FOUND: Final = -32002
FORM: Final[dict[str, Any]] = {"type": "object", "properties": {"name": {"type": "string"}}}
RESULT: Final[dict[str, Any]] = {"content": [{"type": "text", "text": "done"}]}


@pytest.fixture
def time(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> Time:
    time = time_of(stack, monkeypatch)
    stack.environment["LIMITS"] = Limits(
        max_open_calls=0, max_open_tasks=0, creations_per_minute=0, new_subscriptions_per_minute=0
    ).to_json()
    stack.serve()
    return time


@pytest.fixture
def client(stack: Stack, time: Time) -> SessionClient:
    return SessionClient(stack)


def operations(stack: Stack, act: Callable[[], object]) -> list[str]:
    """The calls to AWS that something makes."""
    stack.calls.made.clear()
    act()
    return [each for each in stack.calls.operations if each != "get_secret_value"]


def subscribe(client: SessionClient, uri: str = HANDBOOK) -> Reply:
    return client.request("resources/subscribe", {"uri": uri})


def announce(client: SessionClient, time: Time, uri: str = HANDBOOK, event_id: str = "1") -> None:
    """What `deliver` does with an event."""
    change = ServerChange(RESOURCE_UPDATED, event_id, {"uri": uri})
    deliver(client.stack.deployment.mailboxes, change, time.now)


def publish(stack: Stack, time: Time, task_id: str) -> None:
    """What the functions do with a task's change."""
    task = stack.deployment.task_table.get(task_id, time.now, "anonymous")
    deliver(stack.deployment.mailboxes, change_to(task, time.now, detailed_task), time.now)


def notified(reply: Reply) -> list[tuple[str, dict[str, Any]]]:
    """The notifications of a stream."""
    return [(m["method"], m.get("params", {})) for m in reply.messages if "id" not in m]


def test_a_session_with_nothing_to_hear_costs_one_read(
    stack: Stack, time: Time, client: SessionClient
) -> None:
    first = client.resume(None)
    assert (first.status, first.messages, time.waits) == (200, [], [])
    assert first.events[0].retry_ms == IDLE_RETRY_MS
    assert operations(stack, lambda: client.resume(first.last_id)) == ["get_item"]
    time.now += LISTENED_AGAIN_MS
    again = operations(stack, lambda: client.resume(first.last_id))
    assert again == ["get_item", "update_item"], "that the client still listens"


def test_a_change_of_a_resource_is_told(stack: Stack, time: Time, client: SessionClient) -> None:
    assert subscribe(client).result == {}
    time.meanwhile = [
        lambda: announce(client, time, "docs://chapters/1"),
        lambda: announce(client, time),
    ]
    reply = client.resume(None)
    assert reply.events[0].retry_ms == RETRY_MS
    assert notified(reply) == [(RESOURCE_UPDATED, {"uri": HANDBOOK})]
    for message in reply.messages:
        wire.check_definition("mcp-2025-11-25.json", "ResourceUpdatedNotification", message)


def test_a_change_between_two_connections_is_not_lost(
    stack: Stack, time: Time, client: SessionClient
) -> None:
    subscribe(client)
    first = client.resume(None)
    assert time.waits[-1] > 0
    announce(client, time)
    stack.serve()
    assert len(notified(client.resume(first.last_id))) == 1
    assert notified(client.resume(first.last_id)) == []


def test_a_change_right_after_the_subscription_is_not_lost(
    stack: Stack, time: Time, client: SessionClient
) -> None:
    """Whether there was a mailbox or not: the session may have been idle."""
    client.resume(None)
    subscribe(client)
    announce(client, time)
    first = client.resume(None)
    assert len(notified(first)) == 1
    subscribe(client, "docs://chapters/1")
    announce(client, time, "docs://chapters/1")
    assert len(notified(client.resume(first.last_id))) == 1
    client.request("resources/unsubscribe", {"uri": HANDBOOK})
    announce(client, time, event_id="2")
    assert notified(client.resume(first.last_id)) == []


def test_a_resource_is_subscribed_to_while_the_stream_is_open(
    stack: Stack, time: Time, client: SessionClient
) -> None:
    """It is the same stream: a waiting one reads its mailbox, and nothing else."""
    subscribe(client, "docs://chapters/1")
    streamed = stack.way = Streamed(time, remaining_ms=60_000)

    def in_another(act: Callable[[], object]) -> Callable[[], None]:
        def run() -> None:
            stack.way = buffered
            act()
            stack.way = streamed

        return run

    time.meanwhile = [
        in_another(lambda: subscribe(client)),
        lambda: None,
        lambda: announce(client, time),
        in_another(lambda: client.request("resources/unsubscribe", {"uri": HANDBOOK})),
    ]
    reply = client.resume(None)
    assert notified(reply) == [(RESOURCE_UPDATED, {"uri": HANDBOOK})]


def test_a_session_that_ends_ends_its_stream(
    stack: Stack, time: Time, client: SessionClient
) -> None:
    subscribe(client)
    streamed = stack.way = Streamed(time, remaining_ms=600_000)

    def end() -> None:
        stack.way = buffered
        assert client.end().status == 204
        stack.way = streamed

    time.meanwhile = [end]
    reply = client.resume(None)
    assert (reply.status, reply.messages) == (200, [])
    assert len(time.waits) <= 3
    stack.way = buffered
    assert client.resume(None).status == 404


def test_a_task_is_told_about_and_asks_here(
    stack: Stack, time: Time, client: SessionClient
) -> None:
    client.resume(None)
    created = client.request("tools/call", {"name": "wait", "arguments": {}, "task": {}})
    task_id = created.result["task"]["taskId"]
    ask = open_ask("token", {"who": FormQuestion("Who?", FORM)})

    def asks() -> None:
        stack.deployment.task_table.ask(task_id, ask, time.now)
        publish(stack, time, task_id)

    time.meanwhile = [asks]
    reply = client.resume(None)
    ((method, params),) = notified(reply)
    assert (method, params["status"]) == ("notifications/tasks/status", "input_required")
    (question,) = [m for m in reply.messages if "id" in m]
    wire.check_request(question, "2025-11-25")
    # Whoever waits in tasks/result is not asked as well.
    waiting = client.request("tasks/result", {"taskId": task_id}, request_id=2)
    assert waiting.messages == []
    reached: list[Any] = []

    def send(**arguments: Any) -> dict[str, Any]:
        reached.append(arguments)
        return {}

    stack.calls.instead["send_task_success"] = send
    assert client.respond(question["id"], accept(name="Ada")).status == 202
    assert reached
    publish(stack, time, task_id)
    assert [m for m in client.resume(reply.last_id).messages if "id" in m] == []


def test_what_a_task_has_asked_before_is_asked_when_the_stream_begins(
    stack: Stack, time: Time, client: SessionClient
) -> None:
    """An idle session has no mailbox."""
    client.resume(None)
    created = client.request("tools/call", {"name": "wait", "arguments": {}, "task": {}})
    task_id = created.result["task"]["taskId"]
    ask = open_ask("token", {"who": FormQuestion("Who?", FORM)})
    stack.deployment.task_table.ask(task_id, ask, time.now)
    first = client.resume(None)
    assert [m["method"] for m in first.messages if "id" in m] == ["elicitation/create"]
    assert client.resume(first.last_id).messages == [], "it is asked once"
    stack.deployment.task_table.complete(task_id, RESULT, time.now)
    ((_, params),) = notified(client.resume(first.last_id))
    assert params["status"] == "completed"
    assert client.resume(first.last_id).events[0].retry_ms == IDLE_RETRY_MS


def test_without_a_listener_questions_come_with_the_result(
    stack: Stack, time: Time, client: SessionClient
) -> None:
    created = client.request("tools/call", {"name": "wait", "arguments": {}, "task": {}})
    task_id = created.result["task"]["taskId"]
    ask = open_ask("token", {"who": FormQuestion("Who?", FORM)})
    stack.deployment.task_table.ask(task_id, ask, time.now)
    reply = client.request("tasks/result", {"taskId": task_id}, request_id=2)
    assert [m["method"] for m in reply.messages] == ["elicitation/create"]


def test_another_session_hears_nothing_of_it(
    stack: Stack, time: Time, client: SessionClient
) -> None:
    other = SessionClient(stack)
    subscribe(other)
    created = client.request("tools/call", {"name": "wait", "arguments": {}, "task": {}})
    task_id = created.result["task"]["taskId"]
    time.meanwhile = [lambda: publish(stack, time, task_id)]
    assert other.resume(None).messages == []
    assert other.resume(client.resume(None).last_id).status == 400


def test_lists_that_a_deployment_has_changed_are_told(
    stack: Stack, time: Time, client: SessionClient
) -> None:
    client.resume(None)
    assert notified(client.resume(None)) == []
    stack.catalogue = type(stack.catalogue)(
        list(stack.catalogue.tools.values())[1:],
        stack.catalogue.resources.values(),
        stack.catalogue.prompts.values(),
    )
    stack.serve()
    assert notified(client.resume(None)) == [("notifications/tools/list_changed", {})]
    assert notified(client.resume(None)) == []


@pytest.mark.parametrize("revision", HANDSHAKE[1:])
def test_an_older_revision_has_the_stream_where_it_can_stay_open(
    stack: Stack, time: Time, revision: str
) -> None:
    """Its clients do not come back to a stream that has ended."""
    client = SessionClient(stack, revision)
    assert client.resume(None).status == 405
    subscribe(client)
    stack.way = Streamed(time, remaining_ms=60_000)
    time.meanwhile = [lambda: announce(client, time)]
    assert notified(client.resume(None)) == [(RESOURCE_UPDATED, {"uri": HANDBOOK})]


def test_a_subscription_needs_a_resource_and_a_session(stack: Stack, client: SessionClient) -> None:
    assert subscribe(client, "docs://nothing").code == NOT_FOUND
    assert subscribe(client, "x" * 3000).code == NOT_FOUND
    assert client.request("resources/subscribe", {}).code == -32602
    client.session_id = None
    assert subscribe(client).code == INVALID_REQUEST


def test_a_session_has_so_many_subscriptions(stack: Stack, client: SessionClient) -> None:
    for number in range(MAX_URIS):
        assert subscribe(client, f"docs://chapters/{number}").result == {}
    assert subscribe(client, "docs://chapters/0").result == {}, "it has this one"
    refused = subscribe(client)
    assert refused.code == INVALID_REQUEST
    assert "unsubscribe" in refused.response["error"]["message"]
    for _ in range(2):
        gone = client.request("resources/unsubscribe", {"uri": "docs://chapters/0"})
        assert gone.result == {}
    assert subscribe(client).result == {}
    assert subscribe(client, "docs://chapters/0").code == INVALID_REQUEST


def test_waiting_is_bounded_and_reads_one_row(
    stack: Stack, time: Time, client: SessionClient
) -> None:
    """However many resources there are."""
    for number in range(5):
        subscribe(client, f"docs://chapters/{number}")
    began_at = time.now
    made = operations(stack, lambda: client.resume(None))
    assert time.now - began_at == BUFFERED_MS
    assert made.count("get_item") <= 2  # the session, and the caller's mailboxes
    assert made.count("query") == len(time.waits) + 2  # and what the mailbox was released with


def test_tables_hold_no_session_ids(stack: Stack, client: SessionClient) -> None:
    subscribe(client)
    client.resume(None)
    for table in (MAILBOXES, SESSIONS):
        assert str(client.session_id) not in str(real("dynamodb").scan(TableName=table)["Items"])


def test_a_client_that_is_not_served_here_is_asked_elsewhere(stack: Stack, time: Time) -> None:
    """Its caller has as many subscriptions as it may."""
    stack.environment["LIMITS"] = Limits(
        max_open_calls=0, max_open_tasks=0, creations_per_minute=0, max_open_subscriptions=1
    ).to_json()
    stack.serve()
    clients = [SessionClient(stack), SessionClient(stack)]
    streamed = Streamed(time, remaining_ms=60_000)
    refused: list[Reply] = []

    def other() -> None:
        stack.way = buffered
        created = clients[1].request("tools/call", {"name": "wait", "arguments": {}, "task": {}})
        refused.append(clients[1].resume(None))
        task_id = created.result["task"]["taskId"]
        ask = open_ask("token", {"who": FormQuestion("Who?", FORM)})
        stack.deployment.task_table.ask(task_id, ask, time.now)
        refused.append(clients[1].request("tasks/result", {"taskId": task_id}, request_id=2))
        stack.way = streamed

    subscribe(clients[0])
    time.meanwhile, stack.way = [other], streamed
    clients[0].resume(None)
    assert refused[0].status == 429
    assert [m["method"] for m in refused[1].messages] == ["elicitation/create"]


def test_the_token_of_the_call_is_good_for_its_tasks_whole_life(
    stack: Stack, time: Time, client: SessionClient
) -> None:
    """2025-11-25 tasks.mdx, "Task Progress Notifications"."""
    params = {"name": "wait", "arguments": {}, "task": {}, "_meta": {"progressToken": "mine"}}
    created = client.request("tools/call", params)
    task_id = created.result["task"]["taskId"]
    last_id = client.resume(None).last_id
    told: list[Any] = []
    for message in ("one", "two"):
        stack.deployment.task_table.report(task_id, message, time.now)
        publish(stack, time, task_id)
        reply = client.resume(last_id)
        told += [p for method, p in notified(reply) if method == "notifications/progress"]
    assert [(p["progressToken"], p["message"]) for p in told] == [("mine", "one"), ("mine", "two")]
    assert told[0]["progress"] < told[1]["progress"]
