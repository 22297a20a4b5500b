"""The CDK app. It shares names and defaults with the functions' library, `mcp_tasks`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "functions"))
