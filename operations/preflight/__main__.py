"""`make preflight`, which `make deploy` runs first: can this be deployed, and should it be?

CloudFormation would find out in the middle of a deployment and roll back, or would not find out.
`python -m operations.preflight [CLOUD ASSEMBLY] [--change 'WORD ...']` reads the template that
`cdk synth` wrote, the account, and what is deployed, with the credentials of whoever deploys. It
changes nothing. Where it may not read, it says so and lets CloudFormation decide.

Each check has a module of its own, and a line in `CHECKS`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from botocore.exceptions import BotoCoreError, ClientError

from local.console import say
from local.environment import ROOT

from . import (
    alias_routing,
    discovery,
    domain,
    failed_creation,
    interrupted_executions,
    kept_choices,
    new_domain,
    quotas,
    removed_tools,
    replaced_resources,
    reserved_concurrency,
    shared_concurrency,
    stack_names,
    wrapped_state_machines,
)
from .check import Check
from .deployment import Deployment, account

CHECKS: Final = (
    failed_creation.CHECK,
    stack_names.CHECK,
    kept_choices.CHECK,
    replaced_resources.CHECK,
    interrupted_executions.CHECK,
    removed_tools.CHECK,
    wrapped_state_machines.CHECK,
    alias_routing.CHECK,
    reserved_concurrency.CHECK,
    shared_concurrency.CHECK,
    quotas.CHECK,
    domain.CHECK,
    new_domain.CHECK,
    discovery.CHECK,
)
CHANGES: Final = frozenset[str]().union(*(check.changes for check in CHECKS))
"""The words that `change=` takes."""


def preflight(deployment: Deployment, checks: Sequence[Check] = CHECKS) -> int:
    """Run all checks, and say what they find. Returns 1 when one refuses the deployment."""
    refused = 0
    for check in checks:
        try:
            finding = check.run(deployment)
        except (BotoCoreError, ClientError) as error:
            say(f"WARNING: not checked whether {check.question}: {error}")
            continue
        if finding.refused:
            print(f"error: nothing was deployed, because {finding.text}\n", file=sys.stderr)
            refused = 1
        elif finding.text:
            say(finding.text)
    return refused


def changes_of(text: str) -> frozenset[str]:
    """The words of `change=`. Raises ArgumentTypeError for one that no check heeds."""
    words = frozenset(text.replace(",", " ").split())
    if unknown := sorted(words - CHANGES):
        known = ", ".join(sorted(CHANGES))
        raise argparse.ArgumentTypeError(f"change={' '.join(unknown)}: one or more of {known}")
    return words


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m operations.preflight")
    parser.add_argument("assembly", nargs="?", type=Path, default=ROOT / "cdk.out")
    parser.add_argument("--change", type=changes_of, default=frozenset(), metavar="WORDS")
    parser.add_argument("--remove", default="", help="tools whose running tasks may be ended")
    given = parser.parse_args()
    removed = frozenset(given.remove.split())
    sys.exit(preflight(Deployment.read(given.assembly, *account(), given.change, removed)))
