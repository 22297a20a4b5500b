"""boto3 clients that note what is asked of them. Under moto, DynamoDB's conditions are real."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cache
from math import inf
from threading import RLock
from typing import Any, Final

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError
from moto.dynamodb.models import dynamodb_backends

from tests.unit.support.dynamodb import without_http

REGION: Final = "us-east-1"
ACCOUNT: Final = "123456789012"
TABLE: Final = "tasks"
MAILBOXES: Final = "mailboxes"
CALLERS: Final = "callers"
SESSIONS: Final = "sessions"
JOURNAL: Final = "journal"
PAYLOADS: Final = "payloads"

FAULTS: Final = frozenset({"InternalError", "InternalFailure", "InternalServerError"})
"""Errors that are the service's own."""


@cache
def real(service: str) -> Any:
    """A boto3 client. One for all tests: making it costs more than most of them."""
    client = boto3.client(  # type: ignore[call-overload]
        service,
        region_name=REGION,
        aws_access_key_id="testing",
        aws_secret_access_key="testing",
        config=Config(ignore_configured_endpoint_urls=True),  # type: ignore[call-arg]
    )
    return without_http(client, ACCOUNT) if service == "dynamodb" else client


class Died(BaseException):
    """A function's end between two calls: out of time or memory, or its instance was lost."""


@dataclass(frozen=True)
class Call:
    """One call to AWS."""

    operation: str
    arguments: dict[str, Any]


@dataclass
class Calls:
    """Makes clients as `boto3.client` does, and keeps every call that is made through them.

    `instead` replaces operations, for answers of AWS that moto does not give: it maps an operation
    to a function that is called in its place.
    """

    made: list[Call] = field(default_factory=list)
    clients: list[str] = field(default_factory=list)
    instead: dict[str, Callable[..., Any]] = field(default_factory=dict)

    def client(self, service: str, **options: Any) -> Any:
        """A recording client."""
        self.clients.append(service)
        return _Recording(real(service), self)

    def make(self, call: Call, operation: Callable[..., Any]) -> Any:
        """Make a call."""
        self.made.append(call)
        return operation(**call.arguments)

    @property
    def operations(self) -> list[str]:
        """The names of the calls, in their order."""
        return [call.operation for call in self.made]

    def forget(self) -> None:
        """Start counting anew."""
        self.made.clear()
        self.clients.clear()


@dataclass
class Mortal(Calls):
    """Clients of a function that dies at its call number `last`, before it takes effect or after.

    Numbers begin with 0, at `forget`. Its threads call one after the other: moto checks a condition
    and writes in two steps.
    """

    last: float = inf
    takes_effect: bool = False
    turn: AbstractContextManager[Any] = field(default_factory=RLock)

    def make(self, call: Call, operation: Callable[..., Any]) -> Any:
        """Make a call, unless the function dies of it."""
        with self.turn:
            if len(self.made) < self.last:
                return super().make(call, operation)
            if self.takes_effect:
                super().make(call, operation)
            raise Died(call.operation)


class _Recording:
    def __init__(self, client: Any, calls: Calls) -> None:
        self._client = client
        self._calls = calls

    def __getattr__(self, name: str) -> Any:
        if name in ("exceptions", "meta"):
            return getattr(self._client, name)

        def operation(**arguments: Any) -> Any:
            call = self._calls.instead.get(name) or getattr(self._client, name)
            return self._calls.make(Call(name, arguments), call)

        return operation


def error_response(code: str, status: int = 400) -> Any:
    """What an error of AWS is made of."""
    return {
        "Error": {"Code": code, "Message": "no"},
        "ResponseMetadata": {"HTTPStatusCode": status},
    }


def refusing(service: str, code: str, operation: str = "Operation") -> Callable[..., Any]:
    """An operation that AWS answers with the error `code`, under that error's HTTP status."""
    status = 500 if code in FAULTS else 400

    def refuse(**arguments: Any) -> Any:
        modelled = getattr(real(service).exceptions, code, ClientError)
        raise modelled(error_response(code, status), operation)

    return refuse


def _create(**declared: Any) -> None:
    """Create a table in moto itself: most tests do, and a client takes eight times as long."""
    dynamodb_backends[ACCOUNT][REGION].create_table(
        declared["TableName"],
        schema=declared["KeySchema"],
        attr=declared["AttributeDefinitions"],
        global_indexes=declared.get("GlobalSecondaryIndexes", []),
        streams=declared.get("StreamSpecification"),
        billing_mode=declared["BillingMode"],
        indexes=[],
        tags=[],
        throughput=None,
        warm_throughput=None,
        sse_specification=None,
        deletion_protection_enabled=False,
    )


def create_table() -> str:
    """The tasks table, as `infra/table.py` declares its keys."""
    _create(
        TableName=TABLE,
        KeySchema=[{"AttributeName": "taskId", "KeyType": "HASH"}],
        AttributeDefinitions=[
            {"AttributeName": "taskId", "AttributeType": "S"},
            {"AttributeName": "reconcileShard", "AttributeType": "S"},
            {"AttributeName": "reconcileAt", "AttributeType": "N"},
            {"AttributeName": "principalKey", "AttributeType": "S"},
            {"AttributeName": "createdAt", "AttributeType": "N"},
        ],
        GlobalSecondaryIndexes=[
            {
                "IndexName": name,
                "KeySchema": [
                    {"AttributeName": partition, "KeyType": "HASH"},
                    {"AttributeName": sort, "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            }
            for name, partition, sort in (
                ("reconcile", "reconcileShard", "reconcileAt"),
                ("byPrincipal", "principalKey", "createdAt"),
            )
        ],
        BillingMode="PAY_PER_REQUEST",
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
    )
    return TABLE


def create_mailboxes() -> str:
    """The table of mailboxes, as `infra/mailboxes.py` declares its key."""
    return _create_with_sort_key(MAILBOXES)


def create_callers() -> str:
    """The table of what callers have open, as `infra/callers.py` declares its key."""
    _create(
        TableName=CALLERS,
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    return CALLERS


def create_sessions() -> str:
    """The table of sessions, as `infra/tables.py` declares its key."""
    return _create_with_sort_key(SESSIONS)


def create_journal() -> str:
    """The table of journals, as `infra/tables.py` declares its key."""
    return _create_with_sort_key(JOURNAL)


def _create_with_sort_key(table: str) -> str:
    _create(
        TableName=table,
        KeySchema=[
            {"AttributeName": "pk", "KeyType": "HASH"},
            {"AttributeName": "sk", "KeyType": "RANGE"},
        ],
        AttributeDefinitions=[
            {"AttributeName": "pk", "AttributeType": "S"},
            {"AttributeName": "sk", "AttributeType": "S"},
        ],
        BillingMode="PAY_PER_REQUEST",
    )
    return table


def create_payloads() -> str:
    """The bucket of what is too large for rows and executions."""
    real("s3").create_bucket(Bucket=PAYLOADS)
    return PAYLOADS


def raw_rows() -> list[dict[str, Any]]:
    """Every row of the tasks table as DynamoDB keeps it, expired ones included."""
    return sorted(items_of(TABLE), key=lambda item: str(item["taskId"]))


def items_of(table: str) -> list[dict[str, Any]]:
    """Every item of a table as DynamoDB keeps it."""
    items: list[dict[str, Any]] = real("dynamodb").scan(TableName=table)["Items"]
    return items
