"""Ask a task's client, for a state that waits on a task token.

The state passes `{"task": <execution name>, "token": <task token>, "requests": {name: question}}`
and receives the answers by name. A question, and its answer, is one of

    {"message": ..., "schema": {...}}                    {"action": "accept", "content": {...}}
    {"message": ..., "url": "https://..."}               {"action": "accept"}
    {"sampling": {"messages": [...], "maxTokens": 9}}    {"role": ..., "content": ..., "model": ...}
    {"roots": {}}                                        {"roots": [{"uri": "file:///..."}]}

`"room"` is how many bytes the answers may have together, where the state's output is put together
with others; what is larger is pointed to.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..payloads.pointer import payload_prefix
from ..payloads.s3_store import PayloadStore
from ..protocol.capabilities import required_capabilities
from ..protocol.errors import MissingCapability
from ..tasks.errors import ClientCannotAnswer, TaskEnded, UnknownTask
from ..tasks.forms import InvalidQuestion, check_form
from ..tasks.questions import Ask, FormQuestion, Question, kinds, open_ask, question
from ..tasks.task import Task
from ..tasks.task_table import TaskTable
from .executions import Executions
from .finish import fail_task


def ask(event: Mapping[str, Any], task_table: TaskTable, executions: Executions, now: int) -> str:
    """Store the questions and the token on the task's row; returns what became of it, for the log.

    Raises InvalidQuestion when the state machine asks what no client can be asked.
    """
    task_id = event["task"]
    questions = _questions(event["requests"])
    try:
        task_table.ask(task_id, open_ask(event["token"], questions, event.get("room")), now)
    except (TaskEnded, UnknownTask):
        return "ended"
    except ClientCannotAnswer:
        # basic/index.mdx: what needs an undeclared capability is answered with -32021; by now the
        # request is a task, so the task fails with that error.
        error = MissingCapability(
            "The tool needs to ask the client", required_capabilities(kinds(questions.values()))
        )
        task = fail_task(task_id, error.as_error(), error.message, task_table, now)
        if task is None:
            return "ended"
        executions.stop(task.state_machine_arn, task_id)
        return "refused"
    return "asked"


def pass_on(task: Task, ask: Ask, executions: Executions, payloads: PayloadStore) -> bool:
    """Give a waiting state its answers; False when nothing waits for them any more.

    They have been stored, so that this may be repeated: the first token counts.
    """
    output = ask.output()
    if ask.room is not None:
        output = payloads.offload(output, ask.room, payload_prefix(task.tool, task.task_id))
    return executions.resume(ask.token, output)


def _questions(requests: object) -> dict[str, Question]:
    if not isinstance(requests, Mapping):
        raise InvalidQuestion("requests must be an object of questions by name")
    questions = {}
    for name, request in requests.items():
        try:
            asked = question(request)
            if isinstance(asked, FormQuestion):
                check_form(asked.schema)
        except InvalidQuestion as error:
            raise InvalidQuestion(f"{name}: {error}") from None
        questions[name] = asked
    return questions
