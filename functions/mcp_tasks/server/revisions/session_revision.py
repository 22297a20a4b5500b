"""What is the same for every request within a session, whatever its method.

A session's requests may come to any instance of the function. What the client said in `initialize`
comes with the session's id; what it said later is read from the session table. A call that becomes
a task is followed on its event stream.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from dataclasses import replace
from http import HTTPStatus
from typing import Any, ClassVar, Final

from ...protocol import meta
from ...protocol.errors import ErrorCode, ProtocolError, invalid_params
from ...protocol.headers import Headers
from ...protocol.jsonrpc import Notification, Request, Response, is_id, malformed
from ...protocol.trace import trace_context
from ...sessions.session_table import SessionState
from ...tasks.questions import Kind, Question
from ...tasks.task import Task, now_ms
from ..call import Call, Complete, InputNeeded, MethodTable, Outcome, TaskCreated
from ..caller import Caller
from ..methods import session_stream, tasks_sep_1686
from ..methods.call_stream import is_of_a_call
from ..methods.input_requests import input_request
from ..methods.session_stream import listens
from ..methods.task_wire_2025_11_25 import related_task
from ..methods.tasks_sep_1686 import CLIENT_TASK_ID
from ..request_notifications import RequestNotifications
from ..response_channel import ResponseChannel
from ..session_methods import SessionMethods
from ..sessions import Session
from ..stream_position import StreamPosition
from .revision import Answer, Revision
from .wanted_task import WantedTask, wanted_task

LOG_LEVEL: Final = "info"
"""The level for a client that has not set one (logging.mdx: "the server MAY decide which messages
to send automatically")."""

READ_NOTHING: Final = frozenset({"initialize", "ping", "logging/setLevel", "tasks/get"})
"""The methods that read nothing of what is remembered of a session, not even whether it has ended.
`logging/setLevel` writes, on the condition that it has not."""

NEVER_RESUMES: Final = "Visual Studio Code"
"""The beginning of a client's name that reads no more of a response after its stream has ended,
whatever its revision says."""


class SessionRevision(Revision):
    """A revision whose clients begin a session."""

    has_sessions: ClassVar[bool] = True
    clients_resume: ClassVar[bool] = False
    """Whether clients of this revision resume an event stream that ends before the response."""
    kinds: ClassVar[frozenset[Kind]] = frozenset({Kind.SAMPLING, Kind.ROOTS})
    """The kinds of questions that this revision has."""

    @abstractmethod
    def tool_result(self, result: dict[str, Any]) -> dict[str, Any]:
        """`CallToolResult`."""

    def read_call(
        self, request: Request, headers: Headers, caller: Caller, channel: ResponseChannel
    ) -> Call:
        """`_meta` is optional."""
        about = request.params.get("_meta", {})
        if not isinstance(about, dict):
            raise invalid_params("params._meta must be an object")
        token, state = meta.progress_token(about), SessionState()
        session, methods = caller.session, self.methods.in_sessions
        wanted = wanted_task(request, about, self.methods.catalogue) if methods else WantedTask()
        if session and methods and request.method not in READ_NOTHING:
            state = methods.sessions.state(session)
        resumes = self._resumes(session, state)
        return Call(
            method=request.method,
            params=request.params,
            principal=caller.principal,
            scopes=caller.scopes,
            notifications=RequestNotifications(channel.send, token, state.level or LOG_LEVEL),
            channel=channel,
            request_id=request.id,
            client_can=self.kinds & session.client_can if session else frozenset(),
            trace=trace_context(about),
            session=session,
            declares_tasks=wanted.is_wanted,
            listens=listens(state, now_ms()),
            client_context=wanted.client_context(request, session),
            ttl_ms=wanted.ttl_ms,
            waits=(resumes or channel.streams) and session is not None,
            resumes=resumes,
            task_id=self._task_id(request, caller, wanted),
        )

    def _task_id(self, request: Request, caller: Caller, wanted: WantedTask) -> str | None:
        """The id of a call's task, where it follows from what the client has chosen."""
        methods, session = self.methods.in_sessions, caller.session
        if methods is None or request.method != "tools/call":
            return None
        if wanted.client_id is not None:
            return methods.client_tasks.task_id(caller.principal, wanted.client_id)
        if session is None or wanted.is_wanted:
            return None
        return methods.ids.derive("request", session.key, json.dumps(request.id))

    def _resumes(self, session: Session | None, state: SessionState) -> bool:
        """Whether the session's client resumes event streams: it has, or its revision says so."""
        if session is None or session.client.startswith(NEVER_RESUMES):
            return False
        return state.resumes or self.clients_resume

    def question_request(self, question: Question, request_id: str) -> dict[str, Any]:
        """A question as a request from the server: its method and params."""
        return input_request(question)

    @property
    @abstractmethod
    def methods_that_ask(self) -> MethodTable:
        """The methods that run an author's function, which may ask the client."""

    def run(self, call: Call) -> Outcome:
        """Run one of `methods_that_ask`.

        Its questions are sent on the call's event stream. A task that the client has not asked for
        is followed there until its end.
        """
        outcome = self.methods_that_ask[call.method](call)
        if isinstance(outcome, InputNeeded):
            outcome = self._ask(call, outcome)
        if isinstance(outcome, TaskCreated) and call.declares_tasks and call.session is not None:
            task = outcome.task
            self._in_sessions.sessions.add_task(call.session, task.task_id, task.expires_at)
        client_id = call.client_context.get(CLIENT_TASK_ID)
        if isinstance(outcome, TaskCreated) and client_id is not None:
            call.channel.send(tasks_sep_1686.created(client_id))
            call = replace(call, declares_tasks=False)
        return self._with_result_of_task(call, outcome)

    def _ask(self, call: Call, needed: InputNeeded) -> Outcome:
        """Ask the client, and run the call again with its answers."""
        if call.session is None or not (call.waits and call.channel.takes_notifications):
            return needed
        return self._in_sessions.call_stream.ask(
            call,
            self._position(call),
            needed.questions,
            self.question_request,
            self.methods_that_ask[call.method],
        )

    def _with_result_of_task(self, call: Call, outcome: Outcome) -> Outcome:
        if call.declares_tasks or not isinstance(outcome, TaskCreated):
            return outcome
        task = outcome.task
        position = replace(
            self._position(call),
            task_id=task.task_id,
            client_task_id=call.client_context.get(CLIENT_TASK_ID),
            revision=task.revision,
        )
        return self.follow(call, position)

    def _position(self, call: Call) -> StreamPosition:
        """The beginning of a call's event stream."""
        token = meta.progress_token(call.params.get("_meta", {}))
        return StreamPosition(self.version, call.method, call.request_id, progress_token=token)

    def resumed(
        self, position: StreamPosition, headers: Headers, caller: Caller, channel: ResponseChannel
    ) -> Answer:
        """Go on with the event stream of an earlier request, or with the session's own."""
        call = self._bare_call(position.method, caller, channel)
        if position.method == session_stream.METHOD and caller.session is not None:
            return self.written(self._listen(call, caller.session, position))
        state = self._remember_that_client_resumes(caller.session)
        call = replace(
            call,
            request_id=position.request_id,
            waits=True,
            resumes=True,
            listens=listens(state, now_ms()),
        )
        if position.task_id is not None or caller.session is None:
            return self.written(self.follow(call, position))
        call_stream = self._in_sessions.call_stream
        waiting = call_stream.read(call)
        request = Request(position.request_id, waiting.method, waiting.params)
        call = replace(self.read_call(request, headers, caller, channel), waits=True, resumes=True)
        method = self.methods_that_ask[call.method]
        outcome = call_stream.follow(call, waiting, position, self.question_request, method)
        return self.written(self._with_result_of_task(call, outcome))

    def follow(self, call: Call, position: StreamPosition) -> Outcome:
        """Send what comes after a position, and return the tool's result at the task's end.

        The messages of `tasks/result`, and those of a task with an id of the client's, name the
        task. A client that has asked for none does not see it.
        """
        followed: dict[str, Any] = {}

        def about(task: Task) -> dict[str, Any]:
            """What messages about a task, the one that is followed or a subtask, say of it."""
            found: dict[str, Any] = {}
            if position.client_task_id is not None:
                found = tasks_sep_1686.related(position.client_task_id)
            elif position.method == "tasks/result":
                found = related_task(task)
            if task.task_id == position.task_id:
                followed.update(found)
            return found

        stream = self._in_sessions.task_stream
        outcome = stream.follow(call, position, self.question_request, about)
        if not isinstance(outcome, Complete):
            return outcome
        result = self.tool_result(outcome.result)
        return Complete(
            {**result, "_meta": {**result.get("_meta", {}), **followed}} if followed else result
        )

    def _listen(self, call: Call, session: Session, position: StreamPosition) -> Outcome:
        """The session's own stream. Clients that do not resume it cannot get it piece by piece."""
        call = replace(call, resumes=self.clients_resume)
        if not (call.resumes or call.channel.streams):
            raise ProtocolError(
                ErrorCode.INVALID_REQUEST,
                f"{self.version} has no stream of the session at this address",
                status=HTTPStatus.METHOD_NOT_ALLOWED,
            )
        stream = self._in_sessions.session_stream
        return stream.follow(call, session, position, self.question_request)

    def _remember_that_client_resumes(self, session: Session | None) -> SessionState:
        if session is None:
            return SessionState()
        state = self._in_sessions.sessions.state(session)
        if not (state.resumes or self.clients_resume):
            self._in_sessions.sessions.mark_resumes(session)
        return state

    def notified(self, notification: Notification, caller: Caller) -> None:
        """`notifications/cancelled` ends the request, or cancels the task that it became."""
        request_id = notification.params.get("requestId")
        if notification.method != "notifications/cancelled" or not is_id(request_id):
            return
        if caller.session is None or self.methods.in_sessions is None:
            return
        methods, call = self.methods.in_sessions, self._bare_call(notification.method, caller)
        methods.call_stream.cancel(call, request_id)
        task_id = methods.ids.derive("request", caller.session.key, json.dumps(request_id))
        methods.operations.cancel_if_there(call, task_id)
        asked_for = [*methods.sessions.state(caller.session).tasks]
        methods.client_tasks.cancel(call, asked_for, json.dumps(request_id))

    def answered(self, response: Response, caller: Caller) -> None:
        """Take the client's answer to a question of a call or a task. An error is no answer.

        Raises ProtocolError (HTTP 400) for a response to no request of the server's, and for an
        answer that does not fit its question.
        """
        if self.methods.in_sessions is None:
            return super().answered(response, caller)
        methods, call = self.methods.in_sessions, self._bare_call("response", caller)
        answer = {"action": "cancel"} if response.result is None else response.result
        try:
            if is_of_a_call(response.id):
                methods.call_stream.answer(call, str(response.id), answer)
            else:
                task_id, _, key = str(response.id).partition(".")
                methods.operations.answer(call, methods.operations.check_id(task_id), {key: answer})
        except ProtocolError as error:
            if error.code != ErrorCode.INVALID_PARAMS:
                raise
            raise malformed(f"The response was not taken: {error.message}") from None

    @property
    def _in_sessions(self) -> SessionMethods:
        if self.methods.in_sessions is None:
            raise malformed("This endpoint has no sessions")
        return self.methods.in_sessions

    def _bare_call(
        self, method: str, caller: Caller, channel: ResponseChannel | None = None
    ) -> Call:
        """A call of the caller's that is no request."""
        channel = channel or ResponseChannel(lambda event: None)
        return Call(
            method=method,
            params={},
            principal=caller.principal,
            scopes=caller.scopes,
            notifications=RequestNotifications(channel.send),
            channel=channel,
            request_id="",
            session=caller.session,
        )
