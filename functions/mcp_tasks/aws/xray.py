"""The X-Ray trace that an invocation belongs to (`-c tracing=on`).

One trace leads from a call to its result:

- API Gateway and Lambda hand it on themselves. Lambda puts it into the environment of an
  invocation, and botocore sends it as `X-Amzn-Trace-Id` with every call to AWS. Step Functions
  takes an execution's trace from there (API reference, "StartExecution": the header is preferred to
  the parameter `traceHeader`), and hands it to the functions that it calls.
- A table's stream hands on no trace. So a task's row keeps the one of the call that made the task,
  and `publish` puts it into each event of the task, as `TraceHeader` (EventBridge user guide,
  "Amazon EventBridge integration with AWS X-Ray"). The rule's queue carries it to
  `deliver`, whose trace X-Ray links to it ("Tracing event-driven applications").
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

VARIABLE: Final = "_X_AMZN_TRACE_ID"
"""Lambda developer guide, "Defined runtime environment variables"."""
MEMBER: Final = "xray"
"""Of what is kept with a task (`Task.client_context`)."""
PARTS: Final = ("Root", "Parent", "Sampled")
"""Of the header; Lambda adds others for its own use (X-Ray developer guide, "Tracing header")."""


def trace_to_keep() -> dict[str, str]:
    """What a new task keeps of the trace; nothing of one that is not recorded."""
    header = os.environ.get(VARIABLE, "")
    parts = dict(part.split("=", 1) for part in header.split(";") if "=" in part)
    if parts.get("Sampled") != "1" or "Root" not in parts:
        return {}
    return {MEMBER: ";".join(f"{name}={parts[name]}" for name in PARTS if name in parts)}


def trace_header(kept: Mapping[str, Any]) -> str | None:
    """The header for an event of a task that has kept this."""
    header = kept.get(MEMBER)
    return str(header) if header else None
