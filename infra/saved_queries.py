"""The Logs Insights queries that are saved with a stack: each answers one question of an operator.

They are plain texts, so that a command can run them as well. `docs/operations.md` names, for each
alarm, the query to look at.

Source: CloudWatch Logs user guide, "CloudWatch Logs Insights language query syntax".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Logs = Literal["functions", "publish", "requests", "access"]
"""Whose logs a query reads: of all functions; of `publish`; of what lets callers in and answers
them; or API Gateway's access log, where there is one (`-c access_log=on`)."""

TASK_ID: Final = "c1-0123456789abcdef0123456789abcdef"
"""In `one task`: to be replaced by the task's id."""


@dataclass(frozen=True, slots=True)
class SavedQuery:
    """One query."""

    name: str
    """What it is called, after the stack's name and a `/`."""
    logs: Logs
    text: str


QUERIES: Final = (
    SavedQuery(
        "crashes by tool and place",
        "functions",
        """\
fields coalesce(tool, prompt, resource, service) as crashed
| filter ispresent(exception)
| stats count(*) as crashes, latest(@timestamp) as last, latest(reference) as reference
    by crashed, exception, code, place, raised_in
| sort crashes desc""",
    ),
    SavedQuery(
        "errors by function",
        "functions",
        """\
filter level in ["ERROR", "CRITICAL"] or @message like /Task timed out|Runtime\\.|\\[ERROR\\]/
| stats count(*) as errors, latest(@timestamp) as last by @log, message, error
| sort errors desc""",
    ),
    SavedQuery(
        "slow calls",
        "requests",
        """\
filter message = "request answered"
| stats count(*) as calls, avg(duration_ms), pct(duration_ms, 95), max(duration_ms) by method, tool
| sort calls desc""",
    ),
    SavedQuery(
        "failed calls",
        "requests",
        """\
filter (message = "request answered" and status >= 500) or level = "ERROR"
| fields @timestamp, method, status, error_code, message, error, task_id, function_request_id
| sort @timestamp desc
| limit 200""",
    ),
    SavedQuery(
        "refused callers",
        "requests",
        """\
filter message in ["access token refused", "request denied"]
  or (message = "request answered" and status in [401, 403, 404, 429])
| fields coalesce(reason, concat("HTTP ", status)) as why
| stats count(*) as refused, latest(@timestamp) as last by message, why, method, principal
| sort refused desc""",
    ),
    SavedQuery(
        "one task",
        "functions",
        f"""\
filter task_id = "{TASK_ID}"
| fields @timestamp, service, message, action, status, step, error, outcome, xray_trace_id
| sort @timestamp asc
| limit 1000""",
    ),
    SavedQuery(
        "tasks by tool and state",
        "publish",
        """\
filter ispresent(_aws.Timestamp) and ispresent(tool)
| stats sum(TasksCreated.0) as created, sum(InputRequired.0) as asked,
    sum(TasksCompleted.0) as completed, sum(TasksFailed.0) as failed,
    sum(TasksCancelled.0) as cancelled by tool
| sort created desc""",
    ),
    SavedQuery(
        "integration errors",
        "access",
        """\
filter status >= 500
| fields @timestamp, status, responseType, errorMessage, lambdaStatus, integrationStatus,
    integrationError, integrationLatency, authorizerStatus, authorizerError, requestId
| sort @timestamp desc
| limit 200""",
    ),
)
