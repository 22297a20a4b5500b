"""Hostile requests over HTTP, on an emulator of their own: `make hostile`.

They are correct requests that were spoiled: their bodies, headers, request lines, tokens, and ids.
Every twentieth is left as it is. Half of them go through the emulator's API Gateway, half through
the local one that streams. Request N of a seed is always the same, so that `--only N` repeats it.

Before them, arguments that cost as much as possible are sent to tools with arbitrary annotations:
each body is answered in a process of its own, whose CPU time and memory are measured.

Exit code 1 when an answer is a 5xx, is neither JSON-RPC nor empty, or tells what it must not; when
there is a row or an execution that no answer told of; when somebody else's task has changed; when
arguments cost more than 2 seconds or 300 MB.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys

from infra.bundle import ROOT
from local import emulator as emulators
from local.console import say
from local.deployment import deploy
from local.environment import STATE
from local.gateway import DeployedApi, Gateway
from tests.campaigns.hostile.arguments import hostile_arguments, show_costs
from tests.campaigns.hostile.run import hostile, show
from tests.campaigns.hostile.scene import SCOPE
from tests.integration.support.aws import client_of
from tests.integration.support.issuer import AUDIENCE, Issuer

NAME = "hostile"
LIMITS = {
    "max_tasks": "500",
    "max_creations": "10000",
    "max_polls": "1000",
    "max_subscriptions": "100",
    "max_new_subscriptions": "10000",
    "max_calls": "100",
    "rate": "10000",
    "burst": "10000",
}
"""So large that a caller who is refused is refused for another reason."""


def main() -> int:
    """Print what came of it; the exit code tells whether anything was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.hostile")
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--arguments", type=int, default=2000, help="bodies of wrong arguments")
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    parser.add_argument("--seconds", type=int, default=1800, help="that all may take")
    parser.add_argument("--only", type=int, help="the number of the one request to send")
    options = parser.parse_args()
    only = options.only
    numbers = list(range(options.requests)) if only is None else [only]
    bodies = hostile_arguments(options.seed, range(options.arguments if only is None else 0))
    show_costs(bodies)
    tools = STATE / NAME / "tools"
    running = emulators.start(NAME)
    try:
        shutil.rmtree(tools, ignore_errors=True)
        shutil.copytree(ROOT / "tests" / "integration" / "guarded_tools", tools)
        shutil.copytree(ROOT / "tests" / "integration" / "tools" / "walk", tools / "walk")
        with Issuer() as issuer:
            access = {"auth": "oauth", "issuer": issuer.url, "audience": AUDIENCE, "scopes": SCOPE}
            stack = deploy(running, tools, f"mcp-{NAME}", {**access, **LIMITS})
            aws = client_of(running)
            with Gateway(DeployedApi.read(stack, aws)) as gateway:
                say(f"seed {options.seed}")
                urls = [("emulator", stack.url), ("gateway", gateway.url)]
                report = hostile(
                    stack,
                    aws,
                    issuer,
                    urls,
                    seed=options.seed,
                    numbers=numbers,
                    seconds=options.seconds,
                )
    finally:
        running.stop()
    show(report)
    return 1 if report.faults or bodies.faults else 0


if __name__ == "__main__":
    sys.exit(main())
