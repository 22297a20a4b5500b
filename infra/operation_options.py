"""The options of operations: alarms, logs, keys and concurrency. A part of the table of options."""

from __future__ import annotations

from typing import Final

from .option import Option

TOPIC_ARN: Final = r"arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_.-]{1,256}"
KEY_ARN: Final = r"arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/(mrk-)?[0-9a-f-]+"

OPERATIONS: Final = (
    Option(
        "alarms",
        "The SNS topic that the stack's alarms notify; without it, none "
        "([operations](operations.md)).",
        "the ARN of an SNS topic of this region, arn:aws:sns:...",
        "alarms=arn:aws:sns:eu-west-1:111122223333:on-call",
        emulator=False,
        pattern=f"|{TOPIC_ARN}",
    ),
    Option(
        "access_log",
        "Whether API Gateway logs a line per request. It can only where the account's settings of "
        "the region name a role for its logs, which a stack should not change.",
        "on or off",
        "access_log=on",
        "off",
        emulator=False,
        pattern="on|off",
    ),
    Option(
        "encryption",
        "Which keys encrypt what is stored: keys that AWS manages (`aws`), a KMS key of the "
        "stack's own (`customer`, about $1 a month and its calls), or a key of yours, whose policy "
        "lets CloudWatch Logs and EventBridge use it.",
        "aws (keys that AWS manages), customer (a KMS key of the stack's own) or the ARN of a KMS "
        "key of this region, arn:aws:kms:...:key/...",
        "encryption=customer",
        "aws",
        emulator=False,
        pattern=f"aws|customer|{KEY_ARN}",
    ),
    Option(
        "reserved",
        "Whether the functions that end tasks, tell of changes, sweep, and check tokens have "
        "concurrent executions of their own, which workers and subscriptions cannot take: 63, and "
        "with `auth=oauth` a tenth of `rate` more. `make deploy` checks first that the account has "
        "them; a new account may not.",
        "on or off",
        "reserved=off",
        "on",
        emulator=False,
        pattern="on|off",
    ),
)
