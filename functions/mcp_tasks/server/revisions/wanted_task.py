"""The task that a call asks for, in one of the two designs of the revisions with sessions:
`params.task` of 2025-11-25, and SEP-1686's `_meta["modelcontextprotocol.io/task"]`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...protocol import meta
from ...protocol.errors import invalid_params
from ...protocol.jsonrpc import Request
from ...registry.catalogue import Catalogue
from ..methods.task_wire_2025_11_25 import PROGRESS_TOKEN
from ..methods.tasks_2025_11_25 import requested_ttl_ms
from ..methods.tasks_sep_1686 import CLIENT_TASK_ID, REQUEST_ID, client_task
from ..sessions import Session


@dataclass(frozen=True, slots=True)
class WantedTask:
    """Whether a call asks for a task, for how long, and with which id of the client's."""

    is_wanted: bool = False
    ttl_ms: int | None = None
    client_id: str | None = None

    def client_context(self, request: Request, session: Session | None) -> dict[str, Any]:
        """What is kept with the task: its session, and what the client has chosen."""
        context: dict[str, Any] = {}
        if self.is_wanted and session is not None:
            context["session"] = session.key
        token = meta.progress_token(request.params.get("_meta", {}))
        if self.is_wanted and token is not None:
            context[PROGRESS_TOKEN] = token
        if self.client_id is not None:
            context |= {CLIENT_TASK_ID: self.client_id, REQUEST_ID: json.dumps(request.id)}
        return context


def wanted_task(request: Request, about: Mapping[str, Any], catalogue: Catalogue) -> WantedTask:
    """Read a request; `about` is its `_meta`. Raises ProtocolError."""
    if request.method != "tools/call":
        return WantedTask()
    clients = client_task(about)
    if "task" in request.params:
        if clients is not None:
            raise invalid_params("params.task and the task in _meta are two designs; send one")
        return WantedTask(True, requested_ttl_ms(request.params, catalogue))
    entry = catalogue.tools.get(str(request.params.get("name")))
    if clients is None or entry is None or entry.task_support == "forbidden":
        return WantedTask()  # "ignoring any task metadata" ("Task Support and Handling")
    return WantedTask(True, clients.keep_alive_ms, clients.id)
