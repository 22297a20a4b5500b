"""The names of the functions' environment variables.

`infra` sets them when it deploys a function. The function reads them when it starts: through
`deployment.Deployment`, in `authorization.request_authorizer` for the authorizer, and in the
worker. Each function gets only those that it uses.

A name cannot be changed in a deployed stack without care: Lambda replaces a function's code first,
and its environment a moment later.
"""

from __future__ import annotations

from typing import Final, Literal

TASKS_TABLE: Final = "TASKS_TABLE"
MAILBOXES_TABLE: Final = "MAILBOXES_TABLE"
CALLERS_TABLE: Final = "CALLERS_TABLE"
"""The table of the callers' quotas and idempotency keys."""
SESSIONS_TABLE: Final = "SESSIONS_TABLE"
JOURNAL_TABLE: Final = "JOURNAL_TABLE"
"""The table of the journals of durable operations."""
PAYLOADS_BUCKET: Final = "PAYLOADS_BUCKET"
EVENT_BUS: Final = "EVENT_BUS"
STATE_MACHINE_PREFIX: Final = "STATE_MACHINE_PREFIX"
"""The beginning of a state machine's ARN; the name of its tool completes it."""
REQUEST_STATE_KEY_SECRET: Final = "REQUEST_STATE_KEY_SECRET"  # noqa: S105  a name, no secret
"""The ARN of the secret that `requestState` is encrypted with."""

CELL: Final = "CELL"
"""1 to 16 lower-case letters and digits; the stack's task ids begin with them."""
METHODS: Final = "METHODS"
"""The MCP methods that the function answers, separated by spaces; all without the variable."""
COMPANION_TOOLS: Final = "COMPANION_TOOLS"
"""`on` or `off`: whether clients without tasks get tools that ask for a task's result."""
LIMITS: Final = "LIMITS"
"""JSON, as `limits.Limits.to_json` writes it."""
ALLOWED_ORIGINS: Final = "ALLOWED_ORIGINS"
"""Separated by spaces."""
ALLOWED_HOSTS: Final = "ALLOWED_HOSTS"
"""Separated by spaces; empty for all hosts."""

TOOL_METRICS: Final = "TOOL_METRICS"
"""`on` or `off`: whether the metrics of tasks are those of each tool as well."""

TRACING: Final = "TRACING"
"""`on` or `off`: whether a new task keeps the X-Ray trace of its call."""

AUTH: Final = "AUTH"
Auth = Literal["oauth", "iam", "none"]
"""The values of AUTH: how the deployment identifies its callers."""
PRINCIPAL: Final = "PRINCIPAL"
Principal = Literal["session", "role"]
"""The values of PRINCIPAL: with `auth=iam`, whom a task belongs to that an assumed role created."""
QUOTA_PER: Final = "QUOTA_PER"
QuotaPer = Literal["principal", "role"]
"""The values of QUOTA_PER: whether all sessions of a role share their quotas and rate limits."""
ISSUER: Final = "ISSUER"
"""The URL of the authorization server whose tokens are accepted."""
AUDIENCE: Final = "AUDIENCE"
"""The audiences, separated by spaces, of which a token's `aud` must name one."""
TOKEN_TYP: Final = "TOKEN_TYP"  # noqa: S105  a type, no token
"""`at+jwt` when access tokens must have this type in their header (RFC 9068), or `jwt`."""
SCOPES: Final = "SCOPES"
"""The scopes that every token must have, separated by spaces."""
SCOPE_PREFIX: Final = "SCOPE_PREFIX"
"""What the names of scopes begin with where clients ask for them; empty for nothing."""
RESOURCE_METADATA_URL: Final = "RESOURCE_METADATA_URL"
"""Where clients read which authorization server issues tokens (RFC 9728)."""

TOOL: Final = "TOOL"
"""The name of the tool that a worker runs."""

TRACEBACK_LOG_GROUP: Final = "TRACEBACK_LOG_GROUP"
"""The log group of exceptions' messages; without it, none are kept (`tracebacks`)."""
TRACEBACK_FILE: Final = "MCP_TASKS_TRACEBACK_FILE"
"""The file of exceptions' messages on this machine, which `make up` and `make demo` set."""
