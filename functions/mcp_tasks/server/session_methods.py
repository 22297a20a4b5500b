"""What the revisions with sessions need besides the MCP methods."""

from __future__ import annotations

from dataclasses import dataclass

from .methods.call_stream import CallStream
from .methods.resource_subscriptions import ResourceSubscriptions
from .methods.session_stream import SessionStream
from .methods.task_operations import TaskOperations
from .methods.task_stream import TaskStream
from .methods.tasks_2025_11_25 import Tasks20251125
from .methods.tasks_sep_1686 import TasksSep1686
from .sealed import DerivedIds
from .sessions import Sessions
from .stream_position import EventIds


@dataclass(frozen=True, slots=True)
class SessionMethods:
    """Sessions, event streams that can be resumed, and the tasks that they bring the results of."""

    sessions: Sessions
    event_ids: EventIds
    ids: DerivedIds
    operations: TaskOperations
    task_stream: TaskStream
    call_stream: CallStream
    session_stream: SessionStream
    resource_subscriptions: ResourceSubscriptions
    tasks: Tasks20251125
    client_tasks: TasksSep1686
