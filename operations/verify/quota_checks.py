"""Whether Service Quotas knows what `make preflight` asks it for."""

from __future__ import annotations

from typing import Final

from ..preflight.account_quotas import AccountQuotas
from ..preflight.quotas import DEMANDS
from .check import Check, expect
from .deployed import Deployed


def find_quotas(deployed: Deployed) -> str:
    """Every quota that `make preflight` compares has the name that it has there. A name that AWS
    has changed would be reported as `not read` for ever.

    Service Quotas API reference, "ListServiceQuotas" (what is applied to the account) and
    "ListAWSDefaultServiceQuotas" (where nothing was ever applied).
    """
    quotas = AccountQuotas(deployed.account().client)
    asked = [(demand.service, demand.quota) for demand in DEMANDS]
    unknown = [
        f'"{name}" of {service}' for service, name in asked if not quotas.find(service, name)
    ]
    expect(not unknown, f"Service Quotas does not know {', '.join(unknown)}")
    return f"{len(asked)} quotas are known"


CHECKS: Final = (Check("Quotas' names", find_quotas, only_aws=True, of_stack=True),)
