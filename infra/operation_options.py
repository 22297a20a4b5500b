"""The options of operations: logs, keys and concurrency. A part of the table of options."""

from __future__ import annotations

from typing import Final

from .option import Option

KEY_ARN: Final = r"arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/(mrk-)?[0-9a-f-]+"
DEPLOYMENT_CONFIGS: Final = (
    *(f"Canary10Percent{minutes}Minutes" for minutes in (5, 10, 15, 30)),
    "Linear10PercentEvery1Minute",
    *(f"Linear10PercentEvery{minutes}Minutes" for minutes in (2, 3, 10)),
)
"""CodeDeploy user guide, "Working with deployment configurations in CodeDeploy", without the
`CodeDeployDefault.Lambda` with which each begins."""
AWS_MANAGED: Final = "aws"
OWN_KEY: Final = "customer"
"""The values of `encryption` that are no key."""

OPERATIONS: Final = (
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
        "log_messages",
        "Whether the tracebacks of crashes are kept, with the messages of exceptions, which may "
        "quote arguments and answers: for a week, in a log group that has a KMS key of its own "
        "([operations](operations.md#a-tool-crashed)).",
        "on or off",
        "log_messages=on",
        "off",
        pattern="on|off",
    ),
    Option(
        "encryption",
        "Which keys encrypt what is stored: keys that AWS manages (`aws`), a KMS key of the "
        "stack's own (`customer`, about $1 a month and its calls; it outlives the stack), or a key "
        "of yours, whose policy lets CloudWatch Logs, EventBridge and CloudWatch alarms use it.",
        "aws (keys that AWS manages), customer (a KMS key of the stack's own) or the ARN of a KMS "
        "key of this region, arn:aws:kms:...:key/...",
        "encryption=customer",
        "aws",
        emulator=False,
        pattern=f"aws|customer|{KEY_ARN}",
    ),
    Option(
        "data",
        "Whether tables, logs and stack are protected from deletion, and tables and logs outlive "
        "the stack ([data](data.md#what-outlives-a-stack)). `destroy` is for stacks that are "
        "thrown away, and what `make up` does.",
        "retain or destroy",
        "data=destroy",
        "retain",
        emulator=False,
        pattern="retain|destroy",
    ),
    Option(
        "earlier_keys",
        "The KMS keys that encrypted the stack's data before `encryption` was changed: what was "
        "written with them can still be read ([data](data.md#change-the-key)).",
        "ARNs of KMS keys of this region, separated by spaces, arn:aws:kms:...:key/...",
        "earlier_keys=arn:aws:kms:eu-west-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab",
        emulator=False,
        pattern=f"|{KEY_ARN}( +{KEY_ARN})*",
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
    Option(
        "rollout",
        "How requests are shifted to a new version of the server by AWS CodeDeploy, and back when "
        "an alarm rings ([rollout](rollout.md#rollout)). Without it, a deployment replaces the "
        "code at once.",
        "one of " + ", ".join(DEPLOYMENT_CONFIGS),
        "rollout=Canary10Percent5Minutes",
        emulator=False,
        pattern="|".join(("", *DEPLOYMENT_CONFIGS)),
    ),
    Option(
        "provisioned",
        "Instances that are always initialized, of each function that a request waits for: "
        "`api` and, with `auth=oauth`, `authorize`. They cost by the hour "
        "([rollout](rollout.md#cold-starts)).",
        "0 to 1000 instances of each function",
        "provisioned=2",
        "0",
        emulator=False,
        bounds=(0, 1_000),
    ),
    Option(
        "snapstart",
        "Whether `api` and `authorize` start from a snapshot of an initialized instance (Lambda "
        "SnapStart). It goes with neither `provisioned` nor, without a domain, `streaming`.",
        "on or off",
        "snapstart=on",
        "off",
        emulator=False,
        pattern="on|off",
    ),
)
