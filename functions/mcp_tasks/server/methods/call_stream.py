"""The event stream of a call that runs within its request and asks its client.

In the revisions with sessions, questions are requests from the server on the call's event stream,
and the answers are responses that the client posts (2025-11-25 basic/transports.mdx, "Sending
Messages to the Server"). They may come to another instance. So the call is kept in the session
table, and whoever has the stream when the last answer is there runs it again. It runs again only
for new answers, and its response is kept for some minutes: a client that loses it resumes.

An instance that dies while it runs the call leaves its claim behind. When that has expired, the
call runs once more, as a repeated request would.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any, Final

from aws_lambda_powertools import Logger

from ...aws.errors import error_code, is_transient
from ...notifications.clock import SYSTEM_CLOCK, Clock
from ...protocol.errors import ErrorCode, ProtocolError, invalid_params
from ...protocol.jsonrpc import RequestId
from ...sessions.call_table import (
    WAITS_MS,
    CallExists,
    CallTable,
    CallTooLarge,
    UnknownCall,
    WaitingCall,
)
from ...tasks.caller_key import digest
from ...tasks.forms import InvalidAnswer
from ...tasks.questions import Question, check_size
from ..call import (
    Call,
    InputNeeded,
    Outcome,
    RequestIdReused,
    StreamPaused,
)
from ..sealed import DerivedIds
from ..stream_position import EventIds, StreamPosition
from .call_quota import GRACE_MS, MAX_CALL_MS, CallQuota
from .kept_response import internal_error, kept_error, kept_response, outcome_of
from .stream_connection import StreamConnection, WriteRequest
from .task_operations import TaskOperations

PREFIX: Final = "call"
"""What the JSON-RPC ids of a call's questions begin with: `call.<id>.<key>`. Those of a task's
questions begin with the task's id."""

RunCall = Callable[[Call], Outcome]
"""Runs a call with the answers in its `input_responses`."""

CANCELLED: Final = "The client has cancelled the call"
NOT_KEPT: Final = "The response was sent, and was too large to be kept; call again"
"""Messages of errors that are kept as the response."""

logger = Logger()


