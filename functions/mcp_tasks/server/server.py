"""The server of a deployment."""

from __future__ import annotations

from functools import cache

from ..deployment import Deployment
from .authority import Authority
from .completion import complete_argument
from .creation import Creation
from .endpoint import Endpoint
from .large_results import LargeResults
from .offer import Offer
from .polling import PollLimit
from .prompts import get_prompt
from .request_state import RequestStates
from .resources import read_resource
from .rounds import Rounds
from .subscriptions import listen
from .tasks_extension import cancel_task, get_task, update_task
from .tools import call_tool


def mcp_server(deployment: Deployment) -> Endpoint:
    """The MCP endpoint of a deployment."""
    catalogue, rows, executions = deployment.catalogue, deployment.rows, deployment.executions
    cell, limits = deployment.cell, deployment.limits
    authority = Authority(deployment.scopes, deployment.resource_metadata)
    creation = Creation(
        rows,
        executions,
        deployment.places,
        deployment.keys,
        deployment.quick_payloads,
        limits,
        deployment.state_machine_arn,
        cell,
    )
    results = LargeResults(deployment.quick_payloads)
    # Made when a function first asks: it costs a call to Secrets Manager.
    rounds = Rounds(cache(lambda: RequestStates(deployment.state_key())))
    offer = Offer(
        server_info=deployment.server_info,
        catalogue=catalogue,
        call_tool=call_tool(catalogue, rounds, creation, authority),
        read_resource=read_resource(catalogue, rounds),
        get_prompt=get_prompt(catalogue, rounds),
        complete_argument=complete_argument(catalogue),
        tasks={
            "tasks/get": get_task(
                rows, cell, PollLimit(limits.polls), deployment.quick_repair, results
            ),
            "tasks/update": update_task(rows, executions, deployment.quick_payloads, cell),
            "tasks/cancel": cancel_task(rows, executions, cell),
        },
        listen=listen(rows, deployment.mailboxes, deployment.places, results, limits.listens, cell),
    )
    return Endpoint(offer, deployment.allowed_origins, deployment.allowed_hosts, limits)
