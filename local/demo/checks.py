"""The list of the checks, in the order in which they run."""

from __future__ import annotations

from typing import Final

from . import request_checks, task_checks
from .crash_check import kill_the_client
from .demo import Check

CHECKS: Final = [
    Check("Connect", request_checks.connect),
    Check("A tool that answers at once", request_checks.answer_within_the_request),
    Check("A workflow that asks a question", task_checks.run_a_workflow),
    Check("A function that runs as a task and asks", task_checks.ask_from_a_function),
    Check("The same function within a request", request_checks.ask_within_the_request),
    Check("A prompt and its resource", request_checks.get_a_prompt),
    Check("A client of the previous revision", request_checks.connect_an_older_client),
    Check("A subscription to two tasks", task_checks.subscribe_to_tasks),
    Check("A client that is killed", kill_the_client),
    Check("A task that is cancelled", task_checks.cancel),
    Check("A tool's own error", task_checks.return_a_tool_error),
    Check("A task that exceeds its time", task_checks.exceed_the_time),
]
