"""The account's quotas in a region, read from Service Quotas by their names.

Names and not codes: AWS documents the names (General Reference, "AWS Step Functions endpoints and
quotas" and its like), and the codes come with them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from ..deployed_stack import Clients


@dataclass(frozen=True, slots=True)
class Quota:
    """One quota."""

    service: str
    """Its service, as Service Quotas names it."""
    value: float
    code: str
    adjustable: bool = True

    def command(self, region: str, wanted: float) -> str:
        """What raises it."""
        if not self.adjustable:
            return f"AWS does not raise this quota ({self.service} {self.code})"
        return (
            f"aws service-quotas request-service-quota-increase --region {region} "
            f"--service-code {self.service} --quota-code {self.code} "
            f"--desired-value {math.ceil(wanted)}"
        )


@dataclass(slots=True)
class AccountQuotas:
    """The quotas of one account and region; each service is read once."""

    client: Clients
    _read: dict[str, dict[str, Quota]] = field(default_factory=dict)

    def find(self, service: str, name: str) -> Quota | None:
        """A quota by its name; None when the service has none of that name.

        Raises ClientError and BotoCoreError where Service Quotas may not be read.
        """
        if service not in self._read:
            self._read[service] = self._of(service)
        return self._read[service].get(name.lower())

    def _of(self, service: str) -> dict[str, Quota]:
        """What is applied to the account; the default where nothing is (Service Quotas API
        reference, "ListServiceQuotas", "ListAWSDefaultServiceQuotas")."""
        found: dict[str, Quota] = {}
        for operation in ("list_aws_default_service_quotas", "list_service_quotas"):
            pages = self.client("service-quotas").get_paginator(operation)
            for page in pages.paginate(ServiceCode=service):
                found |= {
                    each["QuotaName"].lower(): _quota(service, each) for each in page["Quotas"]
                }
        return found


def _quota(service: str, listed: Mapping[str, Any]) -> Quota:
    adjustable = bool(listed.get("Adjustable"))
    return Quota(service, listed["Value"], listed["QuotaCode"], adjustable)


def reason(error: ClientError | BotoCoreError) -> str:
    """Why something could not be read, in a few words."""
    if isinstance(error, ClientError):
        return f"{error.operation_name}: {error.response['Error']['Code']}"
    return str(error)
