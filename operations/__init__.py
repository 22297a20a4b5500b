"""The operator's commands. They share names and formats with `mcp_tasks`, the functions' code."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "functions"))
