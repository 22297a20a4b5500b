"""`make preflight`, which `make deploy` runs first: can this be deployed, and should it be?

CloudFormation would find out in the middle of a deployment and roll back, or would not find out.
`python -m operations.preflight [CLOUD ASSEMBLY]` reads the template that `cdk synth` wrote, the
account, and what is deployed, with the credentials of whoever deploys. It changes nothing. Where it
may not read, it says so and lets CloudFormation decide.

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

from . import quotas, reserved_concurrency, shared_concurrency
from .check import Check
from .deployment import Deployment, account

CHECKS: Final = (reserved_concurrency.CHECK, shared_concurrency.CHECK, quotas.CHECK)


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


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m operations.preflight")
    parser.add_argument("assembly", nargs="?", type=Path, default=ROOT / "cdk.out")
    sys.exit(preflight(Deployment.read(parser.parse_args().assembly, *account())))
