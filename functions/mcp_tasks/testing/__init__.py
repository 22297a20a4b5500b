"""Test a durable tool in this process: no AWS, time skipped, steps replaced, crashes on demand.

task = start_task(onboard, {"company": "Acme"}, steps={look_up: lambda company: FACTS})
task.answer({"answer": {"action": "accept", "content": {"yes": True}}})
assert task.result["structuredContent"] == ...

crash_everywhere(onboard, {"company": "Acme"}, answers=..., steps=...)

What a tool raises, and what each attempt of a step raises, is shown with its whole traceback on
standard error: pytest prints it for a test that fails.
"""

from ..tracebacks import show_tracebacks
from .crashes import crash_everywhere
from .local_task import LocalTask, start_task
from .memory import Crash

show_tracebacks()

__all__ = ["Crash", "LocalTask", "crash_everywhere", "start_task"]
