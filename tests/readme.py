"""What README.md shows."""

from __future__ import annotations

import re
from typing import Final

from tests.paths import ROOT

README: Final = (ROOT / "README.md").read_text(encoding="utf-8")


def tool_in_ten_lines() -> str:
    """The first tool that it shows: `count_words`, which runs as a task."""
    shown = re.search(r"```python\n(.*?)```", README, re.DOTALL)
    assert shown, "README.md shows no Python"
    return shown[1]
