"""The companion tools, for clients that can neither take tasks nor resume event streams.

Such a client calls a long tool as any other. The call becomes a task, and is answered in time: with
the tool's result, or with one that tells the client's model to call `task_result`. A client of
2026-07-28 that can be asked is asked by a multi round-trip request; any other one by a result that
tells its model to ask the user and to call `task_answer`.

The tools are listed only to these clients, and only where a tool may become a task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ...audit import audit
from ...notifications.clock import SYSTEM_CLOCK, Clock
from ...protocol.errors import ErrorCode, ProtocolError, invalid_params
from ...registry.catalogue import Catalogue, ToolEntry
from ...tasks.questions import ACTIONS, Kind, Question, kinds
from ..call import Call, Complete, InputNeeded, Method, Outcome, TaskCreated
from .asking_subtasks import AskingSubtasks
from .call_quota import CallQuota
from .companion_results import ANSWER, CANCEL, RESULT, cancel_result, open_questions, task_result
from .poll_rate_limit import PollRateLimit
from .request_state import RequestStateCipher, request_digest
from .result_links import ResultLinks
from .stream_connection import BUFFERED_MS, READ_INTERVAL_SECONDS, STREAM_END_MS
from .task_operations import TaskOperations

KINDS: Final = frozenset({Kind.FORM, Kind.URL})
"""What a task may ask any client with these tools, whatever it declares: its model asks the user,
and calls `task_answer`."""

DEFAULT_WAIT_SECONDS: Final = 20

_TASK_ID: Final = {
    "type": "string",
    "description": "The id of the task, as the call that began it has told it",
}


def _definition(
    name: str, description: str, annotations: dict[str, bool], **arguments: Any
) -> dict[str, Any]:
    required = ["task_id", *(n for n, schema in arguments.items() if "default" not in schema)]
    return {
        "name": name,
        "description": description,
        "inputSchema": {
            "type": "object",
            "properties": {"task_id": _TASK_ID, **arguments},
            "required": [name for name in required if name != "content"],
        },
        "annotations": annotations,
    }


DEFINITIONS: Final = (
    _definition(
        RESULT,
        "Wait for the result of a tool that is still running as a task. Answers with the tool's "
        "result, with its progress, or with the question that it waits for.",
        {"readOnlyHint": True},
        wait_seconds={
            "type": "number",
            "minimum": 0,
            "default": DEFAULT_WAIT_SECONDS,
            "description": "How long to wait when there is no result yet",
        },
    ),
    _definition(
        ANSWER,
        "Answer a question of a running task, with what the user has said.",
        {"destructiveHint": False},
        key={"type": "string", "description": "The question's key"},
        action={"type": "string", "enum": sorted(ACTIONS), "default": "accept"},
        content={
            "type": "object",
            "description": "With the action accept: the values that the question's requestedSchema "
            "wants",
        },
    ),
    _definition(
        CANCEL, "Cancel a running task.", {"destructiveHint": True, "idempotentHint": True}
    ),
)
NAMES: Final = frozenset(str(definition["name"]) for definition in DEFINITIONS)


@dataclass(frozen=True, slots=True)
class Asked:
    """A task whose questions a call has been sent."""

    task_id: str
    of: str
    """The task whose result the call waits for: the same one, or one that it is a subtask of."""


@dataclass(frozen=True, slots=True)
class CompanionTools:
    """Serves `tools/call`, around the tools of the catalogue."""

    catalogue: Catalogue
    call_tool_of_catalogue: Method
    operations: TaskOperations
    result_links: ResultLinks
    call_quota: CallQuota
    poll_rate_limit: PollRateLimit
    cipher: Callable[[], RequestStateCipher]
    clock: Clock = SYSTEM_CLOCK

    def call_tool(self, call: Call) -> Outcome:
        """`tools/call`. Raises ProtocolError."""
        if call.declares_tasks:
            return self.call_tool_of_catalogue(call)
        if call.params.get("name") in NAMES:
            return self._own(call, str(call.params["name"]), call.params.get("arguments", {}))
        asked = self._asked_task(call)
        if asked is not None:
            self.operations.answer(call, asked.task_id, call.input_responses or {})
            return self.wait(call, asked.of)
        outcome = self.call_tool_of_catalogue(call)
        if isinstance(outcome, TaskCreated) and not call.waits:
            return self.wait(call, outcome.task.task_id)
        return outcome

    def listed(
        self, tools: Iterable[ToolEntry], shape: Callable[[ToolEntry], dict[str, Any]]
    ) -> dict[str, dict[str, Any]]:
        """The definitions for a client with these tools, by name.

        A tool that may be answered for in their words has no output schema: its results would not
        fit.
        """
        shown = {entry.name: shape(entry) for entry in tools}
        for entry in self.catalogue.tools.values():
            if becomes_task(entry):
                shown[entry.name] = {
                    k: v for k, v in shown[entry.name].items() if k != "outputSchema"
                }
        return {**shown, **{str(each["name"]): dict(each) for each in DEFINITIONS}}

    def wait(self, call: Call, task_id: str, wait_seconds: float = DEFAULT_WAIT_SECONDS) -> Outcome:
        """Wait for a task's result or question. Raises ProtocolError (-32602) for an unknown one.

        Its progress is reported meanwhile, to a client that has asked for it.
        """
        channel, began_at = call.channel, self.clock.now_ms()
        end = began_at + BUFFERED_MS
        if channel.deadline_ms is not None:
            end = channel.deadline_ms - STREAM_END_MS
        end = min(end, began_at + int(wait_seconds * 1000))
        revision, subtasks = 1, AskingSubtasks(self.operations.task_table)
        with self.call_quota.hold(call):
            while True:
                task = self.operations.read(call, task_id)
                asking = [task, *subtasks.that_ask(task, self.clock.now_ms())]
                asking = [each for each in asking if open_questions(each)] or [task]
                questions = open_questions(asking[0])
                if task.status.terminal or questions or self.clock.now_ms() >= end:
                    break
                if task.revision > revision and task.status_message is not None:
                    call.notifications.report(task.status_message, None)
                revision = task.revision
                self.clock.sleep(READ_INTERVAL_SECONDS)
        audit("read", task_id, call.principal)
        # A client with a session would be asked on an event stream, which it does not resume.
        if questions and call.session is None and kinds(questions.values()) <= call.client_can:
            return self._ask(call, Asked(asking[0].task_id, task_id), questions)
        return Complete(task_result(asking[0], self.result_links, self.clock.now_ms()))

    def _ask(self, call: Call, asked: Asked, questions: Mapping[str, Question]) -> InputNeeded:
        """The task's questions, as those of a multi round-trip request."""
        now, digest = self.clock.now_ms(), _digest(call)
        state = self.cipher().seal({"taskId": asked.task_id, "of": asked.of}, digest, now)
        return InputNeeded(questions, state)

    def _asked_task(self, call: Call) -> Asked | None:
        """The task whose questions the request answers; None for a request that is of no task."""
        if call.request_state is None:
            return None
        try:
            state = self.cipher().open(call.request_state, _digest(call), self.clock.now_ms())
        except ProtocolError:
            return None  # the state of a call within its request, or none at all
        task_id = str(state["taskId"])
        return Asked(task_id, str(state.get("of", task_id)))

    def _own(self, call: Call, name: str, arguments: Any) -> Outcome:
        """Call a companion tool. What is wrong with its arguments is a result with `isError`."""
        from ...registry.results import error_result

        given = arguments if isinstance(arguments, Mapping) else {}
        try:
            task_id = self.operations.check_id(given.get("task_id"))
            self.poll_rate_limit.count(call.principal, task_id)
            if name == ANSWER:
                task_id = self._answer(call, task_id, given)
            if name == CANCEL:
                return Complete(cancel_result(self.operations.cancel(call, task_id)[0]))
            return self.wait(call, task_id, _wait_seconds(given))
        except ProtocolError as error:
            if error.code != ErrorCode.INVALID_PARAMS:
                raise
            return Complete(error_result(error.message))

    def _answer(self, call: Call, task_id: str, given: Mapping[str, Any]) -> str:
        """Answer a question; returns the task whose call waits: it may be one of a subtask."""
        task = self.operations.read(call, task_id)
        key, questions = given.get("key"), open_questions(task)
        if not isinstance(key, str) or key not in questions:
            raise invalid_params(
                f"No question of the task has this key. Open are: {', '.join(questions) or 'none'}"
            )
        answer = {"action": given.get("action", "accept"), "content": given.get("content")}
        self.operations.answer(call, task_id, {key: answer})
        while task.parent is not None:
            task = self.operations.read(call, task.parent.task_id)
        return task.task_id


def becomes_task(entry: ToolEntry) -> bool:
    """Whether a call of a client without tasks becomes a task."""
    return entry.task_support != "forbidden" and entry.without_tasks == "task"


def _digest(call: Call) -> str:
    """Of a call whose task asks: apart from the digests of calls that ask themselves."""
    params = call.params
    return request_digest(call.principal, "task", str(params.get("name")), params.get("arguments"))


def _wait_seconds(given: Mapping[str, Any]) -> float:
    wanted = given.get("wait_seconds", DEFAULT_WAIT_SECONDS)
    is_number = isinstance(wanted, int | float) and not isinstance(wanted, bool)
    return max(0.0, min(float(wanted), 900.0)) if is_number else DEFAULT_WAIT_SECONDS
