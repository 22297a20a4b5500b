"""`make mutations`: remove each condition of the table, one at a time, and see its test fail."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from .table import CONDITIONS, Condition


def caught(condition: Condition) -> bool:
    """Whether the condition's test passes with it, and fails without it."""
    return _passes(condition.test, "") and not _passes(condition.test, condition.name)


def _passes(test: str, without: str) -> bool:
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "tests.conditions.plugin", f"tests/unit/{test}"],
        env={**os.environ, "WITHOUT": without},
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode not in (0, 1):  # 2 and more: it was not run at all
        raise RuntimeError(f"{test}: {run.stdout[-2000:]}{run.stderr[-2000:]}")
    return run.returncode == 0


def main() -> int:
    """Run them all; 1 when the removal of one is not noticed."""
    missed = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for condition, noticed in zip(CONDITIONS, pool.map(caught, CONDITIONS), strict=True):
            print("ok    " if noticed else "MISSED", condition.name, flush=True)
            missed += not noticed
    print(f"{len(CONDITIONS) - missed} of {len(CONDITIONS)} removals noticed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
