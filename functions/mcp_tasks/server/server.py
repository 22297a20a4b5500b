"""The server of a deployment, put together."""

from __future__ import annotations

from functools import cached_property

from ..deployment import Deployment
from ..registry.list_versions import list_versions
from .http.endpoint import Endpoint
from .methods.call_quota import CallQuota
from .methods.call_stream import CallStream
from .methods.companion_tools import CompanionTools, becomes_task
from .methods.completion import complete_argument
from .methods.idempotent_creation import IdempotentCreation
from .methods.multi_round_trip import MultiRoundTrip
from .methods.poll_rate_limit import PollRateLimit
from .methods.prompts import get_prompt
from .methods.request_state import RequestStateCipher
from .methods.resource_subscriptions import ResourceSubscriptions
from .methods.resources import read_resource
from .methods.result_links import ResultLinks
from .methods.session_stream import SessionStream
from .methods.subscriptions import Subscriptions
from .methods.task_creation import TaskCreation
from .methods.task_operations import TaskOperations
from .methods.task_stream import TaskStream
from .methods.tasks import TaskMethods
from .methods.tasks_2025_11_25 import Tasks20251125
from .methods.tasks_sep_1686 import TasksSep1686
from .methods.tools import ToolCalls
from .scopes import ScopeCheck
from .sealed import DerivedIds, Seal
from .server_methods import ServerMethods
from .session_methods import SessionMethods
from .sessions import Sessions
from .stream_position import EventIds
from .task_access import TaskAccess


def mcp_server(deployment: Deployment) -> Endpoint:
    """The MCP endpoint of a deployment."""
    return Endpoint(
        _Parts(deployment).methods,
        deployment.allowed_origins,
        deployment.allowed_hosts,
        deployment.limits,
    )


class _Parts:
    """The parts of one server. Each is made once, from those that it needs."""

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment
        self._catalogue = deployment.catalogue

    @cached_property
    def methods(self) -> ServerMethods:
        """What the revisions serve."""
        companions = self._companion_tools
        return ServerMethods(
            identity=self._deployment.identity,
            catalogue=self._catalogue,
            call_tool=companions.call_tool if companions else self._tools.call_tool,
            read_resource=read_resource(self._catalogue, self._multi_round_trip),
            get_prompt=get_prompt(self._catalogue, self._multi_round_trip),
            complete_argument=complete_argument(self._catalogue, self._call_quota),
            tasks=self._task_methods.table(),
            listen=self._subscriptions.listen,
            only=self._deployment.methods,
            in_sessions=None if self._deployment.methods else self._session_methods,
            companion_tools=companions,
        )

    @cached_property
    def _tools(self) -> ToolCalls:
        return ToolCalls(
            self._catalogue,
            self._multi_round_trip,
            IdempotentCreation(self._task_creation, self._deployment.idempotency_keys),
            self._scope_check,
            self._has_companion_tools,
        )

    @cached_property
    def _has_companion_tools(self) -> bool:
        tools = self._catalogue.tools.values()
        return self._deployment.companion_tools and any(map(becomes_task, tools))

    @cached_property
    def _companion_tools(self) -> CompanionTools | None:
        if not self._has_companion_tools:
            return None
        return CompanionTools(
            self._catalogue,
            self._tools.call_tool,
            self._operations,
            self._result_links,
            self._call_quota,
            self._poll_rate_limit(),
            self._cipher,
        )

    @cached_property
    def _multi_round_trip(self) -> MultiRoundTrip:
        return MultiRoundTrip(
            self._cipher,
            self._call_quota,
            lambda uri: self._deployment.event_bus.resource_changed(uri),
        )

    @cached_property
    def _task_creation(self) -> TaskCreation:
        deployment = self._deployment
        return TaskCreation(
            deployment.task_table,
            deployment.executions,
            deployment.quotas,
            deployment.payloads_within_request,
            deployment.limits,
            deployment.state_machine_arn,
            deployment.cell,
            deployment.tracing,
        )

    @cached_property
    def _operations(self) -> TaskOperations:
        deployment = self._deployment
        return TaskOperations(
            self._access,
            deployment.task_table,
            deployment.executions,
            deployment.reconciler_within_request,
            deployment.payloads_within_request,
            deployment.cell,
        )

    @cached_property
    def _task_methods(self) -> TaskMethods:
        return TaskMethods(self._operations, self._result_links, self._poll_rate_limit())

    @cached_property
    def _subscriptions(self) -> Subscriptions:
        deployment = self._deployment
        return Subscriptions(
            self._catalogue,
            self._access,
            deployment.task_table,
            deployment.mailboxes,
            self._result_links,
            deployment.limits,
            deployment.cell,
        )

    @cached_property
    def _session_methods(self) -> SessionMethods:
        deployment, ids = self._deployment, DerivedIds(self._secret, self._deployment.cell)
        event_ids = EventIds(self._seal("eventId"))
        sessions = Sessions(self._seal("sessionId"), deployment.session_table)
        session_stream = SessionStream(
            sessions,
            deployment.mailboxes,
            self._operations,
            event_ids,
            deployment.limits,
            self._list_versions,
        )
        return SessionMethods(
            sessions,
            event_ids,
            ids,
            self._operations,
            TaskStream(
                self._operations,
                self._result_links,
                event_ids,
                self._call_quota,
                self._has_companion_tools,
            ),
            CallStream(deployment.call_table, ids, self._operations, event_ids, self._call_quota),
            session_stream,
            ResourceSubscriptions(self._catalogue, sessions, session_stream),
            self._tasks_2025_11_25,
            TasksSep1686(self._operations, self._result_links, self._poll_rate_limit(), ids),
        )

    @cached_property
    def _tasks_2025_11_25(self) -> Tasks20251125:
        return Tasks20251125(
            self._operations,
            self._poll_rate_limit(),
            self._deployment.task_list,
            self._seal("cursor"),
            can_list=self._deployment.auth != "none",
        )

    @cached_property
    def _call_quota(self) -> CallQuota:
        return CallQuota(self._deployment.quotas, self._deployment.limits.max_open_calls)

    def _poll_rate_limit(self) -> PollRateLimit:
        return PollRateLimit(self._deployment.limits.polls_per_second)

    @cached_property
    def _result_links(self) -> ResultLinks:
        return ResultLinks(self._deployment.payloads_within_request)

    @cached_property
    def _scope_check(self) -> ScopeCheck:
        deployment = self._deployment
        return ScopeCheck(deployment.scopes, deployment.resource_metadata, deployment.scope_names)

    @cached_property
    def _access(self) -> TaskAccess:
        return TaskAccess(self._deployment.task_table, self._catalogue, self._scope_check)

    # What costs a call, or time, is made when it is first needed.

    def _secret(self) -> str:
        return self._secret_text

    @cached_property
    def _secret_text(self) -> str:
        return self._deployment.request_state_key()

    def _cipher(self) -> RequestStateCipher:
        return self._request_state_cipher

    @cached_property
    def _request_state_cipher(self) -> RequestStateCipher:
        return RequestStateCipher(self._secret_text)

    def _list_versions(self) -> dict[str, str]:
        return self._versions_of_lists

    @cached_property
    def _versions_of_lists(self) -> dict[str, str]:
        return list_versions(self._catalogue)

    def _seal(self, purpose: str) -> Seal:
        return Seal(self._secret, purpose, self._deployment.cell)
