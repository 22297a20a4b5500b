"""The table of options: what a deployment can choose, each one key of CDK context.

`infra/cdk_context.py` reads and checks the values by this table. `python -m infra.options` prints
`docs/configuration.md` from it. A test compares the table with that page and with the Makefile.
"""

from __future__ import annotations

from typing import Final

from .limit_options import LIMITS
from .option import Option

LABEL: Final = "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
HOST_NAME: Final = rf"(?i:(?=.{{1,253}}$)({LABEL}\.)+{LABEL})"
"""RFC 1123, section 2.1."""
TOPIC_ARN: Final = r"arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_.-]{1,256}"
KEY_ARN: Final = r"arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/(mrk-)?[0-9a-f-]+"
MAX_PRIORITY: Final = 90_000
"""Four rules of a stack fit below API Gateway's 1,000,000 with it (`infra/routing.py`)."""


DEPLOYMENT: Final = (
    Option(
        "tools",
        "The folder with the tools.",
        "a folder, from the repository's root or from anywhere",
        "tools=functions/tools",
        "functions/tools",
    ),
    Option(
        "stack",
        "The stack's name, with which its resources' names begin. Another name is another stack. "
        "Without it, `stack` of `server.toml`.",
        "1 to 28 letters, digits and hyphens",
        "stack=notes",
        pattern="[A-Za-z][A-Za-z0-9-]{0,27}",
    ),
    Option(
        "cell",
        "The stack's name among several behind one address; its task ids begin with it. Choose it "
        "once: the server does not find tasks any more that run when it changes.",
        "1 to 16 lower-case letters and digits",
        "cell=eu1",
        "c1",
        pattern="[a-z0-9]{1,16}",
    ),
    Option(
        "companion_tools",
        "Whether clients that can neither take tasks nor resume event streams get the tools "
        "`task_result`, `task_answer` and `task_cancel` beside tools that run as tasks "
        "([tools](tools.md#clients-without-tasks)). Without them, such a client is refused.",
        "on or off",
        "companion_tools=off",
        "on",
        pattern="on|off",
    ),
)
CALLERS: Final = (
    Option(
        "auth",
        "Who may call: `oauth` (callers bring an access token of an OIDC issuer), `iam` (they sign "
        "with SigV4) or `none` (anybody). On AWS it has to be given; with `make up` it is `none`.",
        "oauth, iam or none",
        "auth=oauth",
    ),
    Option(
        "issuer",
        "With `auth=oauth`: the issuer of the access tokens.",
        "an https:// URL, without query and fragment, exactly as its tokens' iss has it",
        "issuer=https://login.example.com/v2.0",
    ),
    Option(
        "audience",
        "With `auth=oauth`: what an access token's `aud` has to name.",
        "1 to 255 of printable ASCII",
        "audience=https://mcp.example.com",
        pattern="[!-~]{1,255}",
    ),
    Option(
        "scopes",
        "With `auth=oauth`: the scopes that every access token needs. Tools may ask for more.",
        "scopes separated by spaces, of printable ASCII without \" \\ $ # and '",
        "scopes='mcp reports:read'",
    ),
    Option(
        "token_typ",
        "With `auth=oauth`: the `typ` that an access token's header has to have. `jwt` takes any "
        "JWT but ID tokens; `at+jwt` takes only tokens that say they are access tokens (RFC 9068).",
        "jwt or at+jwt",
        "token_typ=at+jwt",
        "jwt",
        pattern=r"jwt|at\+jwt",
    ),
    Option(
        "principal",
        "With `auth=iam`, where it has to be given: whom a task belongs to that an assumed role "
        "created. `session`: to the role's session of that name, which whoever assumes the role "
        "chooses. `role`: to all who may assume the role. [security.md](security.md#iam) says who "
        "shares what. Tasks that run when it changes are lost to their owners.",
        "session or role",
        "principal=role",
        pattern="session|role",
    ),
    Option(
        "quota_per",
        "With `auth=iam`: whom limits count together. `role`: all sessions of a role, so that a "
        "new session's name brings no new limits.",
        "principal or role",
        "quota_per=role",
        "principal",
        pattern="principal|role",
    ),
)
ADDRESS: Final = (
    Option(
        "streaming",
        "Whether `subscriptions/listen` is answered as a stream, which lasts up to 15 minutes, or "
        "with what changed in up to 25 seconds.",
        "true or false",
        "streaming=true",
        "false",
        pattern="true|false",
    ),
    Option(
        "origins",
        "The `Origin` headers that are not refused, besides none at all. The server sends no CORS "
        "headers: pages in browsers cannot read its answers.",
        "origins separated by spaces",
        "origins='https://a.example https://b.example'",
    ),
    Option(
        "hosts",
        "The `Host` headers that are answered. Without it, all that lead to the server.",
        "host names separated by spaces",
        "hosts=mcp.example.com",
    ),
    Option(
        "url",
        "The endpoint's URL as clients know it, when it is neither at `domain` nor at API "
        "Gateway's own name for it: behind a CDN, for instance.",
        "an https:// URL that ends in /mcp, such as https://cdn.example.com/mcp",
        "url=https://cdn.example.com/mcp",
        emulator=False,
    ),
    Option(
        "domain",
        "A custom domain of API Gateway, of the same account and region, that leads to the stack. "
        "Several stacks, each with its own `cell`, can share one; all have the same `auth`.",
        "a host name, such as mcp.example.com",
        "domain=mcp.example.com",
        emulator=False,
        pattern=f"|{HOST_NAME}",
    ),
    Option(
        "priority",
        "The stack's place among those of its domain. The stack with the lowest gets the requests "
        "that name no task.",
        f"1 to {MAX_PRIORITY}, another for each stack of a domain",
        "priority=200",
        "100",
        emulator=False,
        bounds=(1, MAX_PRIORITY),
    ),
)
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
SECTIONS: Final = {
    "The deployment": DEPLOYMENT,
    "Who may call": CALLERS,
    "Addresses": ADDRESS,
    "Limits": LIMITS,
    "Operations": OPERATIONS,
}
OPTIONS: Final = {option.name: option for section in SECTIONS.values() for option in section}
"""Name -> option. `profile` (`infra/deployment_profiles.py`) is not one: the commands give it."""


if __name__ == "__main__":
    from .options_page import page

    print(page(), end="")
