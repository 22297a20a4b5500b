"""The server of a deployment."""

from __future__ import annotations

from functools import cache

from ..deployment import Deployment
from .http.endpoint import Endpoint
from .methods.completion import complete_argument
from .methods.multi_round_trip import MultiRoundTrip
from .methods.poll_rate_limit import PollRateLimit
from .methods.prompts import get_prompt
from .methods.request_state import RequestStateCipher
from .methods.resources import read_resource
from .methods.result_links import ResultLinks
from .methods.subscriptions import listen
from .methods.task_creation import TaskCreation
from .methods.tasks import cancel_task, get_task, update_task
from .methods.tools import call_tool
from .scopes import ScopeCheck
from .server_methods import ServerMethods


def mcp_server(deployment: Deployment) -> Endpoint:
    """The MCP endpoint of a deployment."""
    catalogue, task_table, executions = (
        deployment.catalogue,
        deployment.task_table,
        deployment.executions,
    )
    cell, limits = deployment.cell, deployment.limits
    authority = ScopeCheck(deployment.scopes, deployment.resource_metadata)
    creation = TaskCreation(
        task_table,
        executions,
        deployment.quotas,
        deployment.idempotency_keys,
        deployment.payloads_within_request,
        limits,
        deployment.state_machine_arn,
        cell,
    )
    results = ResultLinks(deployment.payloads_within_request)
    # Made when a function first asks: it costs a call to Secrets Manager.
    rounds = MultiRoundTrip(cache(lambda: RequestStateCipher(deployment.request_state_key())))
    methods_offered = ServerMethods(
        identity=deployment.identity,
        catalogue=catalogue,
        call_tool=call_tool(catalogue, rounds, creation, authority),
        read_resource=read_resource(catalogue, rounds),
        get_prompt=get_prompt(catalogue, rounds),
        complete_argument=complete_argument(catalogue),
        tasks={
            "tasks/get": get_task(
                task_table,
                cell,
                PollRateLimit(limits.polls_per_second),
                deployment.reconciler_within_request,
                results,
            ),
            "tasks/update": update_task(
                task_table, executions, deployment.payloads_within_request, cell
            ),
            "tasks/cancel": cancel_task(task_table, executions, cell),
        },
        listen=listen(
            task_table,
            deployment.mailboxes,
            deployment.quotas,
            results,
            limits.max_open_subscriptions,
            cell,
        ),
    )
    return Endpoint(methods_offered, deployment.allowed_origins, deployment.allowed_hosts, limits)
