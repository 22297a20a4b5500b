"""The options of monitoring: alarms, cost, dashboard, traces. A part of the table of options."""

from __future__ import annotations

from typing import Final

from .option import Option

TOPIC_ARN: Final = r"arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_.-]{1,256}"
EMAIL: Final = r"[^\s@:,;'\"<>]{1,64}@[A-Za-z0-9.-]{1,255}"
TOPIC: Final = "topic"
OFF: Final = "off"


def _switch(name: str, meaning: str, default: str) -> Option:
    other = "off" if default == "on" else "on"
    return Option(
        name,
        meaning,
        "on or off",
        f"{name}={other}",
        default,
        emulator=False,
        pattern="on|off",
    )


MONITORING: Final = (
    Option(
        "alarms",
        "Whom the stack's alarms notify ([operations](operations.md#alarms)): an SNS topic of the "
        "stack's own, to which you subscribe (`topic`) or to which an e-mail address is "
        "subscribed, or a topic of yours. With `off`, nobody, and there are no alarms but those of "
        "work that is lost or late.",
        "topic, an e-mail address, the ARN of an SNS topic of this region (arn:aws:sns:...), or "
        "off",
        "alarms=on-call@example.com",
        TOPIC,
        emulator=False,
        pattern=f"{TOPIC}|{OFF}|{TOPIC_ARN}|{EMAIL}",
    ),
    Option(
        "budget",
        "What the stack may cost in a month, in US dollars. AWS Budgets notifies the alarms' topic "
        "when the month is expected to cost more, when it has, and when a single day costs a tenth "
        "of it. It counts what carries the tag `mcp-cell` of this cell, once the account that "
        "pays has activated this tag as a cost allocation tag.",
        "1 to 1000000 dollars, or nothing for no budget",
        "budget=200",
        emulator=False,
        pattern="|[1-9][0-9]{0,5}|1000000",
    ),
    _switch(
        "dashboard",
        "Whether the stack has a CloudWatch dashboard, named after it. An account's dashboards "
        "cost $3 a month each, but for three that are small.",
        "on",
    ),
    _switch(
        "tool_metrics",
        "Whether the metrics of tasks are there for each tool, too. Each tool that is used costs "
        "up to $2.10 a month more: seven custom metrics. Without it, the dashboard shows the "
        "executions of each tool, which Step Functions counts for nothing.",
        "off",
    ),
    _switch(
        "tracing",
        "Whether AWS X-Ray traces requests through API Gateway, the functions, the state machines "
        "and the event bus. It costs $5 a million recorded traces, and records one request a "
        "second and 5 % of the others.",
        "off",
    ),
    _switch(
        "execution_log",
        "Whether Step Functions logs the errors of executions, without inputs and outputs. The "
        "roles of the state machines may then change the log deliveries of the account, which IAM "
        "cannot restrict.",
        "off",
    ),
)
