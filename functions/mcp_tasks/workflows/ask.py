"""Ask a task's client on behalf of a state that waits on a task token, and deliver the answers.

The state passes `{"task": <execution name>, "token": <task token>, "requests": {name: question}}`
and receives the answers by name. A question and its answer are one of

    {"message": ..., "schema": {...}}                    {"action": "accept", "content": {...}}
    {"message": ..., "url": "https://..."}               {"action": "accept"}
    {"sampling": {"messages": [...], "maxTokens": 9}}    {"role": ..., "content": ..., "model": ...}
    {"roots": {}}                                        {"roots": [{"uri": "file:///..."}]}

`"max_output_bytes"` limits the answers together, for a state whose output Step Functions combines
with others; larger answers are offloaded to S3.
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
from .end_task import fail_task
from .execution_names import execution_name
from .executions import Executions
from .task_tree import TaskTree


def ask(event: Mapping[str, Any], task_table: TaskTable, executions: Executions, now: int) -> str:
    """Store the questions and the token on the task's row.

    Returns what happened, for the log: "asked"; "ended" when the task has ended; "refused" when its
    client cannot answer, which fails the task. Raises InvalidQuestion for a question that no client
    can be asked.
    """
    task_id = event["task"]
    questions = _questions(event["requests"])
    try:
        task_table.ask(
            task_id, open_ask(event["token"], questions, event.get("max_output_bytes")), now
        )
    except (TaskEnded, UnknownTask):
        return "ended"
    except ClientCannotAnswer as refused:
        # basic/index.mdx: a request that needs a capability which the client did not declare is
        # answered with -32021. The request has become a task, so the task fails with that error.
        error = MissingCapability(
            "The tool needs to ask the client", required_capabilities(kinds(questions.values()))
        )
        tree = TaskTree(task_table, executions)
        task = fail_task(
            refused.task,
            error.as_error(),
            tree,
            now,
            step_may_run=not refused.task.sequential,
        )
        if task is None:
            return "ended"
        executions.stop(task.state_machine_arn, execution_name(task))
        return "refused"
    return "asked"


def deliver_answers(task: Task, ask: Ask, executions: Executions, payloads: PayloadStore) -> bool:
    """Send a waiting state its answers; False when no state waits for them any more.

    This may be repeated: the answers are stored, and Step Functions takes a token once.
    """
    output = ask.output()
    if ask.max_output_bytes is not None:
        output = payloads.offload(
            output, ask.max_output_bytes, payload_prefix(task.tool, task.task_id)
        )
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
