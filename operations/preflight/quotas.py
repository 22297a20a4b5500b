"""Do the account's quotas carry what the stack lets its callers ask?

It refuses nothing: a stack whose quotas are too small works, for fewer callers. It says what will
not fit, what happens then, and how the quota is raised. `docs/cost-and-scale.md` has the quotas'
defaults.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from botocore.exceptions import BotoCoreError, ClientError

from . import stack_load
from .account_quotas import AccountQuotas, Quota, reason
from .check import Check, Finding
from .deployment import Deployment
from .stack_load import StackLoad

REFILL: Final = "{} throttle token refill rate per second"
BUCKET: Final = "{} throttle token bucket size"


@dataclass(frozen=True, slots=True)
class Demand:
    """What is asked of one quota."""

    service: str
    quota: str
    """Its name in Service Quotas."""
    what: str
    needed: Callable[[StackLoad], float]
    otherwise: str
    """What happens to that which does not fit."""
    read: Callable[[Deployment], float] | None = None
    """The value, from a service that tells it itself; else it is Service Quotas'."""


def _gateway(key: str) -> Callable[[Deployment], float]:
    def read(deployment: Deployment) -> float:
        account = deployment.client("apigateway").get_account()
        return float(account["throttleSettings"][key])

    return read


def _dynamodb(key: str) -> Callable[[Deployment], float]:
    def read(deployment: Deployment) -> float:
        return float(deployment.client("dynamodb").describe_limits()[key])

    return read


def _writes(load: StackLoad) -> float:
    return load.tasks * stack_load.CHANGES_PER_TASK * stack_load.WRITE_UNITS_PER_CHANGE


LATE_STARTS: Final = (
    "tasks above it are accepted, and the sweeper or their client's poll starts them"
)
LATE_STATES: Final = "states begin later: tasks take longer, and none fails"
LATE_ENDS: Final = "tasks end late: the sweeper ends those that `finish` could not"
LATE_CHANGES: Final = "changes of tasks are told late, to subscriptions and to rules"
LOST_REQUESTS: Final = "callers get 429; or deploy with a lower rate= and burst="
SLOW_WRITES: Final = "calls fail with 500, and steps are repeated"

DEMANDS: Final = (
    Demand(
        "apigateway",
        "Throttle rate",
        "API Gateway, requests a second",
        lambda load: load.rate,
        LOST_REQUESTS,
        _gateway("rateLimit"),
    ),
    Demand(
        "apigateway",
        "Throttle burst rate",
        "API Gateway, requests at once",
        lambda load: load.burst,
        LOST_REQUESTS,
        _gateway("burstLimit"),
    ),
    Demand(
        "states",
        REFILL.format("StartExecution"),
        "Step Functions, StartExecution a second",
        lambda load: load.tasks,
        LATE_STARTS,
    ),
    Demand(
        "states",
        BUCKET.format("StartExecution"),
        "Step Functions, StartExecution at once",
        lambda load: load.burst / stack_load.REQUESTS_PER_TASK,
        LATE_STARTS,
    ),
    Demand(
        "states",
        REFILL.format("StateTransition"),
        "Step Functions, state transitions a second",
        lambda load: load.tasks * stack_load.TRANSITIONS_PER_TASK,
        LATE_STATES,
    ),
    Demand(
        "states",
        BUCKET.format("StateTransition"),
        "Step Functions, state transitions at once",
        lambda load: load.burst / stack_load.REQUESTS_PER_TASK * stack_load.TRANSITIONS_PER_TASK,
        LATE_STATES,
    ),
    Demand(
        "states",
        REFILL.format("DescribeExecution"),
        "Step Functions, DescribeExecution a second",
        lambda load: load.describes,
        LATE_ENDS,
    ),
    Demand(
        "events",
        "PutEvents throttle limit in transactions per second",
        "EventBridge, PutEvents a second",
        lambda load: load.tasks * stack_load.CHANGES_PER_TASK,
        LATE_CHANGES,
    ),
    Demand(
        "events",
        "Invocations throttle limit in transactions per second",
        "EventBridge, targets called a second",
        lambda load: load.tasks * (stack_load.CHANGES_PER_TASK * stack_load.RULES_PER_CHANGE + 1),
        LATE_CHANGES,
    ),
    Demand(
        "dynamodb",
        "Table-level write throughput limit (Provisioned mode and on-demand mode)",
        "DynamoDB, write units of a table a second",
        _writes,
        SLOW_WRITES,
        _dynamodb("TableMaxWriteCapacityUnits"),
    ),
    Demand(
        "dynamodb",
        "Account-level write throughput limit (Provisioned mode)",
        "DynamoDB, write units of the account a second",
        _writes,
        SLOW_WRITES,
        _dynamodb("AccountMaxWriteCapacityUnits"),
    ),
)


def find(deployment: Deployment) -> Finding:
    """Compare what the stack lets through with the account's quotas."""
    load, quotas = StackLoad.read(deployment.template), AccountQuotas(deployment.client)
    lines = [line for demand in DEMANDS for line in _lines(demand, load, quotas, deployment)]
    return Finding(
        f"quotas in {deployment.region}, against the {load.rate} requests a second that the API "
        f"lets through: {load.tasks:.0f} tasks a second, with ten polls and ten reports each\n"
        + "\n".join(f"    {line}" for line in lines)
    )


def _lines(
    demand: Demand, load: StackLoad, quotas: AccountQuotas, deployment: Deployment
) -> list[str]:
    needed = demand.needed(load)
    quota, unread = _listed(demand, quotas)
    try:
        value = demand.read(deployment) if demand.read else None
    except (BotoCoreError, ClientError) as error:
        value, unread = None, reason(error)
    if value is None and quota is not None:
        value = quota.value
    if value is None:
        return [f"not read      {demand.what}: {needed:,.0f} of ? ({unread})"]
    found = f"{demand.what}: {needed:,.0f} of {value:,.0f}"
    if needed <= value:
        return [f"fits          {found}"]
    remedy = quota.command(deployment.region, needed) if quota else f"its quota: {unread}"
    return [f"DOES NOT FIT  {found}", f"    {demand.otherwise}", f"    {remedy}"]


def _listed(demand: Demand, quotas: AccountQuotas) -> tuple[Quota | None, str]:
    """The quota in Service Quotas, or why it is not known."""
    try:
        quota = quotas.find(demand.service, demand.quota)
    except (BotoCoreError, ClientError) as error:
        return None, reason(error)
    return quota, f'Service Quotas has no "{demand.quota}" of {demand.service}'


CHECK: Final = Check("the account's quotas carry what the stack lets through", find)