@dataclass(frozen=True, slots=True)
class CallStream:
    """Keeps calls that ask, takes the answers, and runs the calls with them."""

    table: CallTable
    ids: DerivedIds
    operations: TaskOperations
    event_ids: EventIds
    call_quota: CallQuota
    clock: Clock = SYSTEM_CLOCK

    def ask(
        self,
        call: Call,
        position: StreamPosition,
        questions: Mapping[str, Question],
        write_request: WriteRequest,
        run: RunCall,
    ) -> Outcome:
        """Keep a call that has questions, and begin its event stream; see `follow`.

        It counts in its caller's quota of calls until it has ended. Raises ProtocolError.
        """
        call_id, now = self._call_id(call, call.request_id), self.clock.now_ms()
        waiting = WaitingCall(
            call_id,
            _owner(call),
            digest(call.method, json.dumps(call.params, sort_keys=True)),
            call.method,
            call.params,
            dict(questions),
        )
        with self.call_quota.hold(call):
            self.call_quota.acquire(call.principal, call_id, now + WAITS_MS, now)
            try:
                self.table.open(waiting, now)
            except CallExists:
                # The client has lost the stream, and sends the request again.
                same, waiting = waiting.fingerprint, self._read(call, call_id)
                if waiting.response is not None:  # it was released, and was counted again here
                    self.call_quota.release(call.principal, call_id)
                if waiting.fingerprint != same:
                    raise RequestIdReused from None
            except CallTooLarge:
                self.call_quota.release(call.principal, call_id)
                raise invalid_params("params are too large for a call that asks") from None
            call = replace(call, is_counted=True)
            return self.follow(call, waiting, position, write_request, run)

    def read(self, call: Call) -> WaitingCall:
        """The call with the request id of `call`, as it was kept. Raises ProtocolError (-32600)."""
        return self._read(call, self._call_id(call, call.request_id))

    def follow(
        self,
        call: Call,
        waiting: WaitingCall,
        position: StreamPosition,
        write_request: WriteRequest,
        run: RunCall,
    ) -> Outcome:
        """Send questions, and run the call when they are answered, until it has ended or the time
        is up.

        Returns what `run` has returned, or StreamPaused. Raises ProtocolError: what `run` has
        raised, or -32600 for a call that has waited too long.
        """
        connection = StreamConnection(call, position, self.event_ids, write_request, self.clock)
        with self.call_quota.hold(call):
            connection.begin()
            try:
                return self._follow(connection, waiting, run)
            except ProtocolError:
                connection.before_error()
                raise

    def answer(self, call: Call, request_id: str, answer: Mapping[str, Any]) -> None:
        """Take the answer to a question. A second answer changes nothing.

        Raises ProtocolError (-32602) for an answer to no question, or one that does not fit.
        """
        _, call_id, key = request_id.split(".", 2)
        try:
            waiting = self.table.read(call_id, _owner(call), self.clock.now_ms())
        except UnknownCall:
            raise invalid_params("no call waits for it") from None
        if waiting.response is not None or key in waiting.answers:
            return
        question = waiting.questions.get(key)
        if question is None:
            raise invalid_params("no question has its id")
        try:
            checked = question.check(key, answer)
            check_size([*waiting.answers.values(), checked])
        except InvalidAnswer as error:
            raise invalid_params(f"Invalid answer to {error}") from None
        self.table.answer(waiting, key, checked)

    def cancel(self, call: Call, request_id: RequestId) -> None:
        """End a call that its client has cancelled, if there is one that waits."""
        call_id = self._call_id(call, request_id)
        if self.table.cancel(call_id, internal_error(CANCELLED), self.clock.now_ms()):
            self.call_quota.release(call.principal, call_id)

    def _follow(self, connection: StreamConnection, waiting: WaitingCall, run: RunCall) -> Outcome:
        call, call_id = connection.call, waiting.id
        while True:
            if waiting.response is not None:
                return self._outcome(call, waiting.response)
            asked, outcome = _send_questions(waiting, connection), None
            now = self.clock.now_ms()
            if not waiting.outstanding and waiting.claimed_until < now:
                outcome = self._claim_and_run(connection, waiting, run, now)
                if outcome is not None and not isinstance(outcome, InputNeeded):
                    return outcome
            elif asked and not call.channel.streams:
                return StreamPaused()
            if connection.is_over():
                return StreamPaused()
            if outcome is None:
                connection.wait()
            waiting = connection.read(lambda: self._read(call, call_id)) or waiting

    def _read(self, call: Call, call_id: str) -> WaitingCall:
        try:
            return self.table.read(call_id, _owner(call), self.clock.now_ms())
        except UnknownCall:
            raise ProtocolError(
                ErrorCode.INVALID_REQUEST,
                "The call has waited too long for its answers; call again",
                status=HTTPStatus.OK,
            ) from None

    def _call_id(self, call: Call, request_id: RequestId) -> str:
        return self.ids.derive(
            "call", call.session.key if call.session else "", json.dumps(request_id)
        )

    def _claim_and_run(
        self, connection: StreamConnection, waiting: WaitingCall, run: RunCall, now: int
    ) -> Outcome | None:
        """Run the call; None when another instance runs it, InputNeeded when it has asked again."""
        call, claim = connection.call, secrets.token_hex(8)
        until = (call.channel.deadline_ms or now + MAX_CALL_MS) + GRACE_MS
        if not connection.read(lambda: self.table.claim(waiting, claim, until, now)):
            return None
        try:
            outcome = run(replace(call, input_responses=waiting.answers, is_counted=True))
            if isinstance(outcome, InputNeeded):
                return outcome if self._ask_again(waiting, claim, outcome) else None
            response = kept_response(outcome)
        except Exception as error:
            response = kept_error(error)
        if self._finish(call, waiting, claim, response):
            return self._outcome(call, response)
        return None

    def _ask_again(self, waiting: WaitingCall, claim: str, needed: InputNeeded) -> bool:
        """Replace the call's questions; whether AWS took them. If not, the call is run again when
        its claim expires."""
        try:
            self.table.ask_again(waiting, claim, needed.questions, self.clock.now_ms())
        except CallTooLarge:
            raise invalid_params("The call's questions are too large") from None
        except Exception as error:
            if not is_transient(error):
                raise
            logger.error("Questions were not kept", error=error_code(error))
            return False
        return True

    def _finish(
        self, call: Call, waiting: WaitingCall, claim: str, response: Mapping[str, Any]
    ) -> bool:
        """Keep the response; whether it is the call's first. One that is too large is sent, and
        cannot be sent again."""
        now = self.clock.now_ms()
        try:
            is_first = self.table.finish(waiting, claim, response, now)
        except CallTooLarge:
            is_first = self.table.finish(waiting, claim, internal_error(NOT_KEPT), now)
        except Exception as error:
            if not is_transient(error):
                raise
            # It is sent at least once. Whoever resumes runs the call again when the claim expires.
            logger.error("A response was not kept", error=error_code(error))
            return True
        self.call_quota.release(call.principal, waiting.id)
        return is_first

    def _outcome(self, call: Call, response: Mapping[str, Any]) -> Outcome:
        return outcome_of(response, lambda task_id: self.operations.read(call, task_id))


def is_of_a_call(request_id: object) -> bool:
    """Whether a JSON-RPC id is of a question of a call that waits."""
    parts = request_id.split(".", 2) if isinstance(request_id, str) else []
    return len(parts) == 3 and parts[0] == PREFIX


def _send_questions(waiting: WaitingCall, connection: StreamConnection) -> bool:
    """Send the questions of a round that the client has not been sent; whether any was."""
    if waiting.round <= connection.position.revision:
        return False
    questions = {f"{PREFIX}.{waiting.id}.{key}": q for key, q in waiting.outstanding.items()}
    connection.ask(questions, replace(connection.position, revision=waiting.round))
    return bool(questions)


def _owner(call: Call) -> str:
    return digest(call.session.key if call.session else "", call.principal)
