"""The tasks extension (`io.modelcontextprotocol/tasks`) for the official Python SDK's client.

With `TasksExtension`, a tool call that becomes a task looks like any other call: `call_tool`
returns when the task has ended.

    extension = TasksExtension(on_update=lambda task: print(task.status, task.status_message))
    async with Client(url, elicitation_callback=ask_the_user, extensions=[extension]) as client:
        result = await client.call_tool("profile_dataset", {"csv": text})

A task outlives its client. `start_tool` and `wait_for_task` resume it by its id after a crash.
`TasksExtension.listen` receives changes by a subscription instead of polling. `follow_tree` polls a
task and the tasks of the tools that it calls.

Every client must be constructed with a `TasksExtension`: servers refuse the tasks methods to
clients that do not declare the extension. Titles in quotes in this package are sections of the
extension's specification, tasks.md.
"""

from .errors import TaskCancelled, TaskFailed
from .extension import TasksExtension
from .models import (
    EXTENSION,
    CancelledTask,
    CompletedTask,
    CreateTaskResult,
    DetailedTask,
    FailedTask,
    InputRequiredTask,
    Task,
    TaskStatus,
    WorkingTask,
)
from .polling import (
    DEFAULT_POLL_INTERVAL_MS,
    MIN_POLL_INTERVAL_MS,
    Answer,
    OnUpdate,
    follow_tree,
    wait_for_task,
)
from .requests import (
    CancelTaskRequest,
    GetTaskRequest,
    SubscriptionsListenParams,
    SubscriptionsListenRequest,
    TaskParams,
    UpdateTaskParams,
    UpdateTaskRequest,
    cancel_task,
    get_task,
    start_tool,
    update_task,
)
from .subscriptions import LISTEN_SECONDS, OnChange

__all__ = [
    "DEFAULT_POLL_INTERVAL_MS",
    "EXTENSION",
    "LISTEN_SECONDS",
    "MIN_POLL_INTERVAL_MS",
    "Answer",
    "CancelTaskRequest",
    "CancelledTask",
    "CompletedTask",
    "CreateTaskResult",
    "DetailedTask",
    "FailedTask",
    "GetTaskRequest",
    "InputRequiredTask",
    "OnChange",
    "OnUpdate",
    "SubscriptionsListenParams",
    "SubscriptionsListenRequest",
    "Task",
    "TaskCancelled",
    "TaskFailed",
    "TaskParams",
    "TaskStatus",
    "TasksExtension",
    "UpdateTaskParams",
    "UpdateTaskRequest",
    "WorkingTask",
    "cancel_task",
    "follow_tree",
    "get_task",
    "start_tool",
    "update_task",
    "wait_for_task",
]
