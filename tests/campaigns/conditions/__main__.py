"""`make mutations`: remove each condition of the table, one at a time, and see its test fail."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from .table import CONDITIONS, Condition

NOTED_IN: Final = [
    f"tests/unit/{name}.py"
    for name in (
        "tasks/test_task_table",
        "tasks/test_subtask_rows",
        "durable/test_journal_table",
        "workflows/test_successor",
        "tasks/test_reconcile_index",
        "tasks/test_quotas",
        "tasks/test_idempotency",
        "notifications/test_mailbox_quota",
        "sessions/test_call_table",
        "sessions/test_session_table",
        "workflows/test_reconcile",
        "workflows/test_clocks",
    )
]
"""Where every conditional write occurs."""


def caught(condition: Condition) -> bool:
    """Whether the condition's test passes with it, and fails without it."""
    return _passes(condition.test, "") and not _passes(condition.test, condition.name)


def _passes(test: str, without: str) -> bool:
    run = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "tests.campaigns.conditions.plugin",
            f"tests/unit/{test}",
        ],
        env={**os.environ, "WITHOUT": without},
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode not in (0, 1):  # 2 and more: it was not run at all
        raise RuntimeError(f"{test}: {run.stdout[-2000:]}{run.stderr[-2000:]}")
    return run.returncode == 0


def unknown() -> set[str]:
    """The conditions that occur in the unit tests' writes, and are not in the table; or are in the
    table, and do not occur.
    """
    with tempfile.TemporaryDirectory() as folder:
        noted = Path(folder) / "noted"
        run = subprocess.run(
            [
                sys.executable,
                "-m",
                "pytest",
                "-q",
                "-p",
                "tests.campaigns.conditions.plugin",
                *NOTED_IN,
            ],
            env={**os.environ, "NOTED": str(noted)},
            capture_output=True,
            text=True,
            check=False,
        )
        if run.returncode != 0:
            raise RuntimeError(run.stdout[-2000:])
        found = set(noted.read_text(encoding="utf-8").splitlines())
    return found ^ {condition.name for condition in CONDITIONS}


def main() -> int:
    """Run them all; 1 when the removal of one is not noticed."""
    missed = 0
    for name in sorted(unknown()):
        print("NOT IN THE TABLE, or not in the code:", name)
        missed += 1
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for condition, noticed in zip(CONDITIONS, pool.map(caught, CONDITIONS), strict=True):
            print("ok    " if noticed else "MISSED", condition.name, flush=True)
            missed += not noticed
    print(f"{len(CONDITIONS)} conditions, {missed} faults")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
