"""Calls that ask within their requests, over moto's DynamoDB, and what must hold of them.

Each request of a client is an actor, as if each came to another instance of the function.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, cast

from mcp_tasks.notifications.clock import Clock
from mcp_tasks.protocol.errors import ProtocolError, TooManyRequests
from mcp_tasks.server.call import Call, Complete, InputNeeded, Outcome
from mcp_tasks.server.caller import Caller
from mcp_tasks.server.methods.call_quota import CallQuota
from mcp_tasks.server.methods.call_stream import CANCELLED, CallStream
from mcp_tasks.server.methods.input_requests import input_request
from mcp_tasks.server.methods.stream_connection import MAX_ERROR_RESPONSES, StreamConnection
from mcp_tasks.server.request_notifications import RequestNotifications
from mcp_tasks.server.response_channel import ResponseChannel, StreamEvent
from mcp_tasks.server.sealed import DerivedIds, Seal
from mcp_tasks.server.sessions import SessionNotFound, Sessions
from mcp_tasks.server.stream_position import EventIds, StreamPosition, UnknownEventId
from mcp_tasks.sessions.call_table import RESPONSE_KEPT_MS, CallTable
from mcp_tasks.sessions.session_table import SessionTable
from mcp_tasks.tasks.questions import FormQuestion, Kind
from mcp_tasks.tasks.quotas import CallerQuotas
from tests.campaigns.model import dynamodb
from tests.campaigns.model.actors import (
    CALLERS,
    CALM,
    SESSIONS,
    TOOL,
    Actor,
    Plan,
    Violation,
)
from tests.campaigns.model.dynamodb import Item
from tests.campaigns.model.history import (
    OWNER,
    SECRET,
    STRANGER,
    History,
    begin,
    clock_of_histories,
)
from tests.campaigns.model.streams import VERSION, Connection
from tests.unit.support.aws import CALLERS as CALLERS_TABLE
from tests.unit.support.aws import SESSIONS as SESSIONS_TABLE

SKEW_MS: Final = 2_000
FUNCTION_MS: Final = 25_000
"""When Lambda stops a function that streams."""
CONNECTION_MS: Final = 2_000
LIMIT: Final = 30
CONNECTIONS: Final = 12
"""So many connections bring the response, once nothing fails any more and all is answered."""


TOO_LONG: Final = "The call has waited too long"
ENDED: Final = "The event stream has ended"


@dataclass(eq=False)
class Client:
    """One call of a client, which it sends, and sends again, and resumes."""

    session_id: str
    request_id: int
    rounds: tuple[int, ...]
    """How many questions its tool asks, round by round."""
    who: str = OWNER
    last_event_id: str | None = None
    asked: dict[str, str] = field(default_factory=dict)
    """The ids of the questions that it has got, and their keys."""
    response: Complete | ProtocolError | None = None
    connected: bool = False
    cancelled: bool = False
    errors_lost: int = 0

    def keys(self, round_: int) -> list[str]:
        """The keys of a round's questions."""
        return [f"r{round_}q{n}" for n in range(self.rounds[round_])]


