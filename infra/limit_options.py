"""The options that limit a caller, a request or a tool. A part of the table of options."""

from __future__ import annotations

from typing import Final

from mcp_tasks.limits import Limits
from mcp_tasks.notifications.live_mailboxes import MAX_LIVE

from .option import number

DEFAULT_LIMITS: Final = Limits()
NO_LIMIT: Final = "0 is no limit"
BYTES: Final = (1024, 5 * 1024 * 1024)

LIMITS: Final = (
    number(
        "max_tasks",
        "Tasks of one caller that are not terminal, or were cancelled while a step ran that may "
        "still run.",
        DEFAULT_LIMITS.max_open_tasks,
        # The names of a caller's open tasks are kept in one item, of at most 400 KB.
        (0, 500),
        f"tasks of one caller that are not terminal; {NO_LIMIT}",
    ),
    number(
        "max_creations",
        "Tasks that one caller may create in a minute.",
        DEFAULT_LIMITS.creations_per_minute,
        (0, 10_000),
        f"tasks that one caller creates a minute; {NO_LIMIT}",
    ),
    number(
        "max_polls",
        "Polls a second of one task that one caller may keep up; a burst may be 30 times as large.",
        DEFAULT_LIMITS.polls_per_second,
        (0, 1000),
        f"polls a second of one caller for one task; {NO_LIMIT}",
    ),
    number(
        "max_subscriptions",
        "Open subscriptions of one caller. One that has ended counts for another minute, but gives "
        "way to a new one.",
        DEFAULT_LIMITS.max_open_subscriptions,
        (0, 100),
        f"open subscriptions of one caller; {NO_LIMIT} but {MAX_LIVE}, which fit into one item",
    ),
    number(
        "max_new_subscriptions",
        "Subscriptions that one caller may begin in a minute.",
        DEFAULT_LIMITS.new_subscriptions_per_minute,
        (0, 10_000),
        f"subscriptions that one caller begins a minute; {NO_LIMIT}",
    ),
    number(
        "max_calls",
        "Calls of one caller that run within their requests at the same time: tools that do not "
        "become tasks, `ask_first`, prompts, resources and completions.",
        DEFAULT_LIMITS.max_open_calls,
        (0, 1000),
        f"calls of one caller that run at the same time; {NO_LIMIT}",
    ),
    number(
        "max_workers",
        "Instances of each tool's worker that run at the same time, for all callers together, "
        "unless the tool has a `max_concurrency`; other tasks wait. Every worker reserves as many "
        "of the account's concurrent executions "
        "([cost and scale](cost-and-scale.md#whose-functions-run)).",
        0,
        (0, 10_000),
        f"instances of each tool's worker; {NO_LIMIT}",
        20,
    ),
    number(
        "max_body",
        "Bytes of a request's body.",
        DEFAULT_LIMITS.max_body_bytes,
        BYTES,
        "bytes of a body; Lambda takes 6 MB, with the request's headers and escapes",
    ),
    number(
        "max_arguments",
        "Bytes of a tool's arguments, and of the answers that it asked for first.",
        DEFAULT_LIMITS.max_argument_bytes,
        BYTES,
        "bytes of arguments, which a body has to carry",
    ),
    number(
        "max_depth",
        "Levels of arrays and objects in a body.",
        DEFAULT_LIMITS.max_json_depth,
        (10, 500),
        "levels of arrays and objects",
    ),
    number(
        "max_values",
        "JSON values in a body: texts, numbers, arrays, objects and all that is in them.",
        DEFAULT_LIMITS.max_json_values,
        (1000, 1_000_000),
        "JSON values",
    ),
    number(
        "max_ttl_days",
        "How long a tool may keep its tasks; a tool that declares more is refused. Stored payloads "
        "expire two days later, existing ones included: a lower value may take them from tasks "
        "that still need them.",
        30,
        (1, 365),
        "days",
    ),
    number(
        "rate",
        "Requests a second that API Gateway lets through, of all callers together.",
        500,
        (1, 100_000),
        "requests a second; the account's own quota is 10000 unless raised",
    ),
    number(
        "burst",
        "Requests at once that API Gateway lets through, of all callers together.",
        1000,
        (1, 100_000),
        "requests at once; the account's own quota is 10000 unless raised",
    ),
)
