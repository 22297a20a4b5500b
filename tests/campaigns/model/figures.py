"""What happened in all runs of the model check."""

from __future__ import annotations

from collections import Counter
from typing import Final

figures: Final[Counter[str]] = Counter()
