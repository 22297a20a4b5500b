"""The demo: a client drives the deployed sample tools and checks what comes back.

`python -m local.demo URL` runs it; `make demo` deploys the stack to an emulator first. It uses the
official `mcp` SDK and `mcp_tasks_client`, as any client of the server can.

- `runner.py` runs the checks one after the other and reports how each of them ended.
- `checks.py` lists the checks. Their code is in `request_checks.py`, `task_checks.py`,
  `subtask_checks.py` and `crash_check.py`; the docstring of a check is the text that is printed
  above it.
- `expectations.py` and `profile.py` compare what came back with what is expected.
- `screen.py`, `task_line.py` and `questions.py` are what the person at the terminal sees.
"""

import sys
from pathlib import Path

# The demo uses the client as it is in this repository; nothing installs it.
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "client"))
