"""A fault campaign on an emulator of its own: `make chaos`.

At least 500 tasks of all kinds are made while calls to DynamoDB, Step Functions, EventBridge and S3
fail before or after they took effect, get no answer, are throttled, or come twice, and while the
functions' processes are killed. Then the faults stop, and all has to settle.

Exit code 1 when an acknowledged task was lost, or anything happened twice.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
from typing import Final

from local import emulator as emulators
from local.console import say
from local.deployment import deploy
from local.environment import STATE
from tests.campaigns.chaos.run import TOOLS, Outcome, campaign
from tests.campaigns.chaos.verdict import show
from tests.integration.support.aws import client_of
from tests.limits import RAISED

NAME: Final = "chaos"
FEW_WORKERS: Final = {"max_workers": "5"}
"""Of each tool: each process that is killed has a successor, whose start takes a second of a core.
A state whose call finds none free is retried."""


def tell(outcome: Outcome) -> None:
    """Print what came of it."""
    faults, verdict = outcome.faults, outcome.verdict
    say(f"\n{faults.counts.total()} faults in {faults.calls} calls to AWS")
    for kind, count in faults.by_kind.most_common():
        say(f"    {kind:36}{count:8}")
    for operation, count in faults.by_operation.most_common():
        say(f"    {operation:36}{count:8}")
    say(f"{'workers killed':40}{outcome.killed:8}")
    say(f"{'requests of clients':40}{outcome.requests:8}")
    say(f"{'  that were repeated':40}{outcome.repeated:8}\n")
    show(verdict)
    for name, seconds in {
        "seconds with faults": outcome.faulty_seconds,
        "seconds until all tasks were over": outcome.settled_seconds,
        "seconds until nothing ran for them": outcome.quiet_seconds,
    }.items():
        say(f"{name:40}{'never' if seconds is None else round(seconds):>8}")
    for title, found in {"LOST": verdict.lost, "TWICE": verdict.twice}.items():
        for name, wrong in found.items():
            say(f"{title} {name}: {'; '.join(wrong)}")
    for name, story in outcome.stories.items():
        say(f"\n{name}\n{story}")


def main() -> int:
    """Run it; the exit code tells whether anything was lost, or twice."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.chaos")
    parser.add_argument("--tasks", type=int, default=500)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    parser.add_argument("--minutes", type=float, default=6, help="that it may take to settle")
    options = parser.parse_args()
    folder = STATE / NAME / "ledger"
    shutil.rmtree(folder, ignore_errors=True)
    running = emulators.start(NAME)
    try:
        stack = deploy(running, TOOLS, f"mcp-{NAME}", {**RAISED, **FEW_WORKERS})
        say(f"seed {options.seed}")
        outcome = campaign(
            stack,
            client_of(running),
            folder,
            tasks=options.tasks,
            seed=options.seed,
            settle_seconds=options.minutes * 60,
        )
    finally:
        running.stop()
    tell(outcome)
    return 1 if outcome.verdict.lost or outcome.verdict.twice else 0


if __name__ == "__main__":
    sys.exit(main())
