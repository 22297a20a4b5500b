"""The list of the checks, in the order in which they run, each with the samples that it needs."""

from __future__ import annotations

from typing import Final

from . import request_checks, subtask_checks, task_checks
from .crash_check import kill_the_client
from .demo import Check

GREET: Final = "greet"
PROFILE: Final = "profile_dataset"
PUBLISH: Final = "publish_dataset"
SAVINGS: Final = "simulate_savings"
PROMPT: Final = "plan_savings"

CHECKS: Final = [
    Check("Connect", request_checks.connect),
    Check("A tool that answers at once", request_checks.answer_within_the_request, (GREET,)),
    Check("A workflow that asks a question", task_checks.run_a_workflow, (PROFILE,)),
    Check("A function that runs as a task and asks", task_checks.ask_from_a_function, (SAVINGS,)),
    Check("A durable function with subtasks", subtask_checks.publish, (PUBLISH, PROFILE)),
    Check("Its cancellation, which undoes it", subtask_checks.cancel, (PUBLISH, PROFILE)),
    Check("The same function within a request", request_checks.ask_within_the_request, (SAVINGS,)),
    Check("A prompt and its resource", request_checks.get_a_prompt, (PROMPT,)),
    Check("A client of the previous revision", request_checks.connect_an_older_client),
    Check("A subscription to two tasks", task_checks.subscribe_to_tasks, (SAVINGS,)),
    Check("A client that is killed", kill_the_client, (PROFILE,)),
    Check("A task that is cancelled", task_checks.cancel, (PROFILE,)),
    Check("A tool's own error", task_checks.return_a_tool_error, (PROFILE,)),
    Check("A task that exceeds its time", task_checks.exceed_the_time, (SAVINGS,)),
]
