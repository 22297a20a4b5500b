"""The server of a deployment, put together."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from ..deployment import Deployment
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
from .methods.resources import read_resource
from .methods.result_links import ResultLinks
from .methods.subscriptions import Subscriptions
from .methods.task_creation import TaskCreation
from .methods.task_operations import TaskOperations
from .methods.task_stream import TaskStream
from .methods.tasks import TaskMethods
from .methods.tasks_2025_11_25 import Tasks20251125
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
    catalogue = deployment.catalogue
    call_quota = CallQuota(deployment.quotas, deployment.limits.max_open_calls)
    secret = cache(deployment.request_state_key)
    cipher = cache(lambda: RequestStateCipher(secret()))
    multi_round_trip = MultiRoundTrip(cipher, call_quota)
    operations = _task_operations(deployment)
    companions = deployment.companion_tools and any(map(becomes_task, catalogue.tools.values()))
    tools = ToolCalls(
        catalogue,
        multi_round_trip,
        IdempotentCreation(_task_creation(deployment), deployment.idempotency_keys),
        _scope_check(deployment),
        companions,
    )
    companion_tools = CompanionTools(
        catalogue,
        tools.call_tool,
        operations,
        ResultLinks(deployment.payloads_within_request),
        call_quota,
        PollRateLimit(deployment.limits.polls_per_second),
        cipher,
    )
    methods = ServerMethods(
        identity=deployment.identity,
        catalogue=catalogue,
        call_tool=companion_tools.call_tool if companions else tools.call_tool,
        read_resource=read_resource(catalogue, multi_round_trip),
        get_prompt=get_prompt(catalogue, multi_round_trip),
        complete_argument=complete_argument(catalogue, call_quota),
        tasks=_task_methods(deployment, operations).table(),
        listen=_subscriptions(deployment).listen,
        only=deployment.methods,
        in_sessions=None
        if deployment.methods
        else _session_methods(deployment, operations, call_quota, secret, companions),
        companion_tools=companion_tools if companions else None,
    )
    return Endpoint(
        methods, deployment.allowed_origins, deployment.allowed_hosts, deployment.limits
    )


def _scope_check(deployment: Deployment) -> ScopeCheck:
    return ScopeCheck(deployment.scopes, deployment.resource_metadata)


def _task_access(deployment: Deployment) -> TaskAccess:
    return TaskAccess(deployment.task_table, deployment.catalogue, _scope_check(deployment))


def _task_creation(deployment: Deployment) -> TaskCreation:
    return TaskCreation(
        deployment.task_table,
        deployment.executions,
        deployment.quotas,
        deployment.payloads_within_request,
        deployment.limits,
        deployment.state_machine_arn,
        deployment.cell,
    )


def _task_operations(deployment: Deployment) -> TaskOperations:
    return TaskOperations(
        _task_access(deployment),
        deployment.task_table,
        deployment.executions,
        deployment.reconciler_within_request,
        deployment.payloads_within_request,
        deployment.cell,
    )


def _task_methods(deployment: Deployment, operations: TaskOperations) -> TaskMethods:
    return TaskMethods(
        operations,
        ResultLinks(deployment.payloads_within_request),
        PollRateLimit(deployment.limits.polls_per_second),
    )


def _session_methods(
    deployment: Deployment,
    operations: TaskOperations,
    call_quota: CallQuota,
    secret: Callable[[], str],
    companions: bool,
) -> SessionMethods:
    result_links = ResultLinks(deployment.payloads_within_request)
    ids = DerivedIds(secret, deployment.cell)
    event_ids = EventIds(Seal(secret, "eventId", deployment.cell))
    return SessionMethods(
        Sessions(Seal(secret, "sessionId", deployment.cell), deployment.session_table),
        event_ids,
        ids,
        operations,
        TaskStream(operations, result_links, event_ids, call_quota, companions),
        CallStream(deployment.call_table, ids, operations, event_ids, call_quota),
        Tasks20251125(
            operations,
            PollRateLimit(deployment.limits.polls_per_second),
            deployment.task_list,
            Seal(secret, "cursor", deployment.cell),
            can_list=deployment.auth != "none",
        ),
    )


def _subscriptions(deployment: Deployment) -> Subscriptions:
    return Subscriptions(
        _task_access(deployment),
        deployment.task_table,
        deployment.mailboxes,
        ResultLinks(deployment.payloads_within_request),
        deployment.limits,
        deployment.cell,
    )
