"""Test a durable tool in this process: no AWS, time skipped, steps replaced, crashes on demand.

task = start_task(onboard, {"company": "Acme"}, steps={look_up: lambda company: FACTS})
task.answer({"answer": {"action": "accept", "content": {"yes": True}}})
assert task.result["structuredContent"] == ...

crash_everywhere(onboard, {"company": "Acme"}, answers=..., steps=...)
"""

from .crashes import crash_everywhere
from .local_task import LocalTask, start_task
from .memory import Crash

__all__ = ["Crash", "LocalTask", "crash_everywhere", "start_task"]
