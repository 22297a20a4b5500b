"""The logs that a deployment chooses: of failed executions, and of exceptions' messages."""

from __future__ import annotations

from typing import Final

from mcp_tasks.environment import TRACEBACK_LOG_GROUP

from ..deployed_stack import DeployedStack
from ..running_executions import STATE_MACHINE
from ..state_machine_metadata import state_machine_metadata
from .account_checks import log_group
from .check import Check, NotTried, expect
from .deployed import Deployed

GROUP: Final = "AWS::Logs::LogGroup"
EXECUTIONS, TRACEBACKS = "Executions", "Tracebacks"
"""How the logical ids of these groups, and of the key of the second, begin (`infra/stack.py`)."""
VENDED: Final = "/aws/vendedlogs/states/"


def see_execution_log(deployed: Deployed) -> str:
    """With `execution_log=on`: the state machines log errors, and nothing that executions take and
    give, to a group whose name does not lengthen the account's policy (Step Functions developer
    guide, "Using CloudWatch Logs to log execution history").
    """
    stack = deployed.account()
    groups = stack.physical_ids(GROUP, EXECUTIONS)
    if not groups:
        raise NotTried("the stack does not log executions (execution_log=off)")
    group = groups[0]
    expect(group.startswith(VENDED), f"{group} is not under {VENDED}")
    count = 0
    states = stack.client("stepfunctions")
    for arn in stack.physical_ids(STATE_MACHINE):
        machine, count = state_machine_metadata(states, arn), count + 1
        name, logging = machine["name"], machine.get("loggingConfiguration", {})
        level = logging.get("level", "OFF")
        expect(level == "ERROR", f"{name} logs at {level}, not ERROR")
        expect(
            not logging.get("includeExecutionData"), f"{name} logs what executions take and give"
        )
        places = [
            place["cloudWatchLogsLogGroup"]["logGroupArn"] for place in logging["destinations"]
        ]
        there = any(f":log-group:{group}:" in f"{place}:" for place in places)
        expect(there, f"{name} logs to {', '.join(places)}, not to {group}")
    return f"{count} state machines log errors without data to {group}"


def see_tracebacks_log(deployed: Deployed) -> str:
    """With `log_messages=on`: tracebacks have a group with its own retention, and a key of its own.
    Without: no group holds messages, not one that an earlier deployment has left either.
    """
    stack = deployed.account()
    groups = stack.physical_ids(GROUP, TRACEBACKS)
    written = stack.variables.get(TRACEBACK_LOG_GROUP)
    if not groups:
        expect(written is None, f"the functions write tracebacks to {written}")
        prefix = f"{stack.name}-{TRACEBACKS}"
        left = stack.client("logs").describe_log_groups(logGroupNamePrefix=prefix)["logGroups"]
        names = ", ".join(group["logGroupName"] for group in left)
        expect(not left, f"log_messages=off, and {names} of an earlier deployment holds messages")
        return "log_messages=off: no log group holds messages"
    (name,) = groups
    expect(written == name, f"the functions write tracebacks to {written}, not to {name}")
    group, days = log_group(stack, name), _retention(stack)
    kept = group.get("retentionInDays")
    expect(kept == days, f"{name} keeps messages for {kept or 'ever, not'} of {days} days")
    (key,) = stack.physical_ids("AWS::KMS::Key", TRACEBACKS)
    own = str(group.get("kmsKeyId", "")).endswith(f"/{key}")
    expect(own, f"{name} is encrypted with {group.get('kmsKeyId', 'no key')}, not with its own")
    return f"messages are kept for {days} days, with a key of their own"


def _retention(stack: DeployedStack) -> int:
    """In days, as the template says."""
    resources = stack.template["Resources"]
    days = [
        resource["Properties"]["RetentionInDays"]
        for logical_id, resource in resources.items()
        if resource["Type"] == GROUP and logical_id.startswith(TRACEBACKS)
    ]
    return int(days[0])


CHECKS: Final = (
    Check("Log of executions", see_execution_log, only_aws=True, of_stack=True),
    Check("Log of messages", see_tracebacks_log, only_aws=True, of_stack=True),
)