class Calls(History):
    """Sessions, and calls within them that wait for their client's answers."""

    most_ms = 15_000

    def __init__(self, statistics: Counter[str]) -> None:
        super().__init__(statistics)
        dynamodb.empty(SESSIONS_TABLE)
        dynamodb.empty(CALLERS_TABLE)
        sessions: Any = self.stage.client(SESSIONS, dynamodb.InProcess(), self._watched)
        callers: Any = self.stage.client(CALLERS, dynamodb.InProcess())
        self.sessions = Sessions(
            Seal(lambda: SECRET, "session", "c1"), SessionTable(sessions, SESSIONS_TABLE)
        )
        self._event_ids = EventIds(Seal(lambda: SECRET, "eventId", "c1"))
        self._ids = DerivedIds(lambda: SECRET, "c1")
        self._stream = CallStream(
            CallTable(sessions, SESSIONS_TABLE),
            self._ids,
            cast(Any, None),
            self._event_ids,
            CallQuota(CallerQuotas(callers, CALLERS_TABLE), LIMIT),
            Clock(self.clock_ms, self.wait),
        )
        self.clients: list[Client] = []
        self.ended: set[str] = set()
        """Sessions whose end was acknowledged."""
        self._ending: set[str] = set()
        self._numbers = 0
        self._sent: dict[tuple[str, str], list[Any]] = defaultdict(list)
        """The answers that were sent, by call and key."""
        self._accepted: dict[str, dict[str, Any]] = defaultdict(dict)
        """The first answers, by call."""
        self._effects: dict[str, list[Actor | None]] = defaultdict(list)
        """Who ran a call to its end."""
        self._opened: dict[str, int] = {}
        self._claims: dict[str, Actor | None] = {}
        self._faulted = False

    def new_session(self, who: str = OWNER) -> str:
        """`initialize`."""
        said = {"clientInfo": {"name": "model"}, "capabilities": {"elicitation": {}}}
        return self.sessions.begin(VERSION, said, who)

    def call(self, session_id: str, rounds: tuple[int, ...]) -> Client:
        """A new call, which is not sent yet."""
        self._numbers += 1
        self.clients.append(Client(session_id, self._numbers, rounds))
        return self.clients[-1]

    # requests

    def connect(
        self, client: Client, plan: Plan = CALM, *, streamed: bool = False, lost: int = 0
    ) -> None:
        """`tools/call`, or the stream is resumed. The last `lost` messages do not arrive."""
        connection, over = Connection(), client.session_id in self.ended
        client.connected = True

        def after(actor: Actor) -> None:
            self._faulted = self._faulted or bool(actor.hit)
            client.connected = False
            if isinstance(actor.error, SessionNotFound):
                told = client.session_id in self._ending
                self.require(told, "a session has ended that its client did not end")
                client.response = actor.error
                return
            self.require(not over or bool(actor.hit), "a session was of use after its end")
            if isinstance(actor.error, ProtocolError):
                self._refused(client, actor, actor.error)
                return
            died = actor.error is not None
            client.errors_lost += died and streamed  # it may have been about to send one
            got = 0 if died and not streamed else len(connection.events) + (not died) - lost
            self._received(client, connection, got)

        name = f"{'resume' if client.last_event_id else 'call'} {client.request_id}"
        event_id = client.last_event_id  # as it is sent

        def serve() -> None:
            self._serve(client, event_id, connection, streamed)

        self.run(name, serve, plan, after=after)

    def answer(self, client: Client, question: str, plan: Plan = CALM, who: str = OWNER) -> None:
        """The client, or a stranger, posts an answer that nobody has posted before."""
        self._numbers += 1
        answer = {"action": "accept", "content": {"n": self._numbers}}
        call_id, key = self.call_id(client), question.split(".", 2)[2]
        session_id = client.session_id if who == client.who else self.new_session(who)
        if who == client.who:
            self._sent[call_id, key].append(answer)

        def work() -> None:
            self._stream.answer(self._bare(session_id, who), question, answer)

        def after(actor: Actor) -> None:
            self._faulted = self._faulted or bool(actor.hit)
            item = self._item(client)
            open_ = item is not None and "response" not in item
            asks = open_ and item is not None and key in item["questions"]["M"]
            if who != client.who:
                refused = isinstance(actor.error, ProtocolError) or bool(actor.hit)
                self.require(refused, "a stranger's answer was taken")
            elif actor.error is None and asks and item is not None:
                self.require(key in item["answers"]["M"], f"the answer to {key} is not there")
            elif isinstance(actor.error, ProtocolError) and not actor.hit:
                self.require(not asks, f"an answer to {key} was refused: {actor.error}")

        self.run(f"answer {client.request_id} {key} by {who}", work, plan, after=after)

    def cancel(self, client: Client, plan: Plan = CALM) -> None:
        """`notifications/cancelled`."""
        client.cancelled = True

        def work() -> None:
            self._stream.cancel(self._bare(client.session_id, client.who), client.request_id)

        def after(actor: Actor) -> None:
            self._faulted = self._faulted or bool(actor.hit)
            item = self._item(client)
            if actor.error is None and not actor.hit and item is not None:
                self.require("response" in item, "a call goes on that was cancelled")

        if self._item(client) is not None:
            self.run(f"cancel {client.request_id}", work, plan, after=after)

    def end(self, session_id: str, plan: Plan = CALM) -> None:
        """DELETE."""
        self._ending.add(session_id)

        def after(actor: Actor) -> None:
            self._faulted = self._faulted or bool(actor.hit)
            if actor.error is None or isinstance(actor.error, SessionNotFound):
                self.ended.add(session_id)

        def work() -> None:
            self.sessions.end(self.sessions.open(session_id, OWNER))

        self.run("end", work, plan, after=after)

    def steal(self, client: Client) -> None:
        """A stranger has the ids of a client's session and of its last event."""
        mine = self.sessions.open(client.session_id, client.who)
        strange = self.sessions.open(self.new_session(STRANGER), STRANGER)
        another = self.sessions.open(self.new_session(), OWNER)
        try:
            self.sessions.open(client.session_id, STRANGER)
            self.require(False, "a stranger is in a client's session")
        except SessionNotFound:
            pass
        for who, session in ((STRANGER, mine), (STRANGER, strange), (OWNER, another)):
            try:
                caller = Caller(who, session=session)
                self._event_ids.open(client.last_event_id or "", caller, self.ms)
                self.require(False, f"{who} resumes a client's stream")
            except UnknownEventId:
                pass

    def delete_expired(self) -> None:
        """DynamoDB's time to live."""
        for item in dynamodb.items(SESSIONS_TABLE):
            if int(item["expiresAt"]["N"]) * 1000 < self.ms - SKEW_MS:
                dynamodb.remove(SESSIONS_TABLE, item["pk"]["S"])

    # instances

    def _serve(
        self, client: Client, event_id: str | None, connection: Connection, streamed: bool
    ) -> None:
        now = self.clock_ms()
        session = self.sessions.open(client.session_id, client.who)
        self.sessions.state(session)
        deadline = now + FUNCTION_MS if streamed else None
        channel = ResponseChannel(connection.events.append, deadline)
        call = self._call(client.session_id, client.who, client.request_id, channel)
        run = self._tool(client)
        position = StreamPosition(VERSION, call.method, call.request_id)
        if event_id is not None:
            caller = Caller(client.who, session=session)
            position = self._event_ids.open(event_id, caller, now)
            waiting = self._stream.read(call)
        try:
            if event_id is not None:
                outcome = self._stream.follow(call, waiting, position, _request, run)
            else:
                needed = run(call)
                assert isinstance(needed, InputNeeded)
                outcome = self._stream.ask(call, position, needed.questions, _request, run)
            connection.outcome = outcome
        except TooManyRequests:
            raise
        except ProtocolError as error:
            connection.outcome = error

    def _tool(self, client: Client) -> Callable[[Call], Outcome]:
        call_id = self.call_id(client)

        def run(call: Call) -> Outcome:
            answers = dict(call.input_responses or {})
            self.stage.call(TOOL, "run", lambda: None)
            for round_ in range(len(client.rounds)):
                missing = [key for key in client.keys(round_) if key not in answers]
                if missing:
                    return InputNeeded(dict.fromkeys(missing, QUESTION), "")
            accepted = self._accepted[call_id]
            if answers != accepted:
                raise Violation(f"call {call_id} ran with {answers}, and {accepted} was accepted")
            self._effects[call_id].append(self.stage.actor)
            return Complete({"answers": answers, "run": len(self._effects[call_id])})

        return run

    def _bare(self, session_id: str, who: str) -> Call:
        return self._call(session_id, who, "", ResponseChannel(lambda event: None))

    def _call(
        self, session_id: str, who: str, request_id: int | str, channel: ResponseChannel
    ) -> Call:
        return Call(
            "tools/call",
            {"name": "tool"},
            who,
            RequestNotifications(channel.send),
            channel,
            request_id,
            frozenset({Kind.FORM}),
            session=self.sessions.open(session_id, who),
            waits=True,
            resumes=True,
        )

    def call_id(self, client: Client) -> str:
        """The id by which the table knows a call."""
        key = self.sessions.open(client.session_id, client.who).key
        return self._ids.derive("call", key, json.dumps(client.request_id))

    # clients

    def _received(self, client: Client, connection: Connection, events: int) -> None:
        for event in connection.events[: max(0, events)]:
            self._event(client, event)
        outcome = connection.outcome
        if events > len(connection.events) and isinstance(outcome, Complete | ProtocolError):
            self._check_response(client, outcome)
            earlier = client.response
            if isinstance(earlier, Complete) and isinstance(outcome, Complete):
                self.require(earlier == outcome, f"{earlier}, and then {outcome}")
            client.response = outcome
        elif events == len(connection.events) and isinstance(outcome, ProtocolError):
            client.errors_lost += 1

    def _event(self, client: Client, event: StreamEvent) -> None:
        client.last_event_id = event.id or client.last_event_id
        if event.message is not None:
            question = str(event.message["id"])
            client.asked[question] = question.split(".", 2)[2]

    def _refused(self, client: Client, actor: Actor, error: ProtocolError) -> None:
        if isinstance(error, TooManyRequests):
            return
        if error.message.startswith(TOO_LONG):
            client.response = error
            self._check_response(client, error)
            return
        self.require(bool(actor.hit), f"{actor.name} was refused: {error.message}")

    def _check_response(self, client: Client, response: Complete | ProtocolError) -> None:
        call_id = self.call_id(client)
        whole = [actor for actor in self._effects[call_id] if actor is None or not actor.hit]
        self.require(len(whole) <= 1, f"call {client.request_id} ran {len(whole)} times")
        if isinstance(response, Complete):
            ran = response.result["run"] <= len(self._effects[call_id])
            self.require(ran, "a result that no run has given")
            return
        message = response.message
        if message.startswith(TOO_LONG):
            item = dynamodb.item(SESSIONS_TABLE, f"call#{call_id}")
            until = 0 if item is None else int(item["expiresAt"]["N"]) * 1000
            opened_again = self.ms - self._opened.get(call_id, 0) < 2 * self.most_ms
            self.require(until <= self.ms + SKEW_MS or opened_again, f"{message}, until {until}")
        elif message.startswith(ENDED):
            self.require(client.errors_lost >= MAX_ERROR_RESPONSES, message)
        else:
            self.require(message == CANCELLED and client.cancelled, message)

    # what must hold of every write

    def _item(self, client: Client) -> Item | None:
        """A call's item, unless it has expired by somebody's clock."""
        item = dynamodb.item(SESSIONS_TABLE, f"call#{self.call_id(client)}")
        soon = self.ms + 2 * SKEW_MS
        expired = item is not None and int(item["expiresAt"]["N"]) * 1000 < soon
        return None if expired else item

    def _watched(self, operation: str, arguments: dict[str, Any], real: Any) -> Any:
        if operation not in ("put_item", "update_item"):
            return real(**arguments)
        pk = (arguments.get("Key") or arguments["Item"])["pk"]["S"]
        before = dynamodb.item(SESSIONS_TABLE, pk)
        answer = real(**arguments)
        after = dynamodb.item(SESSIONS_TABLE, pk)
        if pk.startswith("call#") and after is not None:
            self._written(pk.removeprefix("call#"), operation, before, after)
        return answer

    def _written(self, call_id: str, operation: str, before: Item | None, after: Item) -> None:
        def require(holds: bool, message: str) -> None:
            if not holds:
                raise Violation(f"call {call_id}: {message}")

        kept = int(after["expiresAt"]["N"]) * 1000 - self.ms
        changed = before is None or before["expiresAt"] != after["expiresAt"]
        enough = kept >= RESPONSE_KEPT_MS - self.most_ms - 2 * SKEW_MS
        require(not changed or enough, f"kept for {kept} ms")
        if operation == "put_item":
            expired = before is None or int(before["expiresAt"]["N"]) * 1000 < self.ms + SKEW_MS
            require(expired, "another one was replaced")
            self._accepted[call_id], self._effects[call_id] = {}, []
            self._claims.pop(call_id, None)
            self._opened[call_id] = self.ms
            return
        assert before is not None
        if "response" in before:
            require(after.get("response") == before["response"], "its response was replaced")
            return
        self._check_claim(call_id, before, after, require)
        if "response" in after or before["round"] != after["round"]:
            return
        for key, answer in after["answers"]["M"].items():
            value = json.loads(answer["S"])
            if key in before["answers"]["M"]:
                same = value == json.loads(before["answers"]["M"][key]["S"])
                require(same, f"the answer to {key} changed")
            else:
                require(value in self._sent[call_id, key], f"{value} was not sent")
                self._accepted[call_id][key] = value

    def _check_claim(
        self, call_id: str, before: Item, after: Item, require: Callable[[bool, str], None]
    ) -> None:
        """Of several instances that may run a call, one does, while it is not known to be dead."""
        if "claim" not in after or after["claim"] == before.get("claim"):
            return
        other = self._claims.get(call_id)
        alive = other is not None and not other.done and "claim" in before
        require(not alive, f"claimed by {other and other.name}, which runs it")
        unanswered = before["questions"]["M"].keys() - before["answers"]["M"].keys()
        require(not unanswered, f"runs without answers to {unanswered}")
        self._claims[call_id] = self.stage.actor

    # the end

    def settle(self) -> None:
        """Faults stop. Every call whose session has not ended gets its one response."""
        for actor in list(self.suspended):
            self.go_on(actor, finish=True)
        self.advance(FUNCTION_MS + 2 * self.most_ms)
        for client in self.clients:
            for _ in range(CONNECTIONS):
                if client.response is None:
                    self.connect(client)
                    for question in list(client.asked) if client.response is None else ():
                        self.answer(client, question)
            self.require(client.response is not None, f"no response to {client.request_id}")
        if not self._faulted:
            held = [item["open"]["M"] for item in dynamodb.items(CALLERS_TABLE) if "open" in item]
            left = {name for open_ in held for name in open_} - self._abandoned()
            self.require(not left, f"calls are counted that have ended: {left}")

    def _abandoned(self) -> set[str]:
        """The calls of sessions that have ended, and of items that have expired."""
        over = [c for c in self.clients if isinstance(c.response, ProtocolError)]
        return {self.call_id(client) for client in over}


QUESTION: Final = FormQuestion(
    "How many?",
    {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
)


def _request(question: Any, request_id: str) -> dict[str, Any]:
    return input_request(question)


@contextmanager
def patched() -> Iterator[None]:
    """Time is a history's, and connections are short."""
    with clock_of_histories() as patch:
        end_ms = "mcp_tasks.server.methods.stream_connection.STREAM_END_MS"
        patch.setattr(end_ms, FUNCTION_MS - CONNECTION_MS)
        for method in (StreamConnection.is_over, StreamConnection.ends_at):
            patch.setattr(method, "__defaults__", (CONNECTION_MS,))
        yield


def new_calls(statistics: Counter[str]) -> Calls:
    """An empty world of calls, whose clock is the one that counts from now on."""
    calls = Calls(statistics)
    begin(calls)
    return calls
