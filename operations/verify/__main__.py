"""`make verify [stack= | stage= | url=]`: try a deployment, and print a report.

    python -m operations.verify [--stack NAME | --url URL] [--profile aws|local]
        [--auth none|iam|oauth] [--task CALL] [--question CALL --answer JSON] [--large CALL]
        [--slow yes] [--ring yes] [--fails CALL]

An access token comes from the environment variable MCP_TOKEN, so that it stands in no list of
processes. A CALL is a tool's name and its arguments: 'simulate_savings {"monthly": 200}'. The exit
code is 1 when a check failed. `docs/verify.md` describes each check.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tomllib
from datetime import UTC, datetime

from local.console import fail, say
from local.deployment import endpoint as emulated_endpoint
from local.emulator import find
from local.environment import ROOT

from ..deployed_stack import (
    Clients,
    DeployedStack,
    NoStack,
    add_stack_options,
    chosen_stack,
    clients_of,
)
from . import (
    account_checks,
    alarm_checks,
    browser_checks,
    data_checks,
    domain_checks,
    encryption_checks,
    endpoint_checks,
    execution_checks,
    log_checks,
    monitoring_checks,
    permission_checks,
    quiet_call_checks,
    quota_checks,
    report,
    state_machine_checks,
    task_checks,
)
from .check import Check, outcome_of
from .credentials import AccessToken, Credentials, NoCredentials, Signature
from .deployed import Deployed, ToolCall, ToolCalls
from .endpoint import Endpoint

CHECKS: tuple[Check, ...] = (
    *endpoint_checks.CHECKS,
    *browser_checks.CHECKS,
    *task_checks.CHECKS,
    *quiet_call_checks.CHECKS,
    *domain_checks.CHECKS,
    *account_checks.CHECKS,
    *data_checks.CHECKS,
    *encryption_checks.CHECKS,
    *monitoring_checks.CHECKS,
    *alarm_checks.CHECKS,
    *log_checks.CHECKS,
    *execution_checks.CHECKS,
    *state_machine_checks.CHECKS,
    *quota_checks.CHECKS,
    *permission_checks.CHECKS,
)
TOKEN = "MCP_TOKEN"  # noqa: S105  a variable's name


def verify(deployed: Deployed) -> int:
    """Run all checks, and print each as it ends. Returns 1 when one failed."""
    say(f"# Verification of {deployed.endpoint.url}\n")
    say(report.facts(_facts(deployed)) + "\n")
    say(report.HEAD)
    outcomes = []
    for check in CHECKS:
        outcomes.append(outcome := outcome_of(check, deployed))
        say(report.line(outcome))
    say(f"\n{report.summary(outcomes)}")
    return 1 if any(outcome.verdict == "FAILED" for outcome in outcomes) else 0


def _facts(deployed: Deployed) -> list[tuple[str, str]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    facts = [
        ("template", str(project["version"])),
        ("at", datetime.now(UTC).isoformat(timespec="seconds")),
        ("from", f"Python {platform.python_version()}"),
        ("called", type(deployed.endpoint.credentials).__name__),
        (
            "where",
            "the emulator, which proves nothing of AWS" if deployed.on_emulator else "AWS",
        ),
    ]
    if deployed.stack is not None:
        region = deployed.stack.client("cloudformation").meta.region_name
        chosen = {
            name.lower(): deployed.stack.variables[name]
            for name in ("AUTH", "CELL", "COMPANION_TOOLS")
            if name in deployed.stack.variables
        }
        facts += [("stack", f"{deployed.stack.name} in {region}"), ("options", json.dumps(chosen))]
    return facts


def _credentials(auth: str, clients: Clients) -> Credentials:
    token = os.environ.get(TOKEN)
    if auth == "oauth" and not token:
        raise ValueError(f"auth=oauth: {TOKEN} has no access token; export one, and run it again")
    if token:
        return AccessToken(token)
    if auth == "iam":
        return Signature(clients("sts").meta.region_name)
    return NoCredentials()


def _calls(options: argparse.Namespace) -> ToolCalls:
    samples = ToolCalls()
    return ToolCalls(
        task=ToolCall.parse(options.task) if options.task else samples.task,
        question=ToolCall.parse(options.question) if options.question else samples.question,
        answer=json.loads(options.answer) if options.answer else samples.answer,
        large=ToolCall.parse(options.large) if options.large else None,
        fails=ToolCall.parse(options.fails) if options.fails else None,
    )


def _deployed(options: argparse.Namespace) -> Deployed:
    clients, local = clients_of(options.profile), options.profile == "local"
    calls, slow, ring = _calls(options), options.slow == "yes", options.ring == "yes"
    if options.url:
        credentials = _credentials(options.auth or "none", clients)
        return Deployed(Endpoint(options.url, credentials), local, None, calls, slow=slow)
    stack = DeployedStack(chosen_stack(options), clients)
    url = stack.outputs["Endpoint"]
    if local and (running := find("up")):
        url = emulated_endpoint(running, stack.outputs["ApiId"])
    credentials = _credentials(options.auth or stack.variables["AUTH"], clients)
    return Deployed(Endpoint(url, credentials), local, stack, calls, slow=slow, ring=ring)


def parser() -> argparse.ArgumentParser:
    """The command's words, which are those of `make verify`."""
    words = argparse.ArgumentParser(prog="python -m operations.verify")
    words.add_argument("--url", help="an endpoint, whose account cannot be read")
    add_stack_options(words)
    words.add_argument("--auth", choices=["none", "iam", "oauth"])
    for call in ("task", "question", "large", "fails"):
        words.add_argument(f"--{call}", help="a tool, and its arguments as a JSON object")
    words.add_argument("--answer", help="the answer to the question, as a JSON object")
    words.add_argument(
        "--slow", choices=["yes", "no"], default="no", help="run the checks that take minutes, too"
    )
    words.add_argument(
        "--ring", choices=["yes", "no"], default="no", help="let an alarm ring and notify its topic"
    )
    return words


def main() -> int:
    """Read the command's words and run the checks."""
    try:
        return verify(_deployed(parser().parse_args()))
    except (NoStack, ValueError, OSError) as error:
        return fail(error)


if __name__ == "__main__":
    sys.exit(main())
