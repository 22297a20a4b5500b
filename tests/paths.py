"""The repository's folders, for tests of any depth."""

from __future__ import annotations

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
FUNCTIONS: Final = ROOT / "functions"
EVENTS: Final = ROOT / "events"
PLATFORM_TOOLS: Final = ROOT / "tests" / "platform_tools"
"""Tools of the platform's own tests, which a fork's `functions/tools` does not change."""
EMULATOR_RECORD: Final = ROOT / ".local" / "test" / "record"
"""Where the emulator of the tests records what it is asked (`local/emulator_record.py`)."""
